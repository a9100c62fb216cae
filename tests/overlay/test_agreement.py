"""How a broker joins, and how two of them agree on what they are to each other: known answers."""

from collections.abc import Iterable
from typing import Any

from serai.overlay.broker import Broker
from serai.overlay.broker.messages import (
    EVERYTHING,
    FAR,
    LIFE_BITS,
    Assign,
    Disown,
    Effect,
    Info,
    Join,
    Key,
    Leave,
    Send,
    Subscribe,
)
from tests.overlay.bus import Bus
from tests.overlay.test_broker import ask, configuration

NEW_LIFE = 1 << LIFE_BITS  # the numbers and labels of a node that has started again once begin here


def info(number: int, key: Key | None = None, hops: int = FAR, parent: int | None = None, hears: int = 7) -> Info:
    """What a neighbour of node 7 says, one tree."""
    return Info((key,), (hops,), (parent,), frozenset({hears}), number)


def said(effects: Iterable[Effect]) -> list[tuple[int | None, Any]]:
    """To whom which message goes; of what the sender says of itself only the kind, the keys and the hops."""
    told: list[tuple[int | None, Any]] = []
    for effect in effects:
        assert isinstance(effect, Send)
        match effect.message:
            case Info(keys, hops):
                told.append((effect.to, (*keys, *hops)))
            case Join(tree):
                told.append((effect.to, ("join", tree)))
            case message:
                told.append((effect.to, message))
    return told


def joining(key: Key, hops: int) -> tuple[Broker, int]:
    """Node 7, which has asked node 3 with this key; and the number of what it asked."""
    broker = Broker(7, configuration())
    broker.found(3)
    *_, ask = broker.receive(3, info(1, key, hops), 0.0)
    assert isinstance(ask, Send)
    assert isinstance(ask.message, Join)
    return broker, ask.message.info.number


# --- Joining ------------------------------------------------------------------------------------------------


def test_a_node_asks_the_first_it_hears_of_and_takes_the_key_it_gets() -> None:
    broker = Broker(7, configuration())
    assert said(broker.found(3)) == [(3, (None, FAR))]
    broker.found(2)
    asking = broker.receive(3, info(1, Key(4, 1, 1), 1), 0.0)
    assert said(asking) == [(None, (None, 2)), (3, ("join", 0))]
    assert said(broker.receive(2, info(1, Key(0, 0, 0), 0), 0.0)) == [(None, (None, 1))]
    number = asking[-1].message.info.number  # type: ignore[union-attr]
    taken = broker.receive(3, Assign(0, 1, Key(4, 1, 1), number), 0.0)
    assert said(taken) == [(None, (Key(6, 2, 2), 1))]
    assert broker.membership.parents == [3]


def test_a_key_that_was_not_asked_for_is_not_taken() -> None:
    broker = Broker(7, configuration())
    broker.found(3)
    assert broker.receive(3, Assign(0, 1, Key(4, 1, 1), 1), 0.0) == []
    assert broker.membership.keys == [None]


def test_an_answer_to_an_earlier_question_is_not_taken() -> None:
    """Else two children might have one key: in the meantime the number may have been given to another."""
    broker, number = joining(Key(4, 1, 1), 1)
    broker.tick(0.0)  # asks again
    assert broker.receive(3, Assign(0, 1, Key(4, 1, 1), number), 0.0) == []
    assert broker.membership.keys == [None]


def test_a_key_made_from_one_that_the_parent_has_lost_is_not_taken() -> None:
    broker, number = joining(Key(4, 1, 1), 1)
    assert broker.receive(3, Assign(0, 1, Key(2, 2, 1), number), 0.0) == []
    assert broker.membership.keys == [None]


def test_who_has_no_key_gives_none() -> None:
    broker = Broker(7, configuration())
    broker.found(3)
    assert said(broker.receive(3, Join(0, info(1, parent=7)), 0.0)) == [(3, (None, FAR))]
    assert broker.membership.children == [{}]


def root_of(*children: int) -> Broker:
    """Node 0, the root, with these children."""
    root = Broker(0, configuration())
    for child in children:
        root.found(child)
        root.receive(child, Join(0, info(1, parent=0, hears=0)), 0.0)
    return root


def test_children_get_the_lowest_free_number_and_keep_it() -> None:
    root = root_of(1, 2, 3)
    root.lost(2)
    root.found(4)
    again = root.receive(3, Join(0, info(2, parent=0, hears=0)), 0.0)
    assert said(again) == [(3, Assign(0, 3, Key(0, 0, 0), 2))]
    new = root.receive(4, Join(0, info(1, parent=0, hears=0)), 0.0)
    assert said(new) == [(4, Assign(0, 2, Key(0, 0, 0), 1))]


def test_a_child_that_has_joined_elsewhere_is_let_go() -> None:
    root = root_of(1)
    root.receive(1, info(0, hears=0), 0.0)  # sent before it asked
    root.receive(1, info(2, parent=0, hears=0), 0.0)  # sent before it got its key
    assert root.membership.children == [{1: 1}]
    root.receive(1, info(3, Key(0b110, 2, 2), 1, 5, hears=0), 0.0)
    assert root.membership.children == [{}]


