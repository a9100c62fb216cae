"""For every query, matching event, publisher and tree: the event meets the query, and the subscriber hears of it.

The mapping intersection rule of III.C, on all small networks by the kernels, and on larger ones message by message.
"""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from serai.core.content import Attribute
from serai.overlay import pub2sub, tinymq
from serai.overlay.broker import NetworkConfiguration
from serai.overlay.broker.messages import Notify, Publish, Subscribe
from serai.overlay.engine import run as overlay
from serai.overlay.engine.graph import graph_of_links, is_connected, radio_graph
from serai.overlay.engine.network import Network
from tests.effort import THOROUGH
from tests.overlay.bus import Bus

Pair = tuple[int, int]

SYSTEMS: dict[str, tinymq.Settings | pub2sub.Settings] = {
    routing: tinymq.Settings(attribute_bits=4, routing=routing, event_trees="all")  # type: ignore[arg-type]
    for routing in ("strict", "greedy", "tree-edges")
} | {"pub2sub": pub2sub.Settings(attribute_bits=4, event_trees="all")}  # fmt: skip


# --- All small networks -------------------------------------------------------------------------------------


def connected_graphs(nodes: int) -> Iterator[tuple[Pair, ...]]:
    """Every connected graph of so many numbered nodes."""
    pairs = list(combinations(range(nodes), 2))
    for chosen in product([False, True], repeat=len(pairs)):
        links = tuple(pair for pair, is_in in zip(pairs, chosen, strict=True) if is_in)
        if reaches_all(nodes, links):
            yield links


def reaches_all(nodes: int, links: tuple[Pair, ...]) -> bool:
    seen = {0}
    for _ in range(nodes):
        seen |= {end for link in links if seen & set(link) for end in link}
    return len(seen) == nodes


def shapes(nodes: int) -> list[tuple[Pair, ...]]:
    """Every connected graph of so many nodes once, however its nodes are numbered."""
    known: set[frozenset[Pair]] = set()
    found = []
    for links in connected_graphs(nodes):
        if frozenset(links) in known:
            continue
        found.append(links)
        for numbers in permutations(range(nodes)):
            renumbered = ((numbers[one], numbers[other]) for one, other in links)
            known.add(frozenset((min(pair), max(pair)) for pair in renumbered))
    return found


@pytest.mark.parametrize(
    ("nodes", "connected", "different"), [(1, 1, 1), (2, 1, 1), (3, 4, 2), (4, 38, 6), (5, 728, 21)]
)
def test_none_of_the_small_networks_is_left_out(nodes: int, connected: int, different: int) -> None:
    """OEIS A001187 and A001349."""
    assert len(list(connected_graphs(nodes))) == connected
    assert len(shapes(nodes)) == different


