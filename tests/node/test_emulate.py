"""Kernel == real cores with real stores, table by table: on random worlds, and on a built-in scenario made small."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given as tried
from hypothesis import settings, target
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.lab import load_scenario, measure, read_run
from serai.node.emulate import differences, emulate, in_milliseconds, run_nodes
from serai.opportunistic import direct, dpsp, flooding
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import Given, simulate_given
from serai.opportunistic.world import Published, Wanted
from tests.opportunistic.test_twins import CHANNELS, END_S, NODES, SHARED, worlds_from

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


@settings(max_examples=1500 if os.environ.get("SERAI_THOROUGH") == "1" else 40, deadline=None)
@tried(
    st.integers(0, 1 << 32),
    SETTINGS,
    NODES_SECTION,
    st.sampled_from([400.0, 4000.0, 1e6]),
    st.sampled_from([END_S, END_S, 25.5]),
    st.sampled_from([13, 13, 13, 90]),
)
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
