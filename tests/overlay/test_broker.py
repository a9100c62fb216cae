"""What one broker does, and what small networks of them do: known answers."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from serai.core.content import Attribute
from serai.core.errors import BadInput
from serai.overlay import pub2sub, tinymq
from serai.overlay.broker import Broker, NetworkConfiguration
from serai.overlay.broker.messages import (
    EVERYTHING,
    FAR,
    Accept,
    Broken,
    Deliver,
    Drop,
    Effect,
    Notify,
    Publish,
    Send,
    Subscribe,
    Unsubscribe,
)
from tests.overlay.bus import Bus
from tests.overlay.naive import Links
from tests.test_project import modules_after


def configuration(roots: tuple[int, ...] = (0,), mends: bool = False, **settings: Any) -> NetworkConfiguration:
    """Rendezvous keys of three bits for the values 0 .. 7."""
    system = tinymq.Settings(attribute_bits=3, **settings)
    return NetworkConfiguration(roots, (Attribute("A", "real", 0, 8),), system, 150, 100, mends)


def line(nodes: int, agreed: NetworkConfiguration | None = None) -> Bus:
    """A line 0 - 1 - 2 - .. from the root: keys 1, 11, 111, .."""
    links: Links = {node: {other for other in (node - 1, node + 1) if 0 <= other < nodes} for node in range(nodes)}
    return Bus(agreed or configuration(), links)


def ask(bus: Bus, node: int, name: str, low: float, high: float) -> None:
    bus.subscribe(node, bus.configuration.query(name, [low], [high]))


def tell(bus: Bus, node: int, value: float) -> set[str]:
    """Publish a value; which queries got it."""
    bus.delivered.clear()
    bus.publish(node, bus.configuration.event(("event", len(bus.sent), value), [value]))
    return {str(query.name) for _, _, query in bus.delivered}


def reasons(effects: Iterable[Effect]) -> list[str]:
    return [effect.reason for effect in effects if isinstance(effect, Drop)]


def test_the_example_in_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "overlay" / "tinymq.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    exec(compile(example, "docs/overlay/tinymq.md", "exec"), {})
    printed = capsys.readouterr().out.strip()
    assert f"It prints `{printed}`" in page


# --- Repair -------------------------------------------------------------------------------------------------


def test_a_lost_key_is_looked_for_at_the_next_tick_only() -> None:
    """A ring of five: when 1 dies, 2 could ask 3, which may not know yet that it has lost its own key."""
    bus = Bus(configuration(), {0: {1, 4}, 1: {0, 2}, 2: {1, 3}, 3: {2, 4}, 4: {0, 3}})
    assert bus.brokers[2].membership.parents == [1]
    bus.fail({1})
    assert bus.brokers[2].membership.keys == [None]
    assert bus.brokers[2].membership.hops == [FAR]
    bus.tick()
    assert bus.brokers[2].membership.parents == [3]
    assert bus.brokers[2].membership.hops == [3]


def test_a_parent_takes_over_from_a_child_that_died() -> None:
    bus = Bus(configuration(), {0: {1, 2}, 1: {0}, 2: {0}})
    ask(bus, 2, "query", 4, 7)
    assert bus.stored() == {("query", 0, 1)}  # the rendezvous keys that begin with 1 are node 1's
    bus.fail({1})
    assert bus.stored() == {("query", 0, 0)}
    assert tell(bus, 2, 5) == {"query"}


def test_a_new_child_is_given_its_part_of_the_queries() -> None:
    bus = Bus(configuration(), {0: {1}, 1: {0}})
    ask(bus, 1, "all", 0, 7.5)
    ask(bus, 1, "low", 0, 1.5)
    bus.sent.clear()
    bus.add(2, {0})
    (given,) = [message for _, receiver, message in bus.sent if isinstance(message, Subscribe) and receiver == 2]
    assert given.query.name == "all"
    assert bus.stored() == {("all", 0, 1), ("all", 0, 2), ("all", 0, 0), ("low", 0, 0)}
    assert tell(bus, 0, 2) == {"all"}
    bus.unsubscribe(1, "all")
    assert tell(bus, 0, 2) == set()
    assert bus.brokers[2].queries.subqueries == {}


def test_what_only_the_dead_knew_comes_back_with_the_renewal() -> None:
    """A ring of five: the query of 3 for what lies at 4, its parent, goes no farther, so the root has not seen it."""
    bus = Bus(configuration(), {0: {1, 4}, 1: {0, 2}, 2: {1, 3}, 3: {2, 4}, 4: {0, 3}})
    ask(bus, 3, "query", 2, 2.5)  # the rendezvous key 010, under node 4's key 01
    assert {node for _, _, node in bus.stored()} == {4}
    bus.fail({4})
    bus.tick()
    assert tell(bus, 0, 2) == set()
    bus.tick(100)
    assert tell(bus, 0, 2) == {"query"}


def test_a_repair_has_the_queries_that_passed_there_sent_anew() -> None:
    """The same ring: 3 has sent its query to 4, and knows; that of 1 went to the root, far from all of this."""
    bus = Bus(configuration(mends=True), {0: {1, 4}, 1: {0, 2}, 2: {1, 3}, 3: {2, 4}, 4: {0, 3}})
    ask(bus, 3, "query", 2, 2.5)
    ask(bus, 1, "other", 0, 0.5)
    bus.fail({4})
    bus.sent.clear()
    bus.tick()
    bus.tick()
    assert tell(bus, 0, 2) == {"query"}
    assert {message.query.name for _, _, message in bus.sent if isinstance(message, Subscribe)} == {"query"}


def test_the_news_of_a_break_goes_back_to_the_subscriber() -> None:
    """A line 0 - 1 - 2 - 3: the query of 0 lies at 3; when 3 dies, 2 tells 1, and 1 tells 0."""
    bus = line(4, configuration(mends=True))
    ask(bus, 0, "query", 7, 7.5)
    bus.sent.clear()
    bus.fail({3})
    told = [(sender, receiver) for sender, receiver, message in bus.sent if isinstance(message, Broken)]
    assert told == [(2, 1), (1, 0)]
    bus.tick()
    versions = {subquery.version for subquery in bus.brokers[2].queries.subqueries.values()}
    assert versions == {4}  # version 1 had the labels 2 and 3; what is broken and outdated has been forgotten


def test_the_news_of_a_break_is_told_again_until_it_is_heard() -> None:
    bus = line(4, configuration(mends=True))
    ask(bus, 0, "query", 7, 7.5)
    bus.kill({3})
    bus.brokers[2].lost(3)  # and nobody hears what it says
    bus.tick()
    bus.tick()
    assert {subquery.version for subquery in bus.brokers[2].queries.subqueries.values()} == {4}


def test_what_is_broken_and_outdated_is_forgotten() -> None:
    bus = line(3, configuration(mends=True))
    ask(bus, 0, "query", 7, 7.5)
    (old,) = bus.brokers[1].queries.subqueries
    bus.tick(100)  # renews
    assert bus.brokers[0].receive(1, Broken(old[1]), 100.0) == [Send(1, Unsubscribe(old[1]))]


def test_a_query_asked_before_joining_is_sent_on_joining() -> None:
    for settings in ({}, {"query_trees": "own", "event_trees": "all"}):
        bus = line(1, configuration(mends=True, **settings))
        alone = Broker(1, bus.configuration)
        alone.subscribe(bus.configuration.query("query", [0], [7.5]), 0.0)
        bus.brokers[1], bus.links = alone, {0: {1}, 1: {0}}
        for node, other in ((0, 1), (1, 0)):
            bus.carry_out(node, bus.brokers[node].found(other))
        bus.settle()
        assert tell(bus, 0, 2) == {"query"}
        assert tell(bus, 0, 6) == {"query"}


def test_a_query_message_that_is_not_answered_is_sent_again() -> None:
    bus = line(2)
    bus.brokers[1].subscribe(bus.configuration.query("query", [0], [1]), 0.0)  # and nobody hears of it
    assert tell(bus, 0, 0) == set()
    bus.tick()
    assert tell(bus, 0, 0) == {"query"}
    bus.sent.clear()
    bus.tick()
    assert not any(isinstance(message, Subscribe) for _, _, message in bus.sent)


def test_a_query_message_that_comes_twice_is_taken_once() -> None:
    """It is answered again; and when it is withdrawn nothing of it is left further on."""
    bus = line(3)
    ask(bus, 0, "query", 7, 7.5)
    (message,) = [message for _, to, message in bus.sent if to == 1 and isinstance(message, Subscribe)]
    assert bus.brokers[1].receive(0, message, 0.0) == [Send(0, Accept(message.label))]
    bus.unsubscribe(0, "query")
    assert bus.brokers[2].queries.subqueries == {}


def test_nothing_is_said_again_to_who_is_gone() -> None:
    bus = line(2)
    bus.brokers[1].subscribe(bus.configuration.query("query", [0], [1]), 0.0)  # and nobody hears of it
    bus.brokers[1].lost(0)
    said = [effect.message for effect in bus.brokers[1].tick(0.0) if isinstance(effect, Send)]
    assert not any(isinstance(message, Subscribe) for message in said)


@pytest.mark.parametrize(("path", "to", "lost"), [((2, 0), [2], []), ((2, 0, 2, 0), [], ["no-route"])])
def test_a_query_comes_to_a_node_twice_at_most(path: tuple[int, ...], to: list[int], lost: list[str]) -> None:
    """While trees change it might go round in circles; node 1 keeps what belongs to node 2 until something changes."""
    broker = line(3).brokers[1]
    query = broker.configuration.query("query", [7], [7.5])
    effects = broker.receive(0, Subscribe(query, 1, 0, EVERYTHING, 1, 99.0, path), 0.0)
    assert [e.to for e in effects if isinstance(e, Send) and isinstance(e.message, Subscribe)] == to
    assert reasons(effects) == lost


def test_a_node_that_has_started_again_takes_nothing_that_was_sent_to_its_last_life() -> None:
    """Its labels began anew: the notification for its old query went to whatever had the same label now."""
    bus = line(2)
    ask(bus, 1, "old", 0, 1.5)
    (late,) = bus.brokers[0].publish(bus.configuration.event("event", [1]), 0.0)
    assert isinstance(late, Send)
    bus.brokers[1] = again = Broker(1, bus.configuration, incarnation=1)
    bus.carry_out(1, again.found(0))
    bus.settle()
    bus.tick()
    ask(bus, 1, "new", 0, 1.25)
    assert reasons(again.receive(0, late.message, 0.0)) == ["broken-path"]


def test_a_subscriber_looks_at_the_values_again() -> None:
    """Whatever a notification's label says."""
    bus = line(2)
    ask(bus, 1, "query", 0, 1.25)
    ((label, _),) = bus.brokers[1].queries.labelled.items()
    event = bus.configuration.event("event", [5])
    assert reasons(bus.brokers[1].receive(0, Notify(event, label), 0.0)) == ["unwanted"]


