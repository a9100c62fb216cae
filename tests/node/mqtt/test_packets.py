"""Packets <-> bytes: the standard's own examples, every kind there and back, what is cut, damaged or not allowed."""

import random
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties as PahoProperties

from serai.core.errors import PeerError
from serai.node.mqtt.packets import (
    V3,
    V5,
    Ack,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Ping,
    Pong,
    Publish,
    Reader,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Will,
    Wish,
    decode,
    encode,
)
from serai.node.mqtt.properties import TABLE, Fields, number
from tests.effort import THOROUGH

FUZZED = 1_000_000 if THOROUGH else 20_000


def read(data, version=0, largest=1 << 20):
    return list(Reader(largest, version).feed(bytes.fromhex(data) if isinstance(data, str) else data))


@pytest.mark.parametrize(  # MQTT 5, table 1-1: the ends of what 1, 2, 3 and 4 bytes can say
    ("value", "written"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (2_097_151, "ffff7f"),
        (2_097_152, "80808001"),
        (268_435_455, "ffffff7f"),
    ],
)
def test_numbers(value, written):
    assert number(value).hex() == written
    assert Fields(bytes.fromhex(written)).number() == value


@pytest.mark.parametrize("written", ["ffffffff7f", "8000", "80"])
def test_a_number_of_five_bytes_or_with_zeros_to_spare_or_cut_is_malformed(written):
    with pytest.raises(PeerError) as error:
        Fields(bytes.fromhex(written)).number()
    assert error.value.reason == 0x81


def test_a_text_as_in_figure_1_2():
    assert Fields(bytes.fromhex("000541f0aa9b94")).text() == "A\U0002a6d4"


@pytest.mark.parametrize("written", ["0002c080", "0003eda080", "000100", "0001ff", "000561"])
def test_overlong_surrogates_zero_and_cut_texts_are_malformed(written):
    with pytest.raises(PeerError) as error:
        Fields(bytes.fromhex(written)).text()
    assert error.value.reason == 0x81


