"""Random networks with something happening in them, told the same to all twins; and what each twin says came of it.

`FromAbove` asks the naive overlay, `FromBrokers` lets brokers talk to each other.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from hypothesis import strategies as st

from serai.core.content import Attribute
from serai.overlay import pub2sub, tinymq
from serai.overlay.broker import NetworkConfiguration
from serai.overlay.broker.messages import Notify, Publish, Subscribe, Unsubscribe
from serai.overlay.tinymq import OverlaySettings
from tests.overlay.bus import Bus
from tests.overlay.naive import Links, Overlay, rendezvous_key_of, rendezvous_keys_of

RENEWAL_S, LEASE_S = 100.0, 150.0  # a subquery outlives one renewal, and not the next


# --- What can happen ----------------------------------------------------------------------------------------


class Ask(NamedTuple):
    """A node subscribes: to all events in these cells, first .. last of each attribute."""

    query: str
    node: int
    first: tuple[int, ...]
    last: tuple[int, ...]


class Tell(NamedTuple):
    """A node publishes an event that lies in these cells."""

    event: str
    node: int
    cells: tuple[int, ...]


class Withdraw(NamedTuple):
    query: str
    node: int


class Fail(NamedTuple):
    nodes: tuple[int, ...]


class Repair(NamedTuple):
    """Who has lost a key or a way looks for another."""


class Come(NamedTuple):
    """A new node comes into reach of others, after a repair."""

    node: int
    neighbors: tuple[int, ...]


class Renew(NamedTuple):
    """All living subscribers send their queries anew."""


Step = Ask | Tell | Withdraw | Fail | Repair | Come | Renew


@dataclass(frozen=True)
class Story:
    """A network, the settings, and what happens."""

    links: tuple[tuple[int, int], ...]
    nodes: int
    roots: tuple[int, ...]
    attributes: int
    settings: OverlaySettings
    steps: tuple[Step, ...]

    @property
    def routing(self) -> str:
        """Said once more than by the protocols' hooks, for the naive twin."""
        match self.settings:
            case tinymq.Settings(routing=routing):
                return routing
            case pub2sub.Settings():
                return "tree-edges"
        return "greedy"

    @property
    def layers(self) -> tuple[tuple[int, ...], ...]:
        """Said once more than by the protocols' hooks, for the naive twin."""
        trees = tuple(range(len(self.roots)))
        match self.settings:
            case tinymq.Settings():
                return (trees,)
            case pub2sub.Settings():
                return tuple((tree,) for tree in trees)
        return tuple(layer for layer in (trees[::2], trees[1::2]) if layer)

    def neighbors(self) -> Links:
        found: Links = {node: set() for node in range(self.nodes)}
        for one, other in self.links:
            found[one].add(other)
            found[other].add(one)
        return found

    def configuration(self) -> NetworkConfiguration:
        cells = 2**self.settings.attribute_bits  # so that the values of an event are its cells
        attributes = tuple(Attribute(f"A{number}", "real", 0, cells) for number in range(self.attributes))
        return NetworkConfiguration(self.roots, attributes, self.settings, LEASE_S, RENEWAL_S, mends=False)

    def asked(self) -> dict[str, Ask]:
        return {step.query: step for step in self.steps if isinstance(step, Ask)}


# --- What came of a step ------------------------------------------------------------------------------------


@dataclass
class Record:
    """All that can be seen of one step."""

    sent: Counter[tuple[str, int, int]] = field(default_factory=Counter)  # kind, sender, receiver
    delivered: Counter[tuple[Hashable, Hashable]] = field(default_factory=Counter)  # event, query
    lost: Counter[str] = field(default_factory=Counter)  # reason
    stored: set[tuple[Hashable, int, int]] = field(default_factory=set)  # query, tree, node
    places: list[dict[int, tuple[str, int, int | None]]] = field(default_factory=list)
    """[tree][node]: key as far as a rendezvous key is long, its length, parent"""
    hops: list[dict[int, int]] = field(default_factory=list)  # [tree][node]


# --- Seen from above ----------------------------------------------------------------------------------------