def test_what_is_handed_off_is_not_remembered_longer_than_by_who_handed_it_off() -> None:
    bus = Bus(configuration(), {0: {1}, 1: {0}})
    ask(bus, 1, "query", 0, 7.5)
    bus.tick(90)
    bus.add(2, {0})
    assert [subquery.ends_s for subquery in bus.brokers[2].queries.subqueries.values()] == [150]


def test_of_two_ways_back_the_one_that_came_last_is_taken() -> None:
    """A ring of five: the query of 3 for what lies at the root comes by 4, and when 4 has died by 2 and 1."""
    bus = Bus(configuration(), {0: {1, 4}, 1: {0, 2}, 2: {1, 3}, 3: {2, 4}, 4: {0, 3}})
    ask(bus, 3, "query", 0, 0.5)
    bus.fail({4})
    bus.tick()
    assert tell(bus, 1, 0) == set()
    bus.tick(100)
    assert {sender for sender, _ in bus.brokers[0].queries.subqueries} == {1, 4}
    assert tell(bus, 1, 0) == {"query"}


def test_a_notification_with_a_dead_node_on_its_way_is_lost() -> None:
    bus = line(4)
    ask(bus, 3, "query", 0, 1.5)
    bus.fail({2})
    assert tell(bus, 1, 0) == set()
    assert [(node, drop.reason) for node, drop in bus.dropped] == [(1, "broken-path")]


