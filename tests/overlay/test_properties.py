"""What holds in every network of brokers, in whatever order their messages come."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.overlay.tinymq import HERE
from tests.overlay.bus import Bus
from tests.overlay.naive import Overlay
from tests.overlay.stories import (
    LEASE_S,
    RENEWAL_S,
    Ask,
    Come,
    Fail,
    FromBrokers,
    Story,
    Tell,
    Withdraw,
    is_in,
    stories,
)


def hasty(story: Story, order: random.Random) -> FromBrokers:
    """Brokers whose messages come in any order that the links allow."""
    brokers = FromBrokers(story)
    brokers.bus = Bus(story.configuration(), story.neighbors(), order)
    return brokers


def works(story: Story) -> bool:
    return story.routing != "as-printed"


def is_connected(bus: Bus) -> bool:
    seen, waiting = set(), [next(iter(bus.links))]
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += bus.links[node]
    return len(seen) == len(bus.links)


# --- Trees --------------------------------------------------------------------------------------------------


def check_trees(bus: Bus, story: Story) -> None:
    """Keys are unique, children have their parent's key and more; who can reach a root has a key and knows how far."""
    above = Overlay({node: set(others) for node, others in bus.links.items()}, story.roots)
    for tree in range(len(story.roots)):
        members = {node: broker.membership for node, broker in bus.brokers.items()}
        hops = above.true_hops(tree)
        assert {node: member.hops[tree] for node, member in members.items() if node in hops} == hops
        for node, member in members.items():
            for child in member.children[tree]:
                assert members[child].parents[tree] == node
                assert members[child].keys[tree] == member.key_of(child, tree)
            if (parent := member.parents[tree]) is not None:
                assert node in members[parent].children[tree]
        for rendezvous_key in range(2**bus.configuration.bits):
            homes = [
                node
                for node in hops
                if members[node].keys[tree] and bus.brokers[node].routes.next_hop(tree, rendezvous_key) == HERE
            ]
            assert len(homes) == 1
    for broker in bus.brokers.values():
        for trees in story.layers:
            reaches = any(broker.membership.hops[tree] < len(bus.brokers) for tree in trees)
            assert sum(broker.membership.keys[tree] is not None for tree in trees) == int(reaches)


@given(stories(most_nodes=10).filter(works), st.randoms(use_true_random=False))
def test_trees_are_whole_after_every_repair(story: Story, order: random.Random) -> None:
    brokers = hasty(story, order)
    check_trees(brokers.bus, story)
    for step in story.steps:
        if isinstance(step, Fail | Come):
            brokers.take(step)
            brokers.bus.tick()
            check_trees(brokers.bus, story)


# --- Meeting ------------------------------------------------------------------------------------------------


@given(stories().filter(works), st.randoms(use_true_random=False))
def test_every_wanted_event_comes_once_and_no_other(story: Story, order: random.Random) -> None:
    """Until somebody fails; nodes may come, and queries be withdrawn."""
    brokers, asked = hasty(story, order), {}
    for step in story.steps:
        if isinstance(step, Fail):
            return
        record = brokers.take(step)
        if isinstance(step, Ask):
            asked[step.query] = step
        elif isinstance(step, Tell):
            wanted = {(step.event, query) for query, ask in asked.items() if is_in(step, ask)}
            assert record.delivered == dict.fromkeys(wanted, 1)
        elif isinstance(step, Withdraw):
            del asked[step.query]


@given(stories().filter(works), st.randoms(use_true_random=False))
def test_nothing_is_lost_once_all_is_mended_and_renewed(story: Story, order: random.Random) -> None:
    brokers, asked = hasty(story, order), {}
    for step in story.steps:
        brokers.take(step)
        if isinstance(step, Ask):
            asked[step.query] = step
        elif isinstance(step, Withdraw):
            del asked[step.query]
    bus = brokers.bus
    bus.tick()
    bus.tick(RENEWAL_S)
    if not is_connected(bus):
        return
    for number, node in enumerate(sorted(bus.brokers)):
        cells = tuple(order.randrange(2**story.settings.attribute_bits) for _ in range(story.attributes))
        tell = Tell(f"last {number}", node, cells)
        living = (ask for ask in asked.values() if ask.node in bus.brokers)
        wanted = {(tell.event, ask.query) for ask in living if is_in(tell, ask)}
        assert brokers.take(tell).delivered == dict.fromkeys(wanted, 1)


@given(stories())
def test_nobody_gets_what_they_did_not_ask_for(story: Story) -> None:
    """In any routing, whatever fails: only living subscribers whose box holds the event, and once."""
    brokers, asked = FromBrokers(story), story.asked()
    for step in story.steps:
        record = brokers.take(step)
        assert set(record.delivered.values()) <= {1}
        for _, query in record.delivered:
            assert isinstance(step, Tell)
            assert is_in(step, asked[str(query)])
            assert query in brokers.bus.brokers[asked[str(query)].node].queries.subscriptions


@given(stories().filter(works))
def test_when_all_is_withdrawn_nothing_is_left(story: Story) -> None:
    brokers, asked = FromBrokers(story), {}
    for step in story.steps:
        if isinstance(step, Fail | Withdraw):
            continue
        brokers.take(step)
        if isinstance(step, Ask):
            asked[step.query] = step.node
    for query, node in asked.items():
        brokers.bus.unsubscribe(node, query)
    assert not any(broker.queries.subqueries or broker.queries.labelled for broker in brokers.bus.brokers.values())


@given(stories())
def test_what_nobody_renews_is_forgotten(story: Story) -> None:
    brokers = FromBrokers(story)
    for step in story.steps:
        brokers.take(step)
    for broker in brokers.bus.brokers.values():
        broker.queries.subscriptions.clear()  # as if all subscribers had gone without a word
    brokers.bus.tick(LEASE_S)
    assert not any(broker.queries.subqueries or broker.queries.labelled for broker in brokers.bus.brokers.values())


# --- Termination --------------------------------------------------------------------------------------------


def potential(above: Overlay, tree: int, node: int, rendezvous_key: str) -> tuple[int, ...]:
    """What grows with every hop: docs/overlay/tinymq.md, "Why it ends"."""
    if node not in above.keys[tree]:
        return -1, -above.hops(tree)[node]
    path = above.path_to_root(tree, node)
    matched = max(
        len(above.keys[tree][member]) for member in path if rendezvous_key.startswith(above.keys[tree][member])
    )
    key = above.keys[tree][node]
    if above.routing == "greedy":
        return 0, -above.hops_in_tree(tree, node, above.rendezvous(tree, rendezvous_key))
    shared = (
        len(rendezvous_key) + 1
        if rendezvous_key.startswith(key)
        else max(n for n in range(len(key)) if rendezvous_key[:n] == key[:n])
    )
    return 0, matched, shared, -len(key)


@pytest.mark.parametrize("routing", ["strict", "greedy", "tree-edges"])
@given(story=stories(most_steps=0))
def test_every_hop_brings_a_rendezvous_key_nearer(routing: str, story: Story) -> None:
    above = Overlay(story.neighbors(), story.roots, routing)
    bits = min(story.attributes * story.settings.attribute_bits, 6)
    for tree in range(len(story.roots)):
        for number in range(2**bits):
            rendezvous_key = format(number, f"0{bits}b")
            for node in range(story.nodes):
                walk = above.walk(tree, node, rendezvous_key)
                steps = [potential(above, tree, member, rendezvous_key) for member in walk.path]
                assert all(before < after for before, after in pairwise(steps))
                assert walk.path[-1] == above.rendezvous(tree, rendezvous_key)