def test_a_request_that_comes_after_a_newer_word_is_not_granted() -> None:
    """By then it has another parent."""
    root = root_of()
    root.found(1)
    root.receive(1, info(5, Key(0b110, 2, 2), 1, 5, hears=0), 0.0)
    assert root.receive(1, Join(0, info(3, parent=0, hears=0)), 0.0) == []
    assert root.membership.children == [{}]


def test_who_asked_a_neighbour_that_lost_its_key_asks_another() -> None:
    broker = Broker(7, configuration())
    broker.found(3)
    broker.found(4)
    broker.receive(3, info(1, Key(4, 1, 1), 1), 0.0)
    broker.receive(4, info(1, Key(2, 2, 1), 1), 0.0)
    assert (4, ("join", 0)) in said(broker.receive(3, info(2, None, 1), 0.0))


def test_a_lost_request_is_made_again_with_the_next_tick() -> None:
    broker, _ = joining(Key(4, 1, 1), 1)
    assert said(broker.tick(0.0)) == [(None, (None, 2)), (3, ("join", 0))]


def test_nothing_is_heard_from_strangers() -> None:
    broker = Broker(7, configuration())
    answer = broker.receive(3, info(1, Key(4, 1, 1), 1), 0.0)
    assert said(answer) == [(3, (None, FAR))]  # it counts node 7 among its neighbours, but not the other way round
    assert broker.receive(3, info(2, Key(4, 1, 1), 1, hears=8), 0.0) == []
    assert broker.membership.hops == [FAR]
    query = broker.configuration.query("query", [0], [1])
    assert said(broker.receive(3, Subscribe(query, 1, 0, EVERYTHING, 1, 9.0, (3,)), 0.0)) == [(3, (None, FAR))]
    assert broker.queries.subqueries == {}


# --- Agreement ----------------------------------------------------------------------------------------------


def test_an_older_word_does_not_overrule_a_newer_one() -> None:
    broker = Broker(7, configuration())
    broker.found(3)
    broker.receive(3, info(2, None, 1), 0.0)
    assert broker.receive(3, info(1, Key(4, 1, 1), 0), 0.0) == []
    assert broker.membership.hops == [2]


def test_a_link_is_one_that_both_ends_know_of() -> None:
    """The parent has lost the child, and not the other way round: the child looks for another parent."""
    broker, number = joining(Key(4, 1, 1), 1)
    broker.receive(3, Assign(0, 1, Key(4, 1, 1), number), 0.0)
    assert said(broker.receive(3, info(2, Key(4, 1, 1), 1, hears=8), 0.0)) == [(None, (None, FAR))]


def test_a_child_that_its_parent_has_not_is_told_and_looks_for_another() -> None:
    root = root_of()
    root.found(1)
    claim = info(5, Key(0b100, 1, 1), 1, 0, hears=0)
    assert said(root.receive(1, claim, 0.0)) == [(1, Disown(0, 5))]
    broker, number = joining(Key(4, 1, 1), 1)
    broker.receive(3, Assign(0, 1, Key(4, 1, 1), number), 0.0)
    assert broker.receive(3, Disown(0, number), 0.0) == []  # what it said before it had the key
    assert said(broker.receive(3, Disown(0, number + 1), 0.0)) == [(None, (None, 2))]


def test_a_child_with_another_key_than_its_parent_has_for_it_is_told() -> None:
    """Else the parent would send it what belongs to a first child, and give another the key that it has."""
    root = root_of(1)
    second = info(2, Key(0b010, 2, 1), 1, 0, hears=0)
    assert said(root.receive(1, second, 0.0)) == [(1, Disown(0, 2))]
    assert root.membership.children == [{}]


def test_nothing_hangs_on_who_has_started_again() -> None:
    """A parent that has forgotten its children would give their numbers to others."""
    broker, number = joining(Key(4, 1, 1), 1)
    broker.receive(3, Assign(0, 1, Key(4, 1, 1), number), 0.0)
    reborn = info(NEW_LIFE + 1, Key(4, 1, 1), 1)
    assert said(broker.receive(3, reborn, 0.0)) == [(3, (None, 2)), (None, (None, 2))]


def test_what_a_neighbour_sent_in_an_earlier_life_is_forgotten() -> None:
    broker = Broker(7, configuration())
    broker.found(3)
    broker.receive(3, info(1), 0.0)
    query = broker.configuration.query("query", [0], [1])
    for label in (5, NEW_LIFE + 5):
        broker.receive(3, Subscribe(query, label, 0, EVERYTHING, label, 9.0, (3,)), 0.0)
    broker.receive(3, info(NEW_LIFE + 6), 0.0)
    assert list(broker.queries.subqueries) == [(3, NEW_LIFE + 5)]


def test_a_good_bye_is_a_loss_unless_it_comes_too_late() -> None:
    bus = Bus(configuration(), {0: {1}, 1: {0, 2}, 2: {1}})
    ask(bus, 1, "query", 0, 7.5)
    bus.carry_out(1, bus.brokers[1].leave())
    bus.settle()
    assert bus.brokers[0].queries.subqueries == {}
    assert bus.brokers[0].membership.children == [{}]
    assert bus.brokers[2].membership.keys == [None]
    root = root_of(1)
    assert root.receive(1, Leave(0), 0.0) == []
    assert root.membership.children == [{1: 1}]