def test_who_is_cut_off_cannot_publish() -> None:
    bus = line(3)
    bus.fail({1})
    bus.tick()
    assert tell(bus, 2, 0) == set()
    assert [(node, drop.reason) for node, drop in bus.dropped] == [(2, "no-route")]


# --- Queries and events -------------------------------------------------------------------------------------


def test_a_query_is_asked_once_and_withdrawn_once() -> None:
    bus = line(2)
    ask(bus, 1, "query", 0, 1)
    with pytest.raises(BadInput, match="query 'query': node 1 has asked it already"):
        ask(bus, 1, "query", 0, 1)
    bus.unsubscribe(1, "query")
    with pytest.raises(BadInput, match="query 'query': node 1 has not asked it"):
        bus.unsubscribe(1, "query")


def test_an_event_that_lies_in_a_cell_of_the_query_but_not_in_its_box_is_not_delivered() -> None:
    bus = line(2)
    ask(bus, 1, "query", 0, 1.25)
    assert tell(bus, 0, 1.5) == set()
    assert tell(bus, 0, 1.25) == {"query"}


def test_an_event_that_comes_from_several_trees_is_delivered_once() -> None:
    bus = Bus(configuration((0, 2), event_trees="all"), {0: {1}, 1: {0, 2}, 2: {1}})
    ask(bus, 1, "query", 0, 7.5)
    assert tell(bus, 1, 3) == {"query"}
    assert len(bus.delivered) == 1
    assert [drop.reason for _, drop in bus.dropped] == ["duplicate"]


