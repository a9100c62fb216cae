"""The full log of an overlay: every hop of events and notifications, as the rules say it and as the sums have it."""

from pathlib import Path

import numpy as np
import pytest

from serai.lab import load_scenario, read_run, simulate, write_run
from serai.overlay import tinymq
from serai.overlay.engine.hops import HOPS
from serai.overlay.engine.keys import domains_of, rendezvous_keys_of
from serai.overlay.engine.run import KINDS
from serai.overlay.engine.run import simulate as simulate_network
from serai.overlay.log import OverlayRun
from serai.overlay.tinymq import MAPPINGS
from tests.overlay.naive import Overlay
from tests.overlay.test_runs import SMALL, line_of_five

VARIANTS = {
    "tinymq": ("tinymq", []),
    "pub2sub": ("pub2sub", []),
    "all trees": ("tinymq", ["protocol.event_trees=all"]),
    "as printed": ("tinymq", ["protocol.routing=as-printed"]),
}


def run(which: str, full_log: bool = True) -> OverlayRun:
    protocol, changes = VARIANTS[which]
    return simulate(load_scenario("tinymq", [*SMALL, *changes], protocol), seed=3, full_log=full_log)


def test_known_answer_on_a_line() -> None:
    """Event 0 meets at node 0, where it is born, and 4 is told; event 1 meets where it is told: at 4."""
    outcome = simulate_network(line_of_five(), tinymq.Settings(attribute_bits=4), full_log=True)
    assert outcome.full is not None
    assert [tuple(int(value) for value in row) for row in zip(*outcome.full.hops, strict=True)] == [
        (0, node, node + 1, 4, HOPS.index("notification")) for node in range(4)
    ]
    assert len(outcome.full.losses.event) == 0


@pytest.mark.parametrize("which", VARIANTS)
def test_hops_add_up_to_the_load_and_nothing_else_changes(which: str) -> None:
    logged, plain = run(which), run(which, full_log=False)
    assert logged.outcome._replace(full=None).load.sent.tolist() == plain.outcome.load.sent.tolist()
    full = logged.outcome.full
    assert full is not None
    for code, name in enumerate(HOPS):
        rows, kind = full.hops.kind == code, KINDS.index(name)
        assert np.array_equal(np.bincount(full.hops.sender[rows], minlength=60), plain.outcome.load.sent[kind])
        assert np.array_equal(np.bincount(full.hops.receiver[rows], minlength=60), plain.outcome.load.received[kind])
    sent = np.bincount(full.hops.event, minlength=len(logged.network.publisher))
    assert logged.tables["events"]["transmissions"].to_pylist() == sent.tolist()
    lost = plain.outcome.arrivals.event[plain.outcome.arrivals.node < 0]
    assert full.losses.event.tolist() == lost.tolist()
    assert (len(lost) > 0) == (which == "as printed")


@pytest.mark.parametrize("which", VARIANTS)
def test_keys_begin_with_those_of_parents(which: str) -> None:
    """Before failures and after them; memberships are the keys before."""
    protocol, changes = VARIANTS[which]
    logged = simulate(
        load_scenario("tinymq", [*SMALL, *changes, "failures.fraction=0.2"], protocol), seed=3, full_log=True
    )
    rows, bits = logged.tables["keys"].to_pylist(), 2 * logged.scenario.protocol.attribute_bits
    before = [row for row in rows if not row["mended"]]
    places = logged.tables["memberships"].to_pylist()
    assert [{name: row[name] for name in places[0]} for row in before] == places
    fails = {row["node"] for row in logged.tables["brokers"].to_pylist() if row["fails"]}
    assert fails
    for stage in (False, True):
        known = {(row["tree"], row["node"]): row for row in rows if row["mended"] == stage}
        assert len({(tree, row["key"]) for (tree, _), row in known.items() if row["key_length"] <= bits}) == len(
            [row for row in known.values() if row["key_length"] <= bits]
        )
        for (tree, node), row in known.items():
            assert len(row["key"]) == min(row["key_length"], bits)
            assert not (stage and node in fails)
            if row["parent"] >= 0:
                above = known[tree, row["parent"]]
                assert row["key"].startswith(above["key"])
                assert row["depth"] == above["depth"] + 1
    assert any(row["mended"] for row in rows)


@pytest.mark.parametrize("which", VARIANTS)
def test_a_run_with_a_full_log_reads_back_equal(which: str, tmp_path: Path) -> None:
    logged = run(which)
    assert logged.full_log
    assert logged != run(which, full_log=False)
    assert read_run(write_run(logged, tmp_path / "run")) == logged


@pytest.mark.parametrize("routing", tinymq.ROUTINGS)
def test_events_go_where_the_rules_say(routing: str) -> None:
    """Each path to a rendezvous, hop by hop, is that of the network looked at from above."""
    changes = ["nodes.count=25", "field.width=60 m", "events.count=60", "protocol.attribute_bits=3"]
    scenario = load_scenario("tinymq", [*SMALL, *changes, f"protocol.routing={routing}", "protocol.event_trees=all"])
    logged = simulate(scenario, seed=4, full_log=True)
    network, full, settings = logged.network, logged.outcome.full, scenario.protocol
    assert full is not None
    graph = network.graph
    links = {n: set(graph.neighbors[graph.start[n] : graph.start[n + 1]].tolist()) for n in range(graph.nodes)}
    above = Overlay(links, tuple(network.roots.tolist()), routing, event_trees="all")
    mapping = MAPPINGS.index(settings.mapping)
    keys = rendezvous_keys_of(network.values, domains_of(network.attributes), mapping, settings.attribute_bits)
    expected, ends = [], []
    for event, (publisher, key) in enumerate(zip(network.publisher.tolist(), keys.tolist(), strict=True)):
        walks, _ = above.publish(event, publisher, f"{key:0{2 * settings.attribute_bits}b}", set())
        for walk in walks:
            expected += [(event, *hop) for hop in zip(walk.path[:-1], walk.path[1:], strict=True)]
            ends += [] if walk.end == "here" else [(event, walk.path[-1])]
    out = full.hops.kind == HOPS.index("event")
    columns = (full.hops.event, full.hops.sender, full.hops.receiver)
    assert list(zip(*(column[out].tolist() for column in columns), strict=True)) == expected
    assert list(zip(full.losses.event.tolist(), full.losses.node.tolist(), strict=True)) == ends


def test_notifications_go_from_the_rendezvous_to_the_subscriber() -> None:
    logged = run("all trees")
    full, arrivals = logged.outcome.full, logged.outcome.arrivals
    assert full is not None
    meets = {(event, node) for event, node in zip(arrivals.event.tolist(), arrivals.node.tolist(), strict=True)}
    back = full.hops.kind == HOPS.index("notification")
    rows = list(zip(*(column[back].tolist() for column in full.hops[:4]), strict=True))
    begun = ended = 0
    for row, (event, sender, receiver, addressee) in enumerate(rows):
        follows = row > 0 and rows[row - 1][2] != rows[row - 1][3]  # the one before had not arrived
        if follows:
            assert (rows[row - 1][0], rows[row - 1][2], rows[row - 1][3]) == (event, sender, addressee)
        else:
            assert (event, sender) in meets
            begun += 1
        ended += receiver == addressee
    told = logged.outcome.notifications
    hops_of = {(event, tree): hops for event, tree, _, hops in zip(*arrivals, strict=True)}
    moved = sum(hops > hops_of[event, tree] for event, _, tree, hops, *_ in zip(*told, strict=True))
    assert begun == ended == moved
