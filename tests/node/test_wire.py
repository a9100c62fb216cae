"""Lists, beacons and frames: byte for byte, and against others' words."""

import socket
import struct

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.errors import PeerError
from serai.node.bundle.cbor import decode
from serai.node.wire.beacon import Beacon, decode_beacon, encode_beacon
from serai.node.wire.lists import MAX_ENTRIES, JournalKnown, decode_words, encode_known, encode_list
from serai.node.wire.mtcp import Frames, encode_frame
from serai.node.words import AllSeen, ListEntry, ListMessage
from tests.node.given import lists


@given(lists)
def test_lists_come_back(message: ListMessage) -> None:
    data = encode_list(message)
    assert decode_words(data) == message
    assert cbor2.loads(data)[4] == [list(entry) for entry in message.entries]


def test_a_list_byte_for_byte() -> None:
    entry = ListEntry("dtn://a/", 1, "t:x", 1000, 60_000, 30_000, 2, 3)
    message = ListMessage(5, 1.5, (entry,), AllSeen(frozenset({258, 1})))
    assert encode_list(message) == bytes.fromhex(
        "86 01 00 05 fb3ff8000000000000 81 88 68 64746e3a2f2f612f 01 63 743a78 1903e8 19ea60 197530 02 03"
        "82 00 50 0000000000000001 0000000000000102"
    )
    assert encode_known(JournalKnown(b"epochtwo", 77)) == bytes.fromhex("84 01 01 48 65706f636874776f 184d")
    assert decode_words(encode_known(JournalKnown(b"epochtwo", 77))) == JournalKnown(b"epochtwo", 77)


ENTRY = ["dtn://a/", 1, "t:x", 1000, 60_000, 30_000, 2, 3]


@pytest.mark.parametrize(
    "value",
    [
        [2, 0, 5, 1.5, [], [0, b""]],
        [1, 0, -1, 1.5, [], [0, b""]],
        [1, 0, True, 1.5, [], [0, b""]],
        [1, 0, 5, float("nan"), [], [0, b""]],
        [1, 0, 5, 1.5, [], [0, b"1234567"]],
        [1, 0, 5, 1.5, [], [3]],
        [1, 0, 5, 1.5, [], [1, 99, 1, b""]],
        [1, 0, 5, 1.5, [], [2, b"12345678", 5, 5, bytes(16)]],
        [1, 0, 5, 1.5, [ENTRY[:-1]], [0, b""]],
        [1, 0, 5, 1.5, [[*ENTRY[:-1], 256]], [0, b""]],
        [1, 0, 5, 1.5, [[*ENTRY[:-1], -7]], [0, b""]],
        [1, 0, 5, 1.5, [[*ENTRY[:-2], 1 << 62, 0]], [0, b""]],
        [1, 0, 5, 1.5, [["dtn://a/", 1, "t:" + 1024 * "x", 1, 1, 1, 1, 1]], [0, b""]],
        [1, 0, 5, 1.5, [ENTRY] * (MAX_ENTRIES + 1), [0, b""]],
        [1, 1, b"short", 5],
        [1, 2],
        {},
    ],
)
def test_lists_that_are_none(value: object) -> None:
    with pytest.raises(PeerError):
        decode_words(cbor2.dumps(value))


@pytest.mark.parametrize(
    "beacon",
    [
        Beacon("dtn://a/", 10, (("tcpcl", 4556),), b"12345678"),
        Beacon("dtn:none", 2, (), None),
    ],
)
def test_beacons_come_back(beacon: Beacon) -> None:
    assert decode_beacon(encode_beacon(beacon)) == beacon


def test_a_beacon_byte_for_byte() -> None:
    beacon = Beacon("dtn://a/", 10, (("tcpcl", 4556),), b"12345678")
    assert cbor2.loads(encode_beacon(beacon)) == [
        7, 3, [1, "//a/"], 10, [[["tcpcl", 4556]], {"dpsp": 1, "net": b"12345678"}],
    ]  # fmt: skip
    assert (beacon.port("tcpcl"), beacon.port("mtcp")) == (4556, None)