def test_a_notification_under_way_when_the_query_is_withdrawn_is_lost() -> None:
    bus = line(2)
    ask(bus, 1, "query", 0, 7.5)
    event = bus.configuration.event("event", [0])
    (send,) = bus.brokers[0].publish(event, 0.0)
    assert isinstance(send, Send)
    assert isinstance(send.message, Notify)
    bus.unsubscribe(1, "query")
    assert reasons(bus.brokers[1].receive(0, send.message, 0.0)) == ["broken-path"]


def test_a_notification_under_way_when_the_query_is_renewed_arrives() -> None:
    bus = line(2)
    ask(bus, 1, "query", 0, 7.5)
    event = bus.configuration.event("event", [0])
    (send,) = bus.brokers[0].publish(event, 0.0)
    assert isinstance(send, Send)
    bus.tick(100)
    (effect,) = bus.brokers[1].receive(0, send.message, 100.0)
    assert isinstance(effect, Deliver)


def test_what_is_not_known_any_more_need_not_be_forgotten() -> None:
    broker = Broker(0, configuration())
    broker.found(1)
    assert broker.receive(1, Unsubscribe(5), 0.0) == []


def test_an_event_that_has_been_here_is_in_a_loop() -> None:
    bus = line(2)
    message = Publish(bus.configuration.event("event", [7]), 0, (1, 0))
    assert reasons(bus.brokers[1].receive(0, message, 0.0)) == ["loop"]


def test_a_query_message_is_as_large_as_its_way_needs_not_as_its_box() -> None:
    """Three attributes of 21 bits: 2^63 rendezvous keys, in one prefix."""
    attributes = tuple(Attribute(f"A{number}", "real", 0, 1) for number in range(3))
    bus = line(3, NetworkConfiguration((0,), attributes, tinymq.Settings(attribute_bits=21)))
    bus.subscribe(2, bus.configuration.query("query", [0.1, 0, 0], [0.9, 1, 1]))
    sent = [message for _, _, message in bus.sent if isinstance(message, Subscribe)]
    assert [len(message.region) for message in sent] == [2, 1]  # 2 keeps what begins with 11, 1 what begins with 10
    assert sent[0].region != EVERYTHING
    bus.publish(0, bus.configuration.event("event", [0.5, 0.25, 0.75]))
    assert [node for node, _, _ in bus.delivered] == [2]


def test_each_tree_of_the_baseline_spans_every_node() -> None:
    agreed = NetworkConfiguration((0, 2), (Attribute("A", "real", 0, 8),), pub2sub.Settings(attribute_bits=3))
    bus = line(3, agreed)
    assert all(None not in broker.membership.keys for broker in bus.brokers.values())
    assert [broker.membership.own_tree() for broker in bus.brokers.values()] == [0, 1, 0]


def test_a_broker_cannot_share_out_zones_by_subtree() -> None:
    with pytest.raises(BadInput, match='zones = "subtree": a broker gives keys as children come'):
        Broker(0, configuration(zones="subtree"))


def test_a_node_needs_nothing_of_the_laboratory() -> None:
    loaded = modules_after("import serai.overlay.broker, serai.overlay.pub2sub")
    assert loaded.isdisjoint({"numba", "numpy", "pyarrow", "pyspark", "scipy"})