class FromAbove:
    """The naive overlay, step by step."""

    def __init__(self, story: Story) -> None:
        settings = story.settings
        self.story = story
        self.bits = settings.attribute_bits
        self.asked: dict[str, Ask] = {}
        self.version = 0
        self.overlay = Overlay(
            story.neighbors(),
            story.roots,
            story.routing,
            story.layers,
            settings.query_trees,
            settings.event_trees,
            settings.zones,
        )

    def take(self, step: Step) -> Record:
        record, overlay = Record(), self.overlay
        overlay.messages.clear()
        before = set(overlay.delivered)
        match step:
            case Ask():
                self.asked[step.query] = step
                self.ask(step)
            case Tell():
                self.tell(step, record)
            case Withdraw(query):
                del self.asked[query]
                for (sender, receiver), count in overlay.unsubscribe(query).items():
                    record.sent["unsubscribe", sender, receiver] += count
            case Fail(nodes):
                overlay.fail(set(nodes))
                self.asked = {query: ask for query, ask in self.asked.items() if ask.node not in nodes}
            case Repair():
                overlay.rejoin()
            case Come(node, neighbors):
                overlay.add(node, set(neighbors))
            case Renew():
                self.version += 1
                overlay.forget(self.version - 1)
                for ask in self.asked.values():
                    self.ask(ask)
        record.sent.update(("subscribe", message.sender, message.receiver) for message in overlay.messages)
        record.delivered.update(overlay.delivered - before)
        return self.described(record)

    def ask(self, ask: Ask) -> None:
        rendezvous_keys = rendezvous_keys_of(ask.first, ask.last, self.bits, self.story.settings.mapping)
        self.overlay.subscribe(ask.query, ask.node, rendezvous_keys, self.version)

    def tell(self, tell: Tell, record: Record) -> None:
        wanted: set[Hashable] = {query for query, ask in self.story.asked().items() if is_in(tell, ask)}
        rendezvous_key = rendezvous_key_of(tell.cells, self.bits, self.story.settings.mapping)
        events, notifications = self.overlay.publish(tell.event, tell.node, rendezvous_key, wanted)
        for kind, walks in (("publish", events), ("notify", notifications)):
            for walk in walks:
                record.sent.update((kind, *link) for link in zip(walk.path, walk.path[1:], strict=False))
                record.lost.update(reason for reason in [walk.end] if reason not in ("here", "delivered"))
        if not events:
            record.lost["no-route"] += 1

    def described(self, record: Record) -> Record:
        overlay, bits = self.overlay, self.bits * self.story.attributes
        record.stored = overlay.stored()
        record.places = [
            {node: (key[:bits], len(key), parents.get(node)) for node, key in keys.items()}
            for keys, parents in zip(overlay.keys, overlay.parents, strict=True)
        ]
        record.hops = [overlay.hops(tree) for tree in range(len(overlay.roots))]
        return record


def is_in(tell: Tell, ask: Ask) -> bool:
    return all(low <= cell <= high for low, cell, high in zip(ask.first, tell.cells, ask.last, strict=True))


# --- Told by brokers ----------------------------------------------------------------------------------------


KINDS: dict[type[Any], str] = {
    Subscribe: "subscribe", Unsubscribe: "unsubscribe", Publish: "publish", Notify: "notify",
}  # fmt: skip


class FromBrokers:
    """Brokers on a wire, step by step."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.configuration = story.configuration()
        self.bus = Bus(self.configuration, story.neighbors())

    def take(self, step: Step) -> Record:
        bus = self.bus
        bus.sent.clear()
        bus.delivered.clear()
        bus.dropped.clear()
        match step:
            case Ask(query, node, first, last):
                bus.subscribe(node, self.configuration.query(query, first, [cell + 0.5 for cell in last]))
            case Tell(event, node, cells):
                bus.publish(node, self.configuration.event(event, cells))
            case Withdraw(query, node):
                bus.unsubscribe(node, query)
            case Fail(nodes):
                bus.fail(set(nodes))
            case Repair():
                bus.tick()
            case Come(node, neighbors):
                bus.add(node, set(neighbors))
            case Renew():
                bus.tick(RENEWAL_S)
        kinds = ((KINDS.get(type(message)), sender, receiver) for sender, receiver, message in bus.sent)
        return self.described(
            Record(
                sent=Counter((kind, sender, receiver) for kind, sender, receiver in kinds if kind is not None),
                delivered=Counter((event.name, query.name) for _, event, query in bus.delivered),
                lost=Counter(drop.reason for _, drop in bus.dropped if type(drop.message) in (Publish, Notify)),
            )
        )

    def described(self, record: Record) -> Record:
        bus, bits = self.bus, self.configuration.bits
        record.stored = bus.stored()
        members = {node: broker.membership for node, broker in bus.brokers.items()}
        for tree in range(len(self.story.roots)):
            keys = {node: key for node, member in members.items() if (key := member.keys[tree]) is not None}
            record.places.append(
                {
                    node: (format(key.head, f"0{bits}b")[: key.length], key.length, members[node].parents[tree])
                    for node, key in keys.items()
                }
            )
            record.hops.append(
                {node: member.hops[tree] for node, member in members.items() if member.hops[tree] < len(members)}
            )
        return record


# --- Telling them -------------------------------------------------------------------------------------------


@st.composite
def stories(draw: st.DrawFn, most_nodes: int = 12, most_steps: int = 16, any_zones: bool = False) -> Story:
    """Any small network and settings, and any few things happening; brokers know of zones by arrival only."""
    nodes = draw(st.integers(1, most_nodes))
    settings = draw(all_settings(any_zones))
    attributes = draw(st.integers(1, 2))
    roots = draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=3, unique=True))
    tree = [(draw(st.integers(0, node - 1)), node) for node in range(1, nodes)]
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] < pair[1])
    more = draw(st.lists(pairs, max_size=nodes)) if nodes > 1 else []
    teller = Teller(nodes, set(roots), attributes, 2**settings.attribute_bits)
    for _ in range(draw(st.integers(0, most_steps))):
        teller.go_on(draw)
    return Story(tuple({*tree, *more}), nodes, tuple(roots), attributes, settings, tuple(teller.steps))


class TwoLayers(OverlaySettings):
    """A protocol of nobody's, to see that its own file is enough: even trees share the nodes out, odd ones too."""

    def layers(self, trees: int) -> list[list[int]]:
        return [layer for layer in (list(range(0, trees, 2)), list(range(1, trees, 2))) if layer]

    def own_layer(self, node: int, layers: int) -> int:
        return node % layers

    def routing_code(self) -> int:
        return tinymq.GREEDY


