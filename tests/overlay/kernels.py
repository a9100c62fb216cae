"""The same stories told by the kernels: arrays of the whole network, one kernel call a step."""

from collections import Counter

import numpy as np

from serai.overlay.engine.answers import Arrivals, Boxes, held_by_nodes, match_arrivals, send_back, shelved, unbroken
from serai.overlay.engine.graph import FAR, Graph, graph_of_links
from serai.overlay.engine.rendezvous import QueryBoxes, RoutingParameters, place_queries, route_events
from serai.overlay.engine.repair import Repaired, hand_off, rejoin, repair, without
from serai.overlay.engine.run import own_trees
from serai.overlay.engine.state import NONE, Layer, empty_nodes
from serai.overlay.engine.subqueries import Subqueries, joined_subqueries
from serai.overlay.engine.trees import plant
from serai.overlay.tinymq import MAPPINGS
from tests.overlay.stories import Ask, Come, Fail, Record, Renew, Repair, Step, Story, Tell, Withdraw


class FromKernels:
    """The kernels, step by step. Failures are mended at once: the kernels know no time in between."""

    def __init__(self, story: Story) -> None:
        settings = story.settings
        self.story, self.configuration = story, story.configuration()
        self.parameters = RoutingParameters(
            settings.routing_code(),
            MAPPINGS.index(settings.mapping),
            settings.attribute_bits,
            self.configuration.bits,
        )
        self.links = list(story.links)
        self.dead: set[int] = set()
        self.nodes = story.nodes
        roots = np.array(story.roots, np.int32)
        groups = settings.layers(len(roots))
        routing, bits = self.parameters.routing, self.parameters.bits
        self.layers = list(plant(self.graph(), roots, groups, routing, bits, settings.zones == "subtree"))
        self.asks: list[Ask] = []
        self.withdrawn: set[int] = set()
        self.subqueries: Subqueries | None = None
        self.version = 0
        self.versions = np.empty(0, np.int64)
        self.present = np.empty(0, np.bool_)
        self.delivered: set[tuple[str, str]] = set()
        self.is_whole = True  # nobody has failed or come since the queries were placed

    def graph(self) -> Graph:
        ends = zip(*self.links, strict=True) if self.links else ((), ())
        return without(graph_of_links(self.nodes, *ends), ~self.alive())

    def alive(self) -> np.ndarray:
        alive = np.ones(self.nodes, np.bool_)
        alive[list(self.dead)] = False
        return alive

    def take(self, step: Step) -> Record:
        record = Record()
        count = len(self.present)
        match step:
            case Ask():
                self.asks.append(step)
                self.place([len(self.asks) - 1])
            case Tell():
                self.tell(step, record)
            case Withdraw(query):
                self.withdraw(query, record)
            case Fail(nodes):
                self.dead |= set(nodes)
                self.mend([repair(self.graph(), layer, ~self.alive(), self.parameters) for layer in self.layers])
            case Repair():
                pass
            case Come(node, neighbors):
                self.come(node, neighbors)
            case Renew():
                self.version += 1
                self.present &= self.versions >= self.version - 1
                living = [q for q, ask in enumerate(self.asks) if ask.node not in self.dead and q not in self.withdrawn]
                self.place(living)
        self.count_subscribes(count, record)
        return self.described(record)

    # --- queries

    def boxes(self) -> QueryBoxes:
        first = np.array([ask.first for ask in self.asks], np.int64).reshape(-1, self.story.attributes)
        last = np.array([ask.last for ask in self.asks], np.int64).reshape(-1, self.story.attributes)
        return QueryBoxes(first, last, np.array([ask.node for ask in self.asks], np.int32))

    def rows(self, layer: Layer, node: int, which: str) -> list[int]:
        """Which trees of the layer, by their place in it, the node speaks to."""
        own = own_trees(self.story.settings, self.layers)[node]
        return [place for place, tree in enumerate(layer.trees) if which == "all" or tree == own]

    def place(self, queries: list[int]) -> None:
        for number in queries:
            for layer in self.layers:
                trees = self.rows(layer, self.asks[number].node, self.story.settings.query_trees)
                query = np.full(len(trees), number, np.int32)
                new = place_queries(layer, self.parameters, self.boxes(), query, np.array(trees, np.int32))
                self.keep(new if self.subqueries is None else joined_subqueries([self.subqueries, new]))

    def keep(self, subqueries: Subqueries) -> None:
        added = len(subqueries.node) - len(self.present)
        self.subqueries = subqueries
        self.versions = np.concatenate([self.versions, np.full(added, self.version)])
        self.present = np.concatenate([self.present, np.ones(added, np.bool_)])

    def withdraw(self, name: str, record: Record) -> None:
        number = next(number for number, ask in enumerate(self.asks) if ask.query == name)
        self.withdrawn.add(number)
        assert self.subqueries is not None
        alive = self.alive()
        gone = self.present & (self.subqueries.query == number) & unbroken(self.subqueries, alive)
        back = self.subqueries.back
        told = self.known() & (back != NONE) & gone[back] & alive[self.subqueries.node]
        senders, receivers = self.subqueries.node[back[told]], self.subqueries.node[told]
        record.sent.update(("unsubscribe", int(a), int(b)) for a, b in zip(senders, receivers, strict=True))
        self.present &= ~gone

    def known(self) -> np.ndarray:
        """The subqueries whose senders still remember them."""
        assert self.subqueries is not None
        return np.ones(len(self.subqueries.node), np.bool_)

    # --- failures and joins

    def mend(self, mended: list[Repaired]) -> None:
        self.is_whole = False
        self.layers = [part.layer for part in mended]
        if self.subqueries is None:
            return
        held = held_by_nodes(self.subqueries, self.present & self.alive()[self.subqueries.node], self.nodes)
        subqueries = self.subqueries
        before = len(subqueries.node)
        for part in mended:
            subqueries = hand_off(part, self.parameters, self.boxes(), subqueries, held)
        versions = self.versions.copy()
        self.keep(subqueries)
        for subquery in range(before, len(subqueries.node)):  # what is handed on is as old as where it comes from
            versions = np.append(versions, versions[subqueries.back[subquery]])
        self.versions = versions

    def come(self, node: int, neighbors: tuple[int, ...]) -> None:
        assert node == self.nodes
        self.nodes += 1
        self.links += [(other, node) for other in neighbors]
        mended = []
        for layer in self.layers:
            nodes = np.concatenate([layer.nodes, empty_nodes(1)]).view(np.recarray)
            mended.append(rejoin(self.graph(), nodes, layer, self.parameters))
        self.mend(mended)

    # --- events

    def tell(self, tell: Tell, record: Record) -> None:
        event, alive = self.configuration.event(tell.event, tell.cells), self.alive()
        counts = {kind: np.zeros((2, self.nodes), np.int64) for kind in ("publish", "notify")}
        for layer in self.layers:
            tree = np.array(self.rows(layer, tell.node, self.story.settings.event_trees), np.int32)
            publisher = np.full(len(tree), tell.node, np.int32)
            rendezvous_key = np.full(len(tree), event.rendezvous_key, np.int64)
            node, hops = route_events(
                layer, self.parameters, publisher, rendezvous_key, tree, alive, *counts["publish"]
            )
            if self.subqueries is None:
                continue
            arrivals = Arrivals(np.zeros(len(tree), np.int32), layer.trees[tree], node, hops)
            self.answer(tell, event.rendezvous_key, arrivals, counts["notify"], record)
        self.sent, self.received = (
            {(kind, node): int(count) for kind in counts for node, count in enumerate(counts[kind][way]) if count}
            for way in (0, 1)
        )

    def answer(self, tell: Tell, rendezvous_key: int, arrivals: Arrivals, counts: np.ndarray, record: Record) -> None:
        assert self.subqueries is not None
        alive = self.alive()
        low = np.array([ask.first for ask in self.asks], np.float64)
        boxes = Boxes(low, np.array([ask.last for ask in self.asks], np.float64) + 0.5)
        held = self.present & alive[self.subqueries.node]
        trees, bits = len(self.story.roots), self.parameters.attribute_bits
        shelves = shelved(self.subqueries, held, self.nodes, trees, self.boxes(), bits)
        values = np.array([tell.cells], np.float64)
        _, subquery = match_arrivals(
            arrivals, np.array([rendezvous_key]), values, boxes, self.subqueries, shelves, self.parameters
        )
        begun = np.bincount(subquery, minlength=len(self.subqueries.node))
        send_back(self.subqueries, begun, alive, True, *counts)
        reached = subquery[unbroken(self.subqueries, alive)[subquery]]
        pairs = {(tell.event, self.asks[query].query) for query in self.subqueries.query[reached]}
        record.delivered.update(pairs - self.delivered)
        self.delivered |= pairs

    # --- what can be seen

    def count_subscribes(self, before: int, record: Record) -> None:
        if self.subqueries is not None:
            new = np.arange(before, len(self.subqueries.node))
            new = new[self.subqueries.back[new] != NONE]
            ends = self.subqueries.node[self.subqueries.back[new]], self.subqueries.node[new]
            record.sent.update(("subscribe", int(a), int(b)) for a, b in zip(*ends, strict=True))

    def described(self, record: Record) -> Record:
        bits = self.parameters.bits
        standing = sorted((tree, place, layer) for layer in self.layers for place, tree in enumerate(layer.trees))
        for tree, place, layer in standing:
            there = np.flatnonzero(layer.nodes["tree"] == tree)
            record.places.append(
                {
                    int(node): (
                        format(layer.nodes["head"][node], f"0{bits}b")[: layer.nodes["length"][node]],
                        int(layer.nodes["length"][node]),
                        None if layer.nodes["parent"][node] == NONE else int(layer.nodes["parent"][node]),
                    )
                    for node in there
                }
            )
            hops = layer.hops[place]
            record.hops.append({int(node): int(hops[node]) for node in np.flatnonzero(hops != FAR)})
        if self.subqueries is not None and self.is_whole:
            stays = np.flatnonzero(self.subqueries.stays & self.present)
            record.stored = {
                (
                    self.asks[self.subqueries.query[subquery]].query,
                    int(self.subqueries.tree[subquery]),
                    int(self.subqueries.node[subquery]),
                )
                for subquery in stays
            }
        return record


def per_node(sent: Counter[tuple[str, int, int]], end: int) -> dict[tuple[str, int], int]:
    """How many events and notifications each node sent (end 1) or received (end 2)."""
    found: Counter[tuple[str, int]] = Counter()
    for link, count in sent.items():
        if link[0] in ("publish", "notify"):
            found[link[0], link[end]] += count
    return dict(found)
