"""One client's session, step by step: what is answered, in which order, and what is on disk by then."""

import pytest

from serai.core.errors import PeerError
from serai.node.mqtt.packets import (
    V3,
    V5,
    Ack,
    Connack,
    Disconnect,
    Publish,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Will,
    Wish,
)
from tests.node.mqtt.plain import Bench

EXPIRES = {"session_expiry_interval": 100}


def subscribe(*filters, qos=2, packet=1, **options):
    return Subscribe(packet, tuple(Wish(filter, qos, **options) for filter in filters))


def test_qos_0_1_and_2_from_a_publisher():
    bench = Bench()
    a = bench.connect()
    assert bench.take(a)[0] == Connack(False, 0, bench.sessions[a]._offer("c"))
    assert bench.send(a, Publish("t", b"0")) == []
    assert bench.send(a, Publish("t", b"1", 1, packet=7)) == [Ack("puback", 7)]
    assert bench.send(a, Publish("t", b"2", 2, packet=8)) == [Ack("pubrec", 8)]
    assert bench.send(a, Publish("t", b"2", 2, packet=8, dup=True)) == [Ack("pubrec", 8)]
    assert bench.send(a, Ack("pubrel", 8)) == [Ack("pubcomp", 8)]
    assert bench.send(a, Publish("t", b"3", 2, packet=8)) == [Ack("pubrec", 8)]  # the identifier is free again
    payloads = [message.payload for message, _ in bench.disk.tables["message"].values()]
    assert payloads == [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("packet", [Publish("t", b"1", 1, packet=7), Publish("t", b"1", 2, packet=7)])
def test_nothing_is_acknowledged_before_it_is_on_disk(packet):
    bench = Bench()
    a = bench.connect()
    bench.take(a)
    bench.disk.perform(bench.sessions[a].receive(packet, 0.0))
    assert bench.take(a) == []
    assert not bench.disk.tables["message"]
    bench.disk.commit()
    assert bench.disk.tables["message"]
    assert len(bench.take(a)) == 1


def test_qos_1_and_2_to_a_subscriber():
    bench = Bench()
    a, b = bench.connect("a"), bench.connect("b")
    bench.take(b)
    assert bench.send(b, subscribe("t/+")) == [Suback(1, (2,))]
    bench.send(a, Publish("t/1", b"x", 1, packet=1))
    assert bench.take(b) == [Publish("t/1", b"x", 1, packet=1)]
    bench.send(a, Publish("t/2", b"y", 2, packet=2))
    assert bench.take(b) == [Publish("t/2", b"y", 2, packet=2)]
    assert bench.send(b, Ack("puback", 1)) == []
    assert bench.send(b, Ack("pubrec", 2)) == [Ack("pubrel", 2)]
    assert bench.disk.tables["outbox"]["b", 2].state == 2
    assert bench.send(b, Ack("pubrec", 2)) == [Ack("pubrel", 2)]
    assert bench.send(b, Ack("pubcomp", 2)) == []
    assert bench.disk.tables["outbox"] == {}


def test_the_packet_identifier_is_on_disk_before_the_publish_is_sent():
    bench = Bench()
    a, b = bench.connect("a"), bench.connect("b")
    bench.send(b, subscribe("t"))
    bench.disk.perform(bench.sessions[a].receive(Publish("t", b"x", 1, packet=1), 0.0))
    bench.disk.commit(1)  # the message; it is queued, and its identifier waits for the next commit
    assert bench.take(b) == []
    bench.disk.commit()
    assert bench.disk.tables["outbox"]["b", 1].packet == bench.take(b)[0].packet


def test_what_the_store_does_not_know_yet_waits_and_is_not_lost():
    bench = Bench()
    a, b = bench.connect("a"), bench.connect("b")
    bench.send(b, subscribe("t"))
    known, bench.sessions[b].outgoing.load = bench.sessions[b].outgoing.load, lambda bundle: None
    bench.send(a, Publish("t", b"x", 1, packet=1))
    assert bench.take(b) == []
    bench.sessions[b].outgoing.load = known
    bench.send(a, Publish("t", b"y", 1, packet=2))
    assert [publish.payload for publish in bench.take(b)] == [b"x", b"y"]


def test_what_was_not_acknowledged_is_sent_again_after_a_reconnect():
    bench = Bench()
    a, b = bench.connect("a"), bench.connect("b", clean=False)
    bench.send(b, subscribe("t"))
    for packet in (1, 2, 3):
        bench.send(a, Publish("t", bytes([packet]), 2, packet=packet))
    bench.send(b, Ack("pubrec", 2))
    bench.cut(b)
    bench.send(a, Publish("t", b"4", 1, packet=4))
    b = bench.connect("b", clean=False)
    connack, *again = bench.take(b)
    assert connack.session_present
    assert again == [
        Publish("t", b"\1", 2, packet=1, dup=True),
        Ack("pubrel", 2),
        Publish("t", b"\3", 2, packet=3, dup=True),
        Publish("t", b"4", 1, packet=4),
    ]


def test_the_same_after_the_node_has_died():
    bench = Bench()
    a, b = bench.connect("a"), bench.connect("b", clean=False)
    bench.send(b, subscribe("t"))
    bench.send(a, Publish("t", b"x", 2, packet=1))
    bench.disk.start(0.0)
    b = bench.connect("b", clean=False)
    assert bench.take(b)[1:] == [Publish("t", b"x", 2, packet=1, dup=True)]


def test_never_more_in_flight_than_the_receiver_takes():
    bench = Bench()
    a, b = bench.connect("a"), bench.connect("b", version=V5, properties={"receive_maximum": 2})
    bench.send(b, subscribe("t"))
    for packet in range(1, 6):
        bench.send(a, Publish("t", b"x", 1 + packet % 2, packet=packet))
    sent = bench.take(b)
    assert [publish.packet for publish in sent] == [1, 2]
    assert [publish.packet for publish in bench.send(b, Ack("pubrec", 1, 0x80))] == [3]  # an error ends a delivery
    assert [type(packet) for packet in bench.send(b, Ack("puback", 2))] == [Publish]
    assert bench.sessions[b].outgoing.in_flight == 2


def test_message_expiry_properties_and_identifiers_of_version_5():
    bench = Bench()
    a, b = bench.connect("a", version=V5), bench.connect("b", version=V5)
    said = {
        "payload_format_indicator": 1,
        "message_expiry_interval": 50,
        "content_type": "text",
        "response_topic": "answer",
        "correlation_data": b"7",
        "user_property": (("k", "v"), ("k", "w")),
    }
    bench.send(b, Subscribe(1, (Wish("t/#", 1),), {"subscription_identifier": (9,)}))
    bench.send(b, Subscribe(2, (Wish("t/+", 1),), {"subscription_identifier": (8,)}))
    bench.send(b, Subscribe(3, (Wish("t", 1),), {"subscription_identifier": (7,)}))
    bench.now_s = 10.0
    bench.send(a, Publish("t/1", b"x", 1, packet=1, properties=said))
    (got,) = bench.take(b)
    assert set(got.properties.pop("subscription_identifier")) == {9, 8}
    assert got.properties == said
    bench.cut(b)


def test_a_message_that_has_expired_is_not_sent():
    bench = Bench()
    a, b = bench.connect("a", version=V5), bench.connect("b", clean=False)
    bench.send(b, subscribe("t"))
    bench.cut(b)
    bench.send(a, Publish("t", b"x", 1, packet=1, properties={"message_expiry_interval": 5}))
    bench.send(a, Publish("t", b"y", 1, packet=2, properties={"message_expiry_interval": 50}))
    bench.now_s = 10.0
    b = bench.connect("b", clean=False, version=V5)
    assert [(one.payload, one.properties["message_expiry_interval"]) for one in bench.take(b)[1:]] == [(b"y", 40)]


def test_what_is_larger_than_a_client_takes_is_left_out():
    bench = Bench()
    a, b = bench.connect("a"), bench.connect("b", version=V5, properties={"maximum_packet_size": 50})
    bench.send(b, subscribe("t"))
    bench.send(a, Publish("t", bytes(100), 1, packet=1), Publish("t", b"small", 1, packet=2))
    assert [one.payload for one in bench.take(b)] == [b"small"]
    assert len(bench.disk.tables["outbox"]) == 1


def test_retained_and_how_it_is_asked_for():
    bench = Bench()
    a, b = bench.connect("a"), bench.connect("b", version=V5)
    bench.send(a, Publish("t", b"old", 1, True, 1))
    bench.take(b)
    _, got = bench.send(b, subscribe("t", qos=1))
    assert (got.payload, got.retain) == (b"old", True)
    assert len(bench.send(b, subscribe("t", qos=1, retain_handling=1))) == 1
    assert len(bench.send(b, subscribe("t", qos=1, retain_handling=2))) == 1
    bench.send(a, Publish("t", b"new", 1, True, 2))
    assert [one.retain for one in bench.take(b)] == [False]
    bench.send(b, subscribe("t", qos=1, retain_handling=2, retain_as_published=True))
    bench.send(a, Publish("t", b"newer", 1, True, 3), Publish("t", b"", 1, True, 4))
    assert [one.retain for one in bench.take(b)] == [True, True]
    assert bench.disk.tables["retained"] == {}


def test_no_local_and_bridges_do_not_get_back_what_they_sent():
    bench = Bench()
    plain, five, bridge = bench.connect("a"), bench.connect("b", version=V5), bench.connect("m", bridge=True)
    for number, options in ((plain, {}), (five, {"no_local": True}), (bridge, {})):
        bench.send(number, subscribe("t", qos=0, **options))
    for number in (plain, five, bridge):
        bench.disk.perform(bench.sessions[number].receive(Publish("t", b"", 1, True, packet=1), 0.0))
        bench.disk.commit()
    got = {
        number: [one.retain for one in bench.take(number) if isinstance(one, Publish)]
        for number in (plain, five, bridge)
    }
    assert got == {plain: [False] * 3, five: [False] * 2, bridge: [True] * 2}


def test_shared_subscriptions_take_turns():
    bench = Bench()
    a, members = bench.connect("a"), [bench.connect(name) for name in "bc"]
    for member in members:
        bench.send(member, subscribe("$share/g/t", qos=0))
    for packet in range(1, 5):
        bench.send(a, Publish("t", b"x", 1, packet=packet))
    assert [len(bench.take(member)) for member in members] == [2, 2]
    with pytest.raises(PeerError) as error:
        bench.send(members[0], subscribe("$share/g/u", no_local=True))
    assert error.value.reason == 0x82


def test_subscriptions_by_content():
    bench = Bench()
    a, b, c = bench.connect("a"), bench.connect("b"), bench.connect("c", version=V5)
    assert bench.send(b, subscribe("$where/t%20%3E%2020/room/+", qos=0))[-1] == Suback(1, (0,))
    where = {"user_property": (("where", "t > 20"), ("other", "x"))}
    assert bench.send(c, Subscribe(1, (Wish("room/+"),), where))[-1] == Suback(1, (0,))
    for payload in (b'{"t": 20}', b'{"t": 21}', b"hot"):
        bench.send(a, Publish("room/1", payload))
    assert [one.payload for one in bench.take(b)] == [one.payload for one in bench.take(c)] == [b'{"t": 21}']
    assert bench.send(b, subscribe("$where/t%20%3E/room/+")) == [Suback(1, (0x80,))]
    (suback,) = bench.send(c, subscribe("$where/t%20%3E/room/+"))
    assert suback.reasons == (0x8F,)
    assert "expected a number" in suback.properties["reason_string"]
    bench.send(c, Subscribe(1, (Wish("room/+"),), {"user_property": (("where", "t < 0"),)}))  # in place of the old one
    bench.send(a, Publish("room/1", b'{"t": 21}'), Publish("room/1", b'{"t": -1}'))
    assert [one.payload for one in bench.take(c)] == [b'{"t": -1}']


def test_unsubscribe():
    bench = Bench()
    a, b = bench.connect("a", version=V5), bench.connect("b")
    bench.send(a, subscribe("t", "$SYS/serai/#"))
    assert bench.send(a, Unsubscribe(2, ("t", "u", "$SYS/serai/#"))) == [Unsuback(2, (0, 0x11, 0))]
    bench.send(b, Publish("t", b"x"))
    assert bench.take(a) == []


# --- Wills


def will(**properties):
    return Will("gone", b"bye", 1, properties=properties)


@pytest.mark.parametrize("version", [V3, V5])
def test_a_will_is_published_when_a_client_goes_without_a_word(version):
    bench = Bench()
    b = bench.connect("b")
    bench.send(b, subscribe("gone"))
    a = bench.connect("a", version=version, will=will())
    bench.cut(a)
    assert [one.payload for one in bench.take(b)] == [b"bye"]
    a = bench.connect("a", version=version, will=will())
    bench.send(a, Disconnect())
    assert bench.take(b) == []
    if version == V5:
        a = bench.connect("a", version=version, will=will())
        bench.send(a, Disconnect(4))
        assert [one.payload for one in bench.take(b)] == [b"bye"]


def test_a_will_waits_for_its_delay_or_the_end_of_its_session_and_not_if_the_client_is_back():
    bench = Bench()
    b = bench.connect("b")
    bench.send(b, subscribe("gone", qos=0))

    def told(lifetime, delay, back_at=None, until=100.0, clean=False):
        bench.now_s = 0.0
        properties = {"session_expiry_interval": lifetime}
        a = bench.connect("a", version=V5, will=will(will_delay_interval=delay), properties=properties)
        bench.cut(a)
        moments = []
        for second in range(1, int(until)):
            bench.tick(float(second))
            if second == back_at:
                bench.cut(bench.connect("a", version=V5, clean=clean, properties=properties))
            moments += [second for _ in bench.take(b)]
        bench.now_s = 0.0
        bench.cut(bench.connect("a"))  # forget the session
        return moments

    assert told(50, 10) == [10]
    assert told(5, 10) == [5]
    assert told(50, 10, back_at=5) == []
    assert told(50, 10, back_at=5, clean=True) == [5]
    assert told(0, 10) == [1]  # with the connection, before the first second is over


def test_a_will_outlives_the_node_and_is_published_once():
    bench = Bench()
    bench.connect("a", will=will(), clean=False)
    for _ in range(3):
        bench.disk.start(1.0)
        bench.tick(1.0)
    assert [message.payload for message, _ in bench.disk.tables["message"].values()] == [b"bye"]


def test_a_second_connection_under_one_name_ends_the_first():
    bench = Bench()
    first = bench.connect("a", version=V5, will=will(), properties=EXPIRES)
    bench.take(first)
    second = bench.connect("a", version=V5, clean=False, properties=EXPIRES)
    assert bench.take(first)[0].reason == 0x8E
    assert first in bench.closed
    assert bench.take(second)[0].session_present
    assert len(bench.disk.tables["message"]) == 1  # the will of the first
    bench.cut(first)  # its socket closes now: nothing more happens
    assert bench.disk.clients.by_name["a"].session is bench.sessions[second]


# --- Sessions that last


def test_clean_and_lasting_sessions():
    bench = Bench(session_s=50.0)
    for version, clean, properties, lasts in (
        (V3, True, {}, 0),
        (V3, False, {}, 50),
        (V5, True, {}, 0),
        (V5, False, {}, 0),
        (V5, True, EXPIRES, 100),
        (V5, True, {"session_expiry_interval": 0xFFFFFFFF}, 10**9),
    ):
        for wait in (1.0, 60.0, 110.0):
            bench.now_s = 0.0
            bench.cut(bench.connect("x"))
            bench.cut(bench.connect("x", version=version, clean=clean, properties=properties))
            bench.now_s = wait
            again = bench.connect("x", version=version, clean=False)
            assert bench.take(again)[0].session_present is (wait < lasts), (version, clean, properties, wait)
            bench.send(again, Disconnect())


def test_disconnect_may_shorten_a_session_but_not_begin_to_keep_it():
    bench = Bench()
    a = bench.connect("a", version=V5, properties=EXPIRES)
    bench.send(a, Disconnect(0, {"session_expiry_interval": 0}))
    assert bench.disk.tables["session"] == {}
    a = bench.connect("a", version=V5)
    with pytest.raises(PeerError) as error:
        bench.send(a, Disconnect(0, {"session_expiry_interval": 5}))
    assert error.value.reason == 0x82


def test_publish_repeated_in_place_of_pubrel_is_the_same_message():
    """As paho 2.2.0 does after two reconnects in a row that failed."""
    bench = Bench()
    message = Publish("t", b"x", 2, packet=5)
    a = bench.connect("a", clean=False)
    bench.send(a, message, Ack("pubrel", 5))
    bench.cut(a)
    bench.now_s = 2.0
    a = bench.connect("a", clean=False)
    bench.take(a)
    assert bench.send(a, message, Ack("pubrel", 5)) == [Ack("pubrec", 5), Ack("pubcomp", 5)]
    assert len(bench.disk.tables["message"]) == 1
    bench.send(a, message, Ack("pubrel", 5))  # in the same connection it is a new one
    assert len(bench.disk.tables["message"]) == 2
    bench.cut(a)
    a = bench.connect("a", clean=False)
    bench.send(a, message._replace(payload=b"y"), Ack("pubrel", 5))  # other content
    assert len(bench.disk.tables["message"]) == 3
    bench.send(a, Disconnect())
    a = bench.connect("a", clean=False)
    bench.send(a, message._replace(payload=b"y"), Ack("pubrel", 5))  # after a proper goodbye
    assert len(bench.disk.tables["message"]) == 4
    bench.now_s = 70.0
    bench.cut(a)
    a = bench.connect("a", clean=False)
    bench.send(a, message._replace(payload=b"y"), Ack("pubrel", 5))  # released more than a minute before the cut
    assert len(bench.disk.tables["message"]) == 5


def test_identifiers_of_received_messages_do_not_pile_up():
    bench = Bench()
    a = bench.connect("a", clean=False)
    for second in range(300):
        bench.now_s = float(second)
        bench.send(a, Publish("t", b"x", 2, packet=second + 1), Ack("pubrel", second + 1))
    assert len(bench.disk.tables["inbound"]) == 60
