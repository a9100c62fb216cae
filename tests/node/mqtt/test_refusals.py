"""What a session refuses, and how it says so: full stores, access, mistakes of clients."""

import pytest

from serai.core.errors import PeerError
from serai.node.mqtt.access import Access
from serai.node.mqtt.packets import V3, V5, Ack, Connack, Ping, Pong, Publish, Will
from serai.node.mqtt.session import Refused
from tests.node.mqtt.plain import Bench
from tests.node.mqtt.test_session import subscribe, will


def test_a_full_store_is_told_in_version_5_and_awaited_in_3_1_1():
    bench = Bench()
    old, new = bench.connect("a"), bench.connect("b", version=V5)
    bench.take(old), bench.take(new)
    bench.disk.node.room = 0
    assert bench.send(new, Publish("t", b"1", 1, packet=1))[0].reason == 0x97
    assert bench.send(new, Publish("t", b"2", 2, packet=2))[0].reason == 0x97
    assert (
        bench.send(old, *(Publish("t", b"%d" % n, 1 + n % 2, packet=n) for n in range(1, 6)), Publish("t", b"0")) == []
    )
    assert bench.send(old, Ping()) == [Pong()]
    bench.disk.node.room = 2
    bench.disk.perform(bench.sessions[old].tick(1.0))
    bench.disk.commit()
    assert bench.take(old) == [Ack("pubrec", 1), Ack("puback", 2)]
    bench.disk.node.room = 9
    bench.disk.perform(bench.sessions[old].tick(2.0))
    bench.disk.commit()
    assert [ack.packet for ack in bench.take(old)] == [3, 4, 5]
    assert [message.payload for message, _ in bench.disk.tables["message"].values()] == [b"1", b"2", b"3", b"4", b"5"]
    assert bench.disk.clients.counts["dropped"] == 1  # QoS 0


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (Publish("a/+", b""), 0x90),
        (Publish("", b""), 0x82),
        (Publish("$x", b""), 0x90),
        (Publish("t", b"", properties={"subscription_identifier": (1,)}), 0x82),
        (Publish("t", b"", properties={"response_topic": "a/#"}), 0x82),
        (Publish("t", b"", properties={"topic_alias": 17}), 0x94),
        (Publish("", b"", properties={"topic_alias": 3}), 0x82),
        (Connack(), 0x82),
        (Pong(), 0x82),
    ],
)
def test_what_ends_a_connection(packet, reason):
    bench = Bench()
    a = bench.connect("a", version=V5)
    with pytest.raises(PeerError) as error:
        bench.send(a, packet)
    assert error.value.reason == reason


def test_version_5_hears_why_a_message_is_refused():
    bench = Bench()
    a = bench.connect("a", version=V5, access=Access(write=("mine/#",)))
    bench.take(a)
    assert bench.send(a, Publish("x" * 1025, b"", 1, packet=1))[0].reason == 0x90
    assert bench.send(a, Publish("theirs", b"", 2, packet=2))[0][:3] == ("pubrec", 2, 0x87)
    assert bench.send(a, Publish("mine/1", b"", 2, packet=2))[0].reason == 0


def test_topic_aliases():
    bench = Bench()
    a = bench.connect("a", version=V5)
    alias = {"topic_alias": 3}
    bench.send(
        a,
        Publish("t", b"1", properties=alias),
        Publish("", b"2", properties=alias),
        Publish("u", b"", properties=alias),
    )
    bench.send(a, Publish("", b"4", properties=alias))
    assert [message.topic for message, _ in bench.disk.tables["message"].values()] == ["t", "t", "u", "u"]


def test_what_may_be_read():
    bench = Bench()
    a = bench.connect("a", version=V5, access=Access(read=("mine/#",)))
    bench.take(a)
    assert bench.send(a, subscribe("mine/+", "#", "$share/g/mine/x", "$share/g/+"))[0].reasons == (2, 0x87, 2, 0x87)
    with pytest.raises(Refused):
        bench.connect("b", access=Access(write=("x",)), will=will())


def test_more_than_the_receive_maximum_without_pubrel():
    bench = Bench(in_flight=3)
    a = bench.connect("a", version=V5)
    bench.send(a, *(Publish("t", b"", 2, packet=n) for n in range(1, 104)))
    with pytest.raises(PeerError) as error:
        bench.send(a, Publish("t", b"", 2, packet=104))
    assert error.value.reason == 0x93


def test_unknown_identifiers():
    bench = Bench()
    for version, reason in ((V3, 0), (V5, 0x92)):
        a = bench.connect(version=version)
        bench.take(a)
        assert bench.send(a, Ack("pubrel", 9)) == [Ack("pubcomp", 9, reason)]
        assert bench.send(a, Ack("pubrec", 9)) == [Ack("pubrel", 9, reason)]
        assert bench.send(a, Ack("puback", 9), Ack("pubcomp", 9)) == []


def test_keep_alive():
    bench = Bench()
    a = bench.connect("a", version=V5, keep_alive_s=10)
    bench.take(a)
    bench.now_s = 14.0
    assert bench.send(a, Ping()) == [Pong()]
    for now_s, closed in ((28.0, False), (29.5, True)):
        bench.disk.perform(bench.sessions[a].tick(now_s))
        bench.disk.commit()
        assert (a in bench.closed) is closed
    assert bench.take(a)[0].reason == 0x8D


def test_names():
    bench = Bench()
    assert bench.take(bench.connect("", version=V5))[0].properties["assigned_client_identifier"] == "auto-1"
    bench.connect("")
    with pytest.raises(Refused):
        bench.connect("", clean=False)
    with pytest.raises(Refused):
        bench.connect("x" * 257)


def test_a_bridge_tells_of_itself_on_sys_and_nothing_is_kept_of_it():
    bench = Bench()
    a = bench.connect("m", bridge=True, will=Will("$SYS/broker/connection/m/state", b"0", 1, True))
    bench.take(a)
    assert bench.send(a, Publish("$SYS/broker/connection/m/state", b"1", 1, True, 1)) == [Ack("puback", 1)]
    bench.cut(a)
    assert bench.disk.tables["message"] == {}
