"""Kernel == real cores with real stores, table by table: on random worlds, and on a built-in scenario made small."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, settings, target
from hypothesis import given as tried
from hypothesis import strategies as st

from serai.cli import execute
from serai.core.errors import BadInput
from serai.lab import load_scenario, measure, read_run
from serai.node.emulation.compare import by_the_clock, differences, emulate, only
from serai.node.emulation.real import Conductor
from serai.node.emulation.virtual import run_nodes
from serai.node.emulation.world import in_milliseconds
from serai.opportunistic import direct, dpsp, flooding
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import Given, simulate_given
from serai.opportunistic.world import Bundles, Published, Subscriptions, Wanted
from serai.world.contacts import Contacts
from tests.effort import THOROUGH
from tests.opportunistic.test_twins import CHANNELS, END_S, NODES, SHARED, worlds_from

THOROUGH_ONLY = pytest.mark.skipif(not THOROUGH, reason="make test-all")
LIVE = SHARED | {"seen": st.sampled_from(["vector", "bloom"])}
SETTINGS = st.one_of(
    st.builds(dpsp.Settings, **LIVE,
        filters=st.lists(st.sampled_from(dpsp.FILTERS), unique=True).map(tuple),
        priorities=st.lists(st.sampled_from(dpsp.PRIORITIES), unique=True).map(tuple),
        combine=st.sampled_from(["vote", "order"]), hop_tolerance=st.integers(0, 1),
        missing_entry=st.sampled_from(["pass", "far"]), lifetime=st.sampled_from(["5 s", "1000 s"]),
        renewal=st.sampled_from([0.3, 0.9])),
    st.builds(flooding.Settings, **LIVE),
    st.builds(direct.Settings, **LIVE),
)  # fmt: skip
NODES_SECTION = st.fixed_dictionaries(
    {
        "store_bytes": st.sampled_from([1 << 60, 1 << 60, 0, 1, 100, 1050]),
        "when_full": st.sampled_from(["refuse", "oldest", "soonest"]),
        "keep_own": st.sampled_from([0, 0, 1, 2]),
    }
)


def scenario_with(chosen: Any, nodes: dict[str, Any], rate_bps: float, duration_s: float) -> OpportunisticScenario:
    base = load_scenario("dpsp")
    assert isinstance(base, OpportunisticScenario)
    update = {
        "protocol": chosen,
        "nodes": base.nodes.model_copy(update=nodes),
        "radio": base.radio.model_copy(update={"rate_bps": rate_bps}),
        "duration_s": duration_s,
    }
    return base.model_copy(update=update)


def given_from(seed: int, duration_s: float, **size: int) -> Given:
    world = worlds_from(seed, **size)
    count = len(world.bundles.source)
    everybody = np.arange(NODES, dtype=np.int32)
    published = Published(
        world.bundles,
        tuple(f"c{n}" for n in range(CHANNELS)),
        everybody,
        np.empty((count, 0)),
        np.full(count, -1, np.int32),
    )
    names = tuple(f"n{n}" for n in range(NODES))
    whole = Given(names, world.contacts, published, Wanted(world.subscriptions, everybody), world.carries)
    return in_milliseconds(whole, duration_s)


@settings(max_examples=1500 if THOROUGH else 40, deadline=None)
@tried(
    st.integers(0, 1 << 32),
    SETTINGS,
    NODES_SECTION,
    st.sampled_from([400.0, 4000.0, 1e6]),
    st.sampled_from([END_S, END_S, 25.5]),
    st.sampled_from([13, 13, 13, 90]),
)
@example(2, flooding.Settings(seen="vector", order="random", wanted_first=False, repeat="3 s"),
         {"store_bytes": 1 << 60, "when_full": "refuse", "keep_own": 0}, 4000.0, END_S, 90)  # fmt: skip
def test_cores_and_stores_do_what_the_kernel_does(
    seed: int, chosen: Any, nodes: dict[str, Any], rate_bps: float, duration_s: float, most: int
) -> None:
    scenario = scenario_with(chosen, nodes, rate_bps, duration_s)
    given = given_from(seed, duration_s, fewest=most // 2, most=most)
    simulated = simulate_given(scenario, given, seed, full_log=True)
    with tempfile.TemporaryDirectory() as folder:
        emulated = run_nodes(scenario, given, seed, Path(folder) / "nodes")
    target(float(simulated.outcome.transfers["relayed"]))
    assert list(differences(emulated, simulated)) == []


SMALL = [
    "nodes.count=8", "duration=15 min", "bundles.quiet=0 s", "bundles.interval=15 s", "nodes.store=200 kB",
    "movement.width=120 m", "movement.height=120 m",
]  # fmt: skip


def test_a_built_in_scenario_made_small(tmp_path: Path) -> None:
    scenario = load_scenario("dpsp", SMALL)
    assert isinstance(scenario, OpportunisticScenario)
    found = emulate(scenario, 3, tmp_path / "out")
    assert found.differences == ()
    assert found.simulated.outcome.transfers["relayed"] > 100
    assert measure(read_run(tmp_path / "out" / "emulated")) == measure(found.simulated)


def test_a_difference_is_named(tmp_path: Path) -> None:
    scenario = load_scenario("dpsp", SMALL)
    assert isinstance(scenario, OpportunisticScenario)
    given = in_milliseconds(given_from(1, 40.0), 40.0)
    one = simulate_given(scenario, given, 1, full_log=True)
    other = simulate_given(scenario, given._replace(carries=~given.carries), 1, full_log=True)
    assert any(text.startswith("stores, row 0 of 5: emulated node 0") for text in differences(one, other))


def test_what_nodes_cannot_do_is_refused(tmp_path: Path) -> None:
    for change, why in (("radio.single=true", "radio.single"), ("protocol.seen=live", "vector, bloom")):
        scenario = load_scenario("dpsp", [change])
        assert isinstance(scenario, OpportunisticScenario)
        with pytest.raises(BadInput, match=why):
            emulate(scenario, 0, tmp_path / "out")
        assert not (tmp_path / "out").exists()


def a_line_of_contacts() -> Given:
    """Five nodes; what the first publishes reaches the others by way of the next ones."""
    contacts = Contacts(
        np.array([0, 1, 2, 3, 0, 0]), np.array([1, 2, 3, 4, 4, 1]),
        np.array([5.0, 30.0, 42.0, 65.0, 66.0, 70.0]), np.array([25.0, 50.0, 62.0, 85.0, 90.0, 88.0]),
    )  # fmt: skip
    source = np.array([0, 0, 1, 0, 2, 4, 0], np.int32)
    created_s = np.array([0.0, 1.0, 2.0, 10.0, 33.0, 60.0, 75.0])
    order = np.argsort(created_s)
    bundles = Bundles(
        source[order], np.array([0, 1, 0, 1, 0, 1, 0]), created_s[order], np.full(7, 3000), np.full(7, 1e5)
    )
    published = Published(bundles, ("a", "b"), np.arange(5), np.empty((7, 0)), np.full(7, -1, np.int32))
    never = np.inf
    asked = Subscriptions(np.array([2, 3, 4, 4, 1]), np.array([0, 1, 0, 1, 0]), np.array([0.0, 0.0, 0.0, 50.0, 5.0]),
                          np.array([never, never, never, never, 40.0]))  # fmt: skip
    names = tuple(f"n{n}" for n in range(5))
    return in_milliseconds(Given(names, contacts, published, Wanted(asked, np.arange(5)), np.ones(5, np.bool_)), 100.0)


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=THOROUGH_ONLY)])
def test_over_tcp_and_by_the_clock_the_deliveries_are_the_same(tmp_path: Path, processes: bool) -> None:
    scenario, given = scenario_with(dpsp.Settings(), {}, 1e6, 100.0), a_line_of_contacts()
    simulated = simulate_given(scenario, given, 1, full_log=True)
    conductor = Conductor(scenario, given, tmp_path / "nodes", 25.0, processes)
    found = by_the_clock(scenario, given, 1, simulated, conductor)
    assert found.differences == ()
    assert len(found.lateness_s) == len(simulated.outcome.delivery_bundle) == 13
    assert -0.1 < found.lateness_s[0] <= found.lateness_s[-1] < 15.0
    assert found.emulated.counts()["contacts"] == len(given.contacts.a)


def test_a_delivery_that_is_missing_is_named() -> None:
    ours, theirs = {(1, 2): 3.0, (4, 5): 2.5}, {(1, 2): 9.0}
    assert list(only(ours, theirs, "simulated")) == [
        "deliveries: 1 of 2 only simulated, the first: bundle 4 to node 5 at 2.500 s"
    ]
    assert list(only(theirs, ours, "emulated")) == []


def test_what_only_a_real_clock_has_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["emulate", "dpsp", "--speed", "4", "--out", str(tmp_path / "out")]) == 2
    assert "a virtual clock is only a number" in capsys.readouterr().err
    large = ["emulate", "dpsp", "--set", "bundles.size_max=3 MB", "--clock", "real", "--out", str(tmp_path / "out")]
    assert execute([*large, *(word for one in SMALL for word in ("--set", one))]) == 2
    assert "above 262144 real nodes send several" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