def test_a_beacon_of_dtn7_with_a_count_and_a_period() -> None:
    theirs = [7, 7, [1, "//b/"], 0, [[["mtcp", 16162]], {42: b"unicast"}], 10]
    assert decode_beacon(cbor2.dumps(theirs)) == Beacon("dtn://b/", 0, (("mtcp", 16162),), None)


@pytest.mark.parametrize(
    "value",
    [
        [7, 3],
        [7, 3, [1, "//a/"], -1, [[], {}]],
        [7, 3, [1, "//a/"], 1 << 32, [[], {}]],
        [7, 3, [1, "//a/"], 1, [[], {}], 10],
        [7, 7, [1, "//a/"], 1, [[], {}]],
        [7, 3, [1, "//a/"], 1, [[["x", 0]], {}]],
        [7, 3, [1, "//a/"], 1, [[], {"dpsp": 1, "net": b"x"}]],
    ],
)
def test_beacons_that_are_none(value: object) -> None:
    with pytest.raises(PeerError):
        decode_beacon(cbor2.dumps(value))


@given(st.lists(st.binary(max_size=70_000) | st.binary(max_size=30), max_size=4), st.integers(1, 5000))
def test_frames_come_back(bundles: list[bytes], piece: int) -> None:
    data = b"".join(map(encode_frame, bundles))
    assert data == b"".join(map(cbor2.dumps, bundles))
    frames, found = Frames(70_000), list[bytes]()
    for start in range(0, len(data), piece):
        found += frames.receive(data[start : start + piece])
    assert found == bundles


@pytest.mark.parametrize("data", [b"\x01", b"\x5f", b"\x5a\x00\x10\x00\x00"])
def test_frames_that_are_none(data: bytes) -> None:
    with pytest.raises(PeerError, match="MTCP"):
        list(Frames(1000).receive(data))


def test_frames_of_pyd3tn() -> None:
    mtcp = pytest.importorskip("pyd3tn.mtcp")
    here, there = socket.socketpair()
    with here, there:
        mtcp.MTCPSocket(there).send_bundle(bytes(300))
        assert list(Frames(1000).receive(here.recv(1000))) == [bytes(300)]
        here.sendall(encode_frame(b"hello"))
        assert mtcp.MTCPSocket(there, timeout=5).recv_bundle() == b"hello"


# -- the decoder of CBOR, beside another

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(-(2**64), 2**64 - 1) | st.floats(allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.binary() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.integers(0, 99) | texts, inner, max_size=4),
    max_leaves=20,
)


@given(values, st.booleans())
def test_cbor_is_read_as_another_reads_it(value: object, indefinite: bool) -> None:
    data = cbor2.dumps(value, indefinite_containers=indefinite)
    try:
        assert decode(data) == value
    except PeerError as error:
        assert "nested" in str(error)  # noqa: PT017 - only this is allowed


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x18", b"\x1c", b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff", b"\x5b\x7f\xff\xff\xff\xff\xff\xff\xff\0",
        b"\xa2\x01\x02\x01\x03", b"\xa1\xf6\x01", b"\xc0\x61a", b"\xd8\x1c\x80", b"\x61\xff", b"\x81" * 9 + b"\x01",
        b"\x9f", b"\xff", b"\xf7", b"\x5f\x61a\xff", b"\x01\x02", b"\xf8\x14", b"\xa1" * 2000,
    ],
)  # fmt: skip
def test_cbor_that_we_do_not_take(data: bytes) -> None:
    with pytest.raises(PeerError):
        decode(data)


def test_items_are_bounded() -> None:
    with pytest.raises(PeerError, match="too many"):
        decode(b"\x9a" + struct.pack(">I", 500_000) + b"\x80" * 500_000)