def everything(nodes: int, links: tuple[Pair, ...], roots: tuple[int, ...]) -> Network:
    """Rendezvous keys of four bits: every node asks every range of them, and publishes every one."""
    ranges = [(low, high) for low in range(16) for high in range(low, 16)]
    asked = [(node, low, high + 0.5) for node in range(nodes) for low, high in ranges]
    told = [(node, rendezvous_key) for node in range(nodes) for rendezvous_key in range(16)]
    nowhere = np.full(nodes, np.nan)
    return Network(
        names=tuple(map(str, range(nodes))),
        x_m=nowhere,
        y_m=nowhere,
        graph=graph_of_links(nodes, [one for one, _ in links], [other for _, other in links]),
        roots=np.array(roots, np.int32),
        attributes=(Attribute("A", "real", 0, 16),),
        publisher=np.array([node for node, _ in told], np.int32),
        values=np.array([[rendezvous_key] for _, rendezvous_key in told], np.float64),
        subscriber=np.array([node for node, _, _ in asked], np.int32),
        low=np.array([[low] for _, low, _ in asked], np.float64),
        high=np.array([[high] for _, _, high in asked], np.float64),
        where=("",) * len(asked),
        fails=np.zeros(nodes, np.bool_),
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_all_networks_of_up_to_five_nodes(system: str) -> None:
    """One or two roots, anywhere: each match is notified exactly once for each tree, and nothing else is."""
    cases = 0
    for nodes in range(1, 6 if THOROUGH or system == "strict" else 5):
        for links in connected_graphs(nodes) if THOROUGH else shapes(nodes):
            for roots in (*permutations(range(nodes), 1), *combinations(range(nodes), 2)):
                network = everything(nodes, links, roots)
                found = overlay.simulate(network, SYSTEMS[system]).notifications
                expected = np.repeat(matching_pairs(network), len(roots))
                assert np.array_equal(np.sort(found.event.astype(np.int64) * len(network.low) + found.query), expected)
                cases += len(expected)
    assert cases > (9_000_000 if system == "strict" else 900_000)


@pytest.mark.parametrize("system", SYSTEMS if THOROUGH else ["strict"])
def test_small_networks_message_by_message(system: str) -> None:
    """Brokers on all networks of up to three nodes (with SERAI_THOROUGH=1: five), every range asked by some node."""
    for nodes in range(1, 6 if THOROUGH else 4):
        for links in shapes(nodes):
            for roots in (*permutations(range(nodes), 1), *combinations(range(nodes), 2)):
                everything_by_brokers(everything(nodes, links, roots), SYSTEMS[system])


def everything_by_brokers(network: Network, settings: tinymq.Settings | pub2sub.Settings) -> None:
    nodes, ranges = len(network.names), len(network.low) // len(network.names)
    bus = bus_of(network, settings)
    for query in range(ranges):  # the first so many are all ranges there are
        bus.subscribe(query % nodes, bus.configuration.query(query, network.low[query], network.high[query]))
    for event, node in enumerate(map(int, network.publisher)):
        bus.publish(node, bus.configuration.event(event, network.values[event]))
    found = [(event.name, query.name) for _, event, query in bus.delivered]
    pairs = (divmod(int(pair), len(network.low)) for pair in matching_pairs(network))
    assert sorted(found) == [(event, query) for event, query in pairs if query < ranges]
    assert sum(drop.reason == "duplicate" for _, drop in bus.dropped) == len(found) * (len(network.roots) - 1)


def bus_of(network: Network, settings: tinymq.Settings | pub2sub.Settings) -> Bus:
    configuration = NetworkConfiguration(tuple(map(int, network.roots)), network.attributes, settings, mends=False)
    return Bus(
        configuration, {node: set(map(int, network.graph.neighbors_of(node))) for node in range(len(network.names))}
    )


def matching_pairs(network: Network) -> NDArray[np.int64]:
    """All pairs of an event and a query that match, as one number each, in order."""
    values = network.values[:, None, :]
    wanted = ((network.low <= values) & (values <= network.high)).all(axis=2)
    event, query = np.nonzero(wanted)
    return event * len(network.low) + query


# --- Larger networks ----------------------------------------------------------------------------------------


def radio_network(nodes: int, trees: int, queries: int, publishers: int, seed: int) -> Network:
    """Nodes as dense as in the paper; boxes of up to 4 x 4 of 16 x 16 cells; each publisher tells all of them."""
    rng = np.random.default_rng(seed)
    width_m, height_m = 500 * math.sqrt(nodes / 1500), 200 * math.sqrt(nodes / 1500)
    while True:
        x_m, y_m = rng.uniform(0, width_m, nodes), rng.uniform(0, height_m, nodes)
        if is_connected(graph := radio_graph(x_m, y_m, 20.0)):
            break
    cells = np.array(list(product(range(16), repeat=2)), np.float64)
    low = rng.integers(0, 16, (queries, 2)).astype(np.float64)
    return Network(
        names=tuple(map(str, range(nodes))),
        x_m=x_m,
        y_m=y_m,
        graph=graph,
        roots=rng.permutation(nodes)[:trees].astype(np.int32),
        attributes=(Attribute("A1", "real", 0, 16), Attribute("A2", "real", 0, 16)),
        publisher=np.tile(rng.permutation(nodes)[:publishers], len(cells)).astype(np.int32),
        values=np.repeat(cells, publishers, axis=0) + rng.uniform(0, 1, (len(cells) * publishers, 2)),
        subscriber=rng.integers(0, nodes, queries).astype(np.int32),
        low=low,
        high=low + rng.uniform(0, 4, (queries, 2)),
        where=("",) * queries,
        fails=np.zeros(nodes, np.bool_),
    )


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("nodes", "trees", "publishers"), [(150, 1, 150), (150, 3, 150), (1500, 1, 5), (1500, 10, 5)])
def test_random_networks(system: str, nodes: int, trees: int, publishers: int) -> None:
    """150 nodes: every rendezvous key from every publisher, to every tree. 1500 nodes: from some publishers."""
    network = radio_network(nodes, trees, 40, publishers, seed=nodes + trees)
    found = overlay.simulate(network, SYSTEMS[system]).notifications
    expected = np.repeat(matching_pairs(network), trees)
    assert np.array_equal(np.sort(found.event.astype(np.int64) * len(network.low) + found.query), expected)


MESSAGES = {"query": Subscribe, "event": Publish, "notification": Notify}


@pytest.mark.parametrize("system", [*SYSTEMS, "as-printed"])
@pytest.mark.parametrize("trees", [1, 3])
def test_random_networks_message_by_message(system: str, trees: int) -> None:
    """150 brokers do what the kernels say: the messages that each node sends, where queries are, who gets what."""
    routing = "as-printed" if system == "as-printed" else None
    settings = SYSTEMS["strict"].model_copy(update={"routing": routing}) if routing else SYSTEMS[system]
    settings = settings.model_copy(update={"event_trees": "own" if trees == 3 else "all"})
    network = radio_network(150, trees, 40, 1, seed=trees)
    outcome = overlay.simulate(network, settings)
    bus = bus_of(network, settings)
    for query, node in enumerate(map(int, network.subscriber)):
        bus.subscribe(node, bus.configuration.query(query, network.low[query], network.high[query]))
    for event, node in enumerate(map(int, network.publisher)):
        bus.publish(node, bus.configuration.event(event, network.values[event]))
    for kind, message in MESSAGES.items():
        sent = np.bincount([sender for sender, _, sent in bus.sent if isinstance(sent, message)], minlength=150)
        assert np.array_equal(outcome.load.sent[overlay.KINDS.index(kind)], sent)
    stored = (column[outcome.queries.stays].tolist() for column in outcome.queries[:3])
    assert bus.stored() == set(zip(*stored, strict=True))
    found = outcome.notifications
    kernel_pairs = set(zip(found.event.tolist(), found.query.tolist(), strict=True))
    assert Counter((event.name, query.name) for _, event, query in bus.delivered) == Counter(kernel_pairs)
    if system != "as-printed":
        assert len(kernel_pairs) == len(matching_pairs(network))
