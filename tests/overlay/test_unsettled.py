"""Whatever goes wrong: no wrong delivery, no double one, and two ticks after the last fault everything is delivered."""

import random

import pytest

from serai.core.content import Attribute
from serai.overlay import pub2sub, tinymq
from serai.overlay.broker import NetworkConfiguration
from serai.overlay.tinymq import OverlaySettings
from tests.effort import THOROUGH
from tests.overlay.naive import Links
from tests.overlay.unsettled import TICK_S, Air

SEEDS = range(3000 if THOROUGH else 60)

SYSTEMS: tuple[OverlaySettings, ...] = (
    tinymq.Settings(attribute_bits=3),
    tinymq.Settings(attribute_bits=3, routing="greedy", mapping="morton"),
    tinymq.Settings(attribute_bits=3, routing="tree-edges", event_trees="all"),
    tinymq.Settings(attribute_bits=3, query_trees="own", event_trees="all"),
    pub2sub.Settings(attribute_bits=3),
)


def network(chance: random.Random) -> Air:
    """A connected network of up to 12 nodes, with up to three roots."""
    nodes = chance.randint(2, 12)
    links: Links = {node: set() for node in range(nodes)}
    pairs = [(chance.randrange(node), node) for node in range(1, nodes)]
    pairs += [tuple(chance.sample(range(nodes), 2)) for _ in range(chance.randrange(nodes))]  # type: ignore[misc]
    for one, other in pairs:
        links[one].add(other)
        links[other].add(one)
    roots = tuple(chance.sample(range(nodes), chance.randint(1, min(3, nodes))))
    attributes = (Attribute("A", "real", 0, 8), Attribute("B", "real", 0, 8))
    renewal_s = chance.choice([1.7, 1e6]) * TICK_S  # the long one never comes: then only repair sends queries anew
    agreed = NetworkConfiguration(roots, attributes, chance.choice(SYSTEMS), 2 * renewal_s + 2 * TICK_S, renewal_s)
    return Air(agreed, links, chance)


def act(air: Air, number: int) -> None:
    """Something happens: a fault, or what an application wants."""
    chance, there = air.chance, sorted(air.brokers)
    node = chance.choice(there)
    kind = chance.choice(["ask"] * 3 + ["tell"] * 4 + ["withdraw", "crash", "restart", "lose", "find", "leave"])
    if kind == "ask":
        low = [chance.uniform(0, 6) for _ in range(2)]
        high = [8 - chance.uniform(0, 8 - least) / 2 for least in low]
        name = chance.choice(["same", f"q{number}"])  # a name that others use, and that comes back
        if f"{node} {name}" not in air.asked[node]:
            air.subscribe(node, air.configuration.query(f"{node} {name}", low, high))
    elif kind == "tell":
        air.publish(node, air.configuration.event(f"e{number}", [chance.uniform(0, 8) for _ in range(2)]))
    elif kind == "withdraw" and air.asked[node]:
        air.unsubscribe(node, chance.choice(sorted(air.asked[node])))
    elif kind in ("crash", "leave") and len(there) > 1:
        air.crash(node) if kind == "crash" else air.leave(node)
        if chance.random() < 0.5:  # so soon that nobody may notice
            air.after(chance.uniform(0, 1), lambda: None if node in air.brokers else air.start(node))
    elif kind == "restart" and (away := sorted(air.links.keys() - air.brokers.keys())):
        air.start(chance.choice(away))
    elif kind in ("lose", "find"):
        other = chance.choice(sorted(air.links[node]))
        air.lose(node, other) if kind == "lose" else air.find(node, other)


def reaches_all(air: Air, links: Links) -> bool:
    """Whether those who are there can all reach each other and every root."""
    seen, waiting = set(), [min(air.brokers)]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += links[node] & air.brokers.keys()
    return seen == air.brokers.keys() and seen >= set(air.configuration.roots)


def faults(air: Air, ticks: int) -> None:
    for tick in range(ticks):
        air.tick_all()
        for number in range(air.chance.randint(2, 25)):
            air.after(air.chance.uniform(0, TICK_S), lambda number=number, tick=tick: act(air, 100 * tick + number))  # type: ignore[misc]
        air.run((tick + 1) * TICK_S)
    if not reaches_all(air, air.links):
        for node in sorted(air.links.keys() - air.brokers.keys()):
            air.start(node)
    air.calm()


def lose_on_one_side(air: Air) -> None:
    """Links that one side takes for lost, for good, while the other goes on hearing it; all can do without them."""
    links = {node: set(others) for node, others in air.links.items()}
    for node in sorted(air.brokers):
        for other in sorted(links[node] & air.brokers.keys()):
            if air.chance.random() < 0.5:
                continue
            without = links | {node: links[node] - {other}, other: links[other] - {node}}
            if reaches_all(air, without):
                links = without
                air.lose(node, other)


def assert_all_is_delivered_after_two_ticks(air: Air) -> None:
    for _ in range(2):
        air.tick_all()
        air.run(air.now_s + TICK_S)
    wanted, before = set(), set(air.delivered)
    for number in range(30):
        event = air.configuration.event(f"last {number}", [air.chance.uniform(0, 8) for _ in range(2)])
        wanted |= air.wanted(event)
        air.publish(air.chance.choice(sorted(air.brokers)), event)
    air.run(air.now_s + TICK_S)
    assert air.wrong == []
    assert air.delivered.keys() - before == wanted


@pytest.mark.parametrize("seed", SEEDS)
def test_two_ticks_after_the_last_fault_all_is_delivered_and_never_anything_else(seed: int) -> None:
    chance = random.Random(seed)
    air = network(chance)
    faults(air, chance.randint(1, 6))
    assert_all_is_delivered_after_two_ticks(air)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_link_that_one_side_has_lost_for_good_leaves_no_dead_zone(seed: int) -> None:
    chance = random.Random(seed)
    air = network(chance)
    faults(air, chance.randint(1, 3))
    lose_on_one_side(air)
    assert_all_is_delivered_after_two_ticks(air)