@st.composite
def all_settings(draw: st.DrawFn, any_zones: bool = False) -> OverlaySettings:
    query_trees, event_trees = draw(st.sampled_from([("all", "own"), ("all", "all"), ("own", "all")]))
    common: dict[str, Any] = {
        "attribute_bits": draw(st.integers(1, 4)),
        "mapping": draw(st.sampled_from(tinymq.MAPPINGS)),
        "query_trees": query_trees,
        "event_trees": event_trees,
    }
    if any_zones and draw(st.booleans()):
        routed = [partial(tinymq.Settings, routing=routing) for routing in ("strict", "tree-edges")]
        return draw(st.sampled_from([*routed, pub2sub.Settings]))(**common, zones="subtree")
    protocols = [partial(tinymq.Settings, routing=routing) for routing in tinymq.ROUTINGS]
    return draw(st.sampled_from([*protocols, pub2sub.Settings, TwoLayers]))(**common)


@dataclass
class Teller:
    """Who makes up the next step, and knows who is still alive."""

    next_node: int
    roots: set[int]
    attributes: int
    cells: int
    alive: list[int] = field(default_factory=list)
    asked: dict[str, int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.alive = list(range(self.next_node))

    def go_on(self, draw: st.DrawFn) -> None:
        kind = draw(st.sampled_from([Ask, Ask, Ask, Tell, Tell, Tell, Tell, Withdraw, Fail, Repair, Come, Renew]))
        cell = st.integers(0, self.cells - 1)
        cells = st.tuples(*[cell] * self.attributes)
        if kind is Ask:
            one, other = draw(cells), draw(cells)
            first, last = tuple(map(min, one, other)), tuple(map(max, one, other))
            ask = Ask(f"q{len(self.steps)}", draw(st.sampled_from(self.alive)), first, last)
            self.asked[ask.query] = ask.node
            self.steps.append(ask)
        elif kind is Tell:
            self.steps.append(Tell(f"e{len(self.steps)}", draw(st.sampled_from(self.alive)), draw(cells)))
        elif kind is Withdraw and self.asked:
            query = draw(st.sampled_from(sorted(self.asked)))
            self.steps.append(Withdraw(query, self.asked.pop(query)))
        elif kind is Fail:
            self.fail(draw)
        elif kind is Come:
            neighbors = draw(st.lists(st.sampled_from(self.alive), min_size=1, max_size=4, unique=True))
            self.steps += [Repair(), Come(self.next_node, tuple(neighbors))]
            self.alive.append(self.next_node)
            self.next_node += 1
        elif kind is Repair:
            self.steps.append(Repair())
        elif kind is Renew:
            self.steps += [Repair(), Renew()]

    def fail(self, draw: st.DrawFn) -> None:
        mortal = [node for node in self.alive if node not in self.roots]
        dead = draw(st.lists(st.sampled_from(mortal), max_size=3, unique=True)) if mortal else []
        self.alive = [node for node in self.alive if node not in dead]
        self.asked = {query: node for query, node in self.asked.items() if node not in dead}
        self.steps.append(Fail(tuple(dead)))
