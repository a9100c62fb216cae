"""Runs of an overlay: the network a scenario draws, known answers of every metric, the folder, and bad input."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from serai import load_scenario, measure, read_run, simulate, write_run
from serai.core.content import Attribute
from serai.core.errors import BadInput
from serai.log.metrics import arrow_schema
from serai.overlay import pub2sub, tinymq
from serai.overlay.engine import run as overlay
from serai.overlay.engine.graph import graph_of_links, hops_from, is_connected
from serai.overlay.engine.network import Network
from serai.overlay.engine.run import COMPARED
from serai.overlay.engine.state import NONE
from serai.overlay.log import OverlayRun
from serai.overlay.metrics import OverlayMetrics, gini, margin_of_sample
from serai.overlay.simulation import build_network, draw_boxes

SMALL = [
    "nodes.count=60", "field.width=100 m", "field.height=40 m", "roots.count=3", "events.count=400",
    "subscriptions.count=40", "subscriptions.widest=1.0",
]  # fmt: skip


def line_of_five(fails: list[int] | None = None) -> Network:
    """Nodes 0 - 1 - 2 - 3 - 4 in a row, root 0, one query at 4 for all values, events at 0 (low) and 4 (high)."""
    dead = np.zeros(5, np.bool_)
    dead[fails or []] = True
    return Network(
        names=tuple("abcde"),
        x_m=np.arange(5.0),
        y_m=np.zeros(5),
        graph=graph_of_links(5, range(4), range(1, 5)),
        roots=np.array([0], np.int32),
        attributes=(Attribute("A", "real", 0.0, 16.0),),
        publisher=np.array([0, 4], np.int32),
        values=np.array([[0.5], [15.5]]),
        subscriber=np.array([4], np.int32),
        low=np.array([[0.0]]),
        high=np.array([[16.0]]),
        where=("A >= 0",),
        fails=dead,
    )


def run_of(network: Network, settings: tinymq.Settings | pub2sub.Settings) -> OverlayRun:
    scenario = load_scenario("tinymq", ["roots.count=1"], settings.name)
    return OverlayRun(scenario, settings.name, 0, network, overlay.simulate(network, settings))


def test_known_answers_on_a_line() -> None:
    """Node keys are "", 1, 11, 111, 1111; so rendezvous keys of four bits meet: 0... at a, 10.. at b, .., 1111 at e."""
    metrics = measure(run_of(line_of_five(), tinymq.Settings(attribute_bits=4)))
    assert metrics.nodes_per_query == 5  # every node is the rendezvous of some rendezvous key
    assert metrics.query_path_hops == (0 + 1 + 2 + 3 + 4) / 5
    assert metrics.query_hops_own_tree == metrics.query_hops_all_trees == 4
    assert (metrics.wanted_pairs, metrics.delivered_pairs, metrics.delivery_ratio) == (2, 2, 1.0)
    # Event 0 (0000) meets at a, and the notification goes a -> e; event 1 (1111) meets where it is told: at e.
    assert metrics.transmissions_per_event == 0
    assert metrics.notification_transmissions_per_event == 4 / 2
    assert metrics.notification_hops == metrics.shortest_hops == 4  # e is told by itself: no way to compare
    assert metrics.notification_delay_ratio == metrics.notification_delay_ratio_of_means == 1
    # Sent and received: the query 4 + 4, the notification 4 + 4; b, c and d have a part in all four.
    assert metrics.busiest_share == 4 / 16
    assert metrics.load_gini == pytest.approx((2 * np.arange(1, 6) - 6) @ [2, 2, 4, 4, 4] / (5 * 16))
    assert metrics.busiest_rendezvous_share == 0.5
    assert metrics.state_per_node_max == 3 + 1  # its own key, two neighbours', one query message
    assert metrics.info_messages == 5  # one root: every node has news once
    assert metrics.failed_nodes == 0
    assert np.isnan(metrics.rekeyed_nodes)


@pytest.mark.parametrize("protocol", ["tinymq", "pub2sub"])
def test_the_delay_ratio_is_that_of_the_first_queries_and_says_how_sure_it_is(protocol: str) -> None:
    """Of 500 queries 400 are compared with shortest paths: those that a run of all 500 would have had, and no other."""
    run = simulate(load_scenario("tinymq", [*SMALL, "subscriptions.count=500", "events.count=50"], protocol), seed=3)
    told, network = run.outcome.notifications, run.network
    compared = told.query < COMPARED
    assert compared.any()
    assert (told.shortest[~compared] == NONE).all()
    assert not compared.all()
    for event, query, shortest in zip(*(row[compared] for row in (told.event, told.query, told.shortest)), strict=True):
        hops = hops_from(network.graph, network.subscriber[[query]])
        assert shortest == hops[network.publisher[event]]
    apart = compared & (told.shortest > 0) & ~told.again
    ratios = told.hops[apart] / told.shortest[apart]
    metrics = measure(run)
    assert metrics.notification_delay_ratio == pytest.approx(ratios.mean())
    assert metrics.notification_delay_ratio_margin == pytest.approx(margin_of_sample(ratios, told.query[apart], 500))
    assert 0 < metrics.notification_delay_ratio_margin < 0.1 * metrics.notification_delay_ratio
    assert metrics.shortest_hops == pytest.approx(told.shortest[apart].mean())


def test_energy_is_messages_times_the_radios_price() -> None:
    run = run_of(line_of_five(), tinymq.Settings(attribute_bits=4))
    metrics, bits = measure(run), 250
    send, hear = bits * (50e-9 + 10e-12 * 20**2), bits * 50e-9
    assert metrics.energy_j == pytest.approx(8 * (send + hear))  # four hops each of the query and of a notification
    assert metrics.busiest_energy_j == pytest.approx(2 * (send + hear))
    assert metrics.control_energy_j == pytest.approx(5 * send + 8 * hear)  # all neighbours hear an advertisement


def test_known_answers_of_a_failure_on_a_line() -> None:
    """Node c fails: d and e lose their keys and every way; of the living, nobody can hear from beyond."""
    metrics = measure(run_of(line_of_five([2]), tinymq.Settings(attribute_bits=4)))
    assert (metrics.failed_nodes, metrics.cut_off_nodes, metrics.rekeyed_nodes) == (1, 2, 2)
    assert metrics.changed_nodes == 2
    assert metrics.delivery_ratio_unrepaired == 0.5  # e still tells itself
    assert metrics.delivery_ratio_repaired == metrics.delivery_ratio_renewed == 0  # ... until it has lost its key


def test_a_ring_mends_itself() -> None:
    """On a ring of six with root 0 and 2 dead, 3 joins by the other side, and asking again brings everything back."""
    ring = graph_of_links(6, [0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 5])
    network = line_of_five()._replace(
        names=tuple("abcdef"),
        graph=ring,
        subscriber=np.array([3], np.int32),
        publisher=np.array([0, 1], np.int32),
        fails=np.arange(6) == 2,
    )
    metrics = measure(run_of(network, tinymq.Settings(attribute_bits=4)))
    assert (metrics.rekeyed_nodes, metrics.cut_off_nodes) == (1, 0)
    assert metrics.delivery_ratio_renewed == 1


def test_pub2sub_keeps_a_key_in_every_tree() -> None:
    network = line_of_five()._replace(roots=np.array([0, 4], np.int32))
    metrics = measure(run_of(network, pub2sub.Settings(attribute_bits=4)))
    assert metrics.nodes_per_query == 10
    assert metrics.query_hops_all_trees == 8
    assert metrics.state_per_node_max == 2 * 3 + 2


@pytest.mark.parametrize("protocol", ["tinymq", "pub2sub"])
@pytest.mark.parametrize("changes", [[], ["failures.fraction=0.2"], ["protocol.event_trees=all"]])
def test_everything_wanted_is_delivered_once(protocol: str, changes: list[str]) -> None:
    run = simulate(load_scenario("tinymq", [*SMALL, *changes], protocol), seed=3)
    metrics = measure(run)
    assert metrics.wanted_pairs > 100
    assert metrics.delivery_ratio == 1
    told = run.outcome.notifications
    pairs = np.stack([told.event, told.query])[:, ~told.again]
    assert len(np.unique(pairs, axis=1).T) == metrics.delivered_pairs
    inside = (run.network.low[told.query] <= run.network.values[told.event]).all(axis=1)
    assert (inside & (run.network.values[told.event] <= run.network.high[told.query]).all(axis=1)).all()
    assert (told.hops >= told.shortest).all()
    if changes == ["failures.fraction=0.2"] and metrics.cut_off_nodes == 0:
        assert metrics.delivery_ratio_renewed == 1


def test_the_printed_algorithms_lose() -> None:
    metrics = measure(simulate(load_scenario("tinymq", [*SMALL, "protocol.routing=as-printed"]), seed=3))
    assert metrics.delivery_ratio < 0.6
    assert metrics.lost_events > 0  # in loops


def test_load_is_what_the_messages_add_up_to() -> None:
    run = simulate(load_scenario("tinymq", SMALL), seed=1)
    load, outcome = run.outcome.load, run.outcome
    sent = dict(zip(overlay.KINDS, load.sent.sum(axis=1), strict=True))
    received = dict(zip(overlay.KINDS, load.received.sum(axis=1), strict=True))
    assert sent["event"] == received["event"] == outcome.arrivals.hops.sum()
    assert sent["query"] == received["query"] == (outcome.queries.back >= 0).sum()
    arrived = {(event, tree): hops for event, tree, _, hops in zip(*outcome.arrivals, strict=True)}
    told = outcome.notifications
    back = sum(hops - arrived[event, tree] for event, _, tree, hops, *_ in zip(*told, strict=True))
    assert sent["notification"] == received["notification"] == back


def test_same_seed_same_run_and_more_trees_keep_the_network() -> None:
    scenario = load_scenario("tinymq", SMALL)
    assert simulate(scenario, seed=5) == simulate(scenario, seed=5)
    few, many = build_network(scenario, 5), build_network(load_scenario("tinymq", [*SMALL, "roots.count=7"]), 5)
    assert few.roots.tolist() == many.roots[:3].tolist()
    assert np.array_equal(few.values, many.values)
    assert np.array_equal(few.graph.neighbors, many.graph.neighbors)
    assert not np.array_equal(few.x_m, build_network(scenario, 6).x_m)


@pytest.mark.parametrize("protocol", ["tinymq", "pub2sub"])
def test_a_run_reads_back_equal(tmp_path: Path, protocol: str) -> None:
    run = simulate(load_scenario("tinymq", [*SMALL, "failures.fraction=0.1"], protocol), seed=2)
    write_run(run, tmp_path / "run")
    again = read_run(tmp_path / "run")
    assert again == run
    assert measure(again) == measure(run)


def test_every_metric_fits_its_column() -> None:
    for setting in ("failures.fraction=0", "failures.fraction=0.1", "subscriptions.count=0"):
        row = measure(simulate(load_scenario("tinymq", [*SMALL, setting]), seed=1)).as_dict()
        table = pa.Table.from_pylist([row], schema=arrow_schema(OverlayMetrics))
        table.validate(full=True)
        assert table.to_pylist() == [row]
        assert all(column.nullable or not table[column.name].null_count for column in table.schema)


def test_gini_of_known_loads() -> None:
    assert gini(np.array([3, 3, 3, 3])) == 0
    assert gini(np.array([0, 0, 0, 8])) == 0.75
    assert np.isnan(gini(np.zeros(4, np.int64)))


def test_the_sides_of_boxes_follow_zipf() -> None:
    attributes = (Attribute("A", "real", -5.0, 5.0),)
    low, high = draw_boxes(attributes, 20_000, 0.5, np.random.default_rng(0))
    steps = np.rint((high - low) / 10 / 0.5 * 100).astype(int)
    assert (low >= -5).all()
    assert (high <= 5 + 1e-9).all()
    counts = np.bincount(steps[:, 0], minlength=101)
    assert counts[0] == 0
    assert counts[1] / 20_000 == pytest.approx(1 / sum(1 / r for r in range(1, 101)), rel=0.05)
    assert counts[1] / counts[10] == pytest.approx(10, rel=0.25)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            ["radio.range=8 m", "nodes.draws=3"],
            r"60 nodes .* the last of 3 draws: the network is in \d+ parts.*--largest",
        ),
        (["nodes.placement=grid", "radio.range=1 m"], r"in 60 parts.*1 node \(s0\)"),
        (["roots.placement=given", "roots.count=1", 'roots.nodes=["x"]'], 'roots.nodes: no node "x"'),
        (["roots.placement=given", 'roots.nodes=["s1","s1","s2"]'], "named twice: s1"),
        (["roots.count=61"], "61 roots, but there are only 60 nodes"),
        (["protocol.attribute_bits=32"], "2 attributes of 32 bits are 64 bits; at most 63 fit"),
        (["subscriptions.where=A1 > 2"], r"can match nothing: the domain of A1 is 0 \.\. 1"),
        (["subscriptions.where=3 < A1 and A2 < ?"], "can match nothing"),
        (["protocol.query_trees=own"], 'needs event_trees = "all"'),
        (["nodes.placement=links"], 'needs a file; write file = "links.csv"'),
        (["roots.spacing=5 m"], 'only used with placement = "edge"'),
    ],
)
def test_bad_input(changes: list[str], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        simulate(load_scenario("tinymq", [*SMALL, *changes]))


def test_the_largest_part_of_a_network() -> None:
    network = build_network(load_scenario("tinymq", [*SMALL, "radio.range=8 m", "nodes.largest=true"]), 0)
    assert 3 < len(network.names) < 60
    assert is_connected(network.graph)


def test_nodes_from_files(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("from,to\nhill,barn\nbarn,lake\n")
    (tmp_path / "net.toml").write_text(
        '[nodes]\nplacement = "links"\nfile = "links.csv"\n[roots]\ncount = 1\nplacement = "given"\nnodes = ["lake"]\n'
        '[events]\ncount = 50\n[subscriptions]\nwhere = "A1 < 0.5"\ncount = 2\n[protocol]\nname = "tinymq"\n'
    )
    run = simulate(load_scenario(tmp_path / "net.toml"), seed=1)
    assert run.network.names == ("hill", "barn", "lake")
    assert run.network.roots.tolist() == [2]
    assert measure(run).delivery_ratio == 1
    assert np.isnan(run.network.x_m).all()
    (tmp_path / "links.csv").write_text("from,to\nhill,barn\nlake,pond\n")
    with pytest.raises(BadInput, match=r"in 2 parts.*2 nodes \(hill, barn\); 2 nodes \(lake, pond\)"):
        simulate(load_scenario(tmp_path / "net.toml"))