KNOWN = {
    # 3.1.2.12: flags 0xCE (user name, password, a will of QoS 1, clean start), keep alive 10 s, session expiry 10 s
    "connect": (
        V5,
        "10 26 0004 4d515454 05 ce 000a 05 11 0000000a 0001 63 00 0003 612f62 0004 676f6e65 0001 75 0002 7077 ",
        Connect(
            "c",
            V5,
            True,
            10,
            Will("a/b", b"gone", 1),
            "u",
            b"pw",
            {"session_expiry_interval": 10},
        ),
    ),
    "connack": (V5, "20 03 01 00 00", Connack(True)),
    "publish": (V5, "32 0a 0003 612f62 000a 00 6869", Publish("a/b", b"hi", 1, packet=10)),  # 3.3.2.2, figure 3-9
    "subscribe": (  # 3.8.3, figure 3-21: a/b at QoS 1, c/d at QoS 2
        V5,
        "82 0f 000a 00 0003 612f62 01 0003 632f64 02",
        Subscribe(10, (Wish("a/b", 1), Wish("c/d", 2))),
    ),
    "suback": (V5, "90 06 000a 00 00 02 8f", Suback(10, (0, 2, 0x8F))),
    "unsubscribe": (V5, "a2 0d 000a 00 0003 612f62 0003 632f64", Unsubscribe(10, ("a/b", "c/d"))),  # figure 3-30
    "unsuback": (V5, "b0 05 000a 00 00 11", Unsuback(10, (0, 0x11))),
    "puback": (V5, "40 02 000a", Ack("puback", 10)),
    "pubrec with a reason": (V5, "50 03 000a 97", Ack("pubrec", 10, 0x97)),
    "pubrel": (V5, "62 02 000a", Ack("pubrel", 10)),
    "pubcomp with words": (
        V5,
        "70 08 000a 92 04 1f 0001 78",
        Ack("pubcomp", 10, 0x92, {"reason_string": "x"}),
    ),
    "pingreq": (V5, "c0 00", Ping()),
    "pingresp": (V3, "d0 00", Pong()),
    "disconnect": (V5, "e0 00", Disconnect()),
    "disconnect with a reason": (V5, "e0 01 04", Disconnect(4)),
    "auth": (V5, "f0 06 18 04 15 0001 6b", Auth(0x18, {"authentication_method": "k"})),
    "3.1.1 connect": (  # its figure 3.6
        V3,
        "10 0d 0004 4d515454 04 02 000a 0001 63",
        Connect("c", V3, True, 10),
    ),
    "3.1.1 connack": (V3, "20 02 00 05", Connack(False, 5)),
    "3.1.1 publish": (V3, "3d 09 0003 612f62 000a 6869", Publish("a/b", b"hi", 2, True, 10, True)),
    "3.1.1 subscribe": (
        V3,
        "82 0e 000a 0003 612f62 01 0003 632f64 02",
        Subscribe(10, (Wish("a/b", 1), Wish("c/d", 2))),
    ),
    "3.1.1 suback": (V3, "90 05 000a 00 02 80", Suback(10, (0, 2, 0x80))),
    "3.1.1 unsuback": (V3, "b0 02 000a", Unsuback(10)),
    "bridge": (V3, "10 0d 0004 4d515454 84 02 000a 0001 63", Connect("c", V3, True, 10, bridge=True)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_packets(name):
    version, written, packet = KNOWN[name]
    data = bytes.fromhex(written)
    assert encode(packet, version).hex(" ") == data.hex(" ")
    assert read(data, version) == [packet]


def test_mqtt_3_1_is_read_as_3_1_1():
    (old,) = read("10 0f 0006 4d5149736470 03 02 000a 0001 63")
    (bridge,) = read("10 0f 0006 4d5149736470 83 02 000a 0001 63")
    assert (old.version, old.bridge, bridge.version, bridge.bridge) == (V3, False, V3, True)


@pytest.mark.parametrize(
    ("what", "version", "written", "reason"),
    [
        ("flags of SUBSCRIBE must be 2", V5, "80 09 000a 00 0003 612f62 01", 0x81),
        ("reserved packet type 0", V5, "00 00", 0x81),
        ("AUTH in 3.1.1", V3, "f0 00", 0x81),
        ("QoS 3", V5, "36 08 0003 612f62 000a 00", 0x81),
        ("DUP with QoS 0", V5, "38 06 0003 612f62 00", 0x81),
        ("packet identifier 0", V5, "32 08 0003 612f62 0000 00", 0x82),
        ("SUBSCRIBE without a filter", V5, "82 03 000a 00", 0x82),
        ("UNSUBSCRIBE without a filter", V5, "a2 03 000a 00", 0x82),
        ("subscription options with reserved bits", V5, "82 09 000a 00 0003 612f62 c1", 0x81),
        ("options of version 5 in 3.1.1", V3, "82 08 000a 0003 612f62 05", 0x81),
        ("retain handling 3", V5, "82 09 000a 00 0003 612f62 31", 0x82),
        ("bytes after the end", V5, "c0 01 00", 0x81),
        ("a property that does not belong there", V5, "e0 07 00 05 02 00000001", 0x81),
        ("an unknown property", V5, "e0 04 00 02 7f 00", 0x81),
        ("the same property twice", V5, "e0 0c 00 0a 11 00000001 11 00000001", 0x82),
        ("receive maximum 0", V5, "10 13 0004 4d515454 05 02 000a 03 21 0000 0003 616263", 0x82),
        ("payload format 2", V5, "30 08 0003 612f62 02 01 02", 0x82),
        ("topic alias 0", V5, "30 09 0003 612f62 03 23 0000", 0x94),
        ("properties longer than their packet", V5, "30 06 0003 612f62 05", 0x81),
        ("reserved connect flag", 0, "10 0d 0004 4d515454 04 03 000a 0001 63", 0x81),
        ("will QoS without a will", 0, "10 0d 0004 4d515454 04 0a 000a 0001 63", 0x81),
        ("a password without a user in 3.1.1", 0, "10 0f 0004 4d515454 04 42 000a 0001 63 0000", 0x81),
        ("another protocol", 0, "10 0d 0004 4854545a 04 02 000a 0001 63", 0x81),
        ("MQTT 6", 0, "10 0d 0004 4d515454 06 02 000a 0001 63", 0x84),
        ("a length of five bytes", 0, "10 80 80 80 80 01", 0x81),
        ("CONNACK of a session and an error", V5, "20 03 01 80 00", 0x81),
    ],
)
def test_what_may_not_be_sent(what, version, written, reason):
    with pytest.raises(PeerError) as error:
        read(written, version)
    assert error.value.reason == reason, what


def test_a_packet_over_the_limit_is_refused_before_it_is_there():
    with pytest.raises(PeerError) as error:
        read("30 ff ff 7f", V5, largest=1000)
    assert error.value.reason == 0x95
    packet = Publish("t", bytes(100))
    size = len(encode(packet, V3))
    assert read(encode(packet, V3), V3, largest=size) == [packet]
    with pytest.raises(PeerError):
        read(encode(packet, V3), V3, largest=size - 1)


def test_the_table_of_properties_is_paho_s():
    """paho's own table, written from the same standard by others."""
    paho, names = PahoProperties(PacketTypes.PUBLISH), PacketTypes.Names
    shapes = {0: "flag", 1: "u16", 2: "u32", 3: "number", 4: "binary", 5: "text", 6: "pair"}
    theirs = {
        code: (shapes[shape], {"will" if kind == PacketTypes.WILLMESSAGE else names[kind].lower() for kind in kinds})
        for code, (shape, kinds) in paho.properties.items()
    }
    assert {one.code: (one.shape, set(one.packets)) for one in TABLE} == theirs


# --- Every packet, there and back

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
VALUES = {
    "flag": st.integers(0, 1),
    "u16": st.integers(1, 0xFFFF),
    "u32": st.integers(1, 0xFFFFFFFF),
    "number": st.lists(st.integers(1, (1 << 28) - 1), min_size=1, max_size=1).map(tuple),
    "text": texts,
    "binary": st.binary(max_size=20),
    "pair": st.lists(st.tuples(texts, texts), min_size=1, max_size=3).map(tuple),
}
names = st.integers(1, 0xFFFF)
codes = st.integers(0, 0xFF)


def properties(packet):
    allowed = {one.name: VALUES[one.shape] for one in TABLE if packet in one.packets}
    return st.fixed_dictionaries({}, optional=allowed)


def connects():
    wills = st.builds(Will, texts, st.binary(), st.integers(0, 2), st.booleans(), properties("will"))
    made = st.builds(
        Connect,
        texts,
        st.just(V5),
        st.booleans(),
        st.integers(0, 0xFFFF),
        st.none() | wills,
        st.none() | texts,
        st.none() | st.binary(),
        properties("connect"),
        st.just(False),
    )
    return made.filter(
        lambda one: "authentication_data" not in one.properties or "authentication_method" in one.properties
    )


wishes = st.builds(Wish, texts, st.integers(0, 2), st.booleans(), st.booleans(), st.integers(0, 2))
some_codes = st.lists(codes, min_size=1).map(tuple)
packets = st.one_of(
    connects(),
    st.builds(Connack, st.just(False), codes, properties("connack")),
    st.builds(
        Publish, texts, st.binary(), st.just(0), st.booleans(), st.just(0), st.just(False), properties("publish")
    ),
    st.builds(
        Publish, texts, st.binary(), st.integers(1, 2), st.booleans(), names, st.booleans(), properties("publish")
    ),
    *(
        st.builds(Ack, st.just(kind), names, codes, properties(kind))
        for kind in ("puback", "pubrec", "pubrel", "pubcomp")
    ),
    st.builds(Subscribe, names, st.lists(wishes, min_size=1).map(tuple), properties("subscribe")),
    st.builds(Suback, names, some_codes, properties("suback")),
    st.builds(Unsubscribe, names, st.lists(texts, min_size=1).map(tuple), properties("unsubscribe")),
    st.builds(Unsuback, names, some_codes, properties("unsuback")),
    st.just(Ping()),
    st.just(Pong()),
    st.builds(Disconnect, codes, properties("disconnect")),
    st.builds(Auth, codes, properties("auth")),
)


def without_properties(packet):
    """As version 3.1.1 has it."""
    if isinstance(packet, Connect):
        will = packet.will and packet.will._replace(properties={})
        lone = packet.user is None
        return packet._replace(version=V3, properties={}, will=will, password=None if lone else packet.password)
    if isinstance(packet, Subscribe):
        packet = packet._replace(wishes=tuple(Wish(one.filter, one.qos) for one in packet.wishes))
    if isinstance(packet, Ack | Disconnect):
        packet = packet._replace(reason=0)
    if isinstance(packet, Unsuback):
        packet = packet._replace(reasons=())
    return packet._replace(properties={}) if "properties" in packet._fields else packet


@given(st.lists(packets, max_size=6), st.integers(1, 50), st.booleans())
def test_there_and_back_in_pieces_of_any_size(sent, size, old):
    version = V3 if old else V5
    if old:
        sent = [without_properties(packet) for packet in sent if not isinstance(packet, Auth)]
    data = b"".join(encode(packet, version) for packet in sent)
    reader = Reader(version=version)
    found = [packet for at in range(0, len(data), size) for packet in reader.feed(data[at : at + size])]
    assert found == sent


def test_fuzz():
    """Damaged packets and noise: a packet or a PeerError, never anything else."""
    draw = random.Random(12)
    seeds = [bytes.fromhex(written) for _, written, _ in KNOWN.values()]
    for _ in range(FUZZED):
        data = bytearray(draw.choice(seeds))
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(data))
            if draw.random() < 0.2:
                data[place:place] = draw.randbytes(draw.randint(1, 4))
            else:
                data[place] = draw.randrange(256)
        with suppress(PeerError):
            assert all(Reader(1 << 16, draw.choice((0, V3, V5))).feed(bytes(data))) in (True, False)
    for first in range(256):
        for version in (V3, V5):
            with suppress(PeerError):
                decode(first, b"", version)
