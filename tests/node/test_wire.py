"""Sessions, lists, beacons and frames: joined in memory, byte for byte, and against others' words."""

import socket
import struct
from collections.abc import Callable

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.errors import PeerError
from serai.node.bundle.cbor import decode
from serai.node.wire import messages as wire
from serai.node.wire import tcpcl
from serai.node.wire.beacon import Beacon, decode_beacon, encode_beacon
from serai.node.wire.lists import MAX_ENTRIES, JournalKnown, decode_words, encode_known, encode_list
from serai.node.wire.mtcp import Frames, encode_frame
from serai.node.wire.tcpcl import (
    Acknowledged,
    Closed,
    Ending,
    Event,
    Offer,
    Opened,
    Progress,
    Received,
    Refused,
    Session,
    WantTls,
)
from serai.node.words import AllSeen, ListEntry, ListMessage
from tests.node.given import lists

A = Offer("dtn://a/", tls="none", keepalive_s=10, extension=b"from a")
B = Offer("dtn://b/", tls="none", keepalive_s=7, transfer_mru=100_000, segment_mru=1000)


class Joined:
    """Two sessions whose bytes go to each other, in pieces of any size."""

    def __init__(self, a: Offer = A, b: Offer = B, piece: int = 1 << 20) -> None:
        self.sessions = Session(a, active=True, now_s=0.0), Session(b, active=False, now_s=0.0)
        self.events: tuple[list[Event], list[Event]] = ([], [])
        self.talk: list[tuple[int, bytes]] = []
        self.piece = piece

    def said(self, who: int) -> bytes:
        return b"".join(data for me, data in self.talk if me == who)

    def run(self, now_s: float = 0.0) -> None:
        moved = True
        while moved:
            moved = False
            for me, other in ((0, 1), (1, 0)):
                data = self.sessions[me].take(now_s)
                moved = moved or bool(data)
                if data:
                    self.talk.append((me, data))
                for start in range(0, len(data), self.piece):
                    self.events[other].extend(self.sessions[other].receive(data[start : start + self.piece], now_s))


def test_a_session_byte_for_byte() -> None:
    """What RFC 9174 lays down in figures, written out by hand."""
    joined = Joined()
    joined.run()
    joined.sessions[0].send(b"bundle")
    joined.run()
    joined.sessions[1].accept(0)
    joined.sessions[0].end()
    joined.run()
    first, second = joined.said(0), joined.said(1)
    assert first == bytes.fromhex(
        "64746e21 04 00"  # contact header: magic, version, no TLS
        "07 000a 0000000000010000 0000000000400000 0008 64746e3a2f2f612f"  # SESS_INIT: keepalive, MRUs, node id
        "0000000b 00 8d50 0006 66726f6d2061"  # its extension
        "01 03 0000000000000000 0000000d 00 0001 0008 0000000000000006 0000000000000006 62756e646c65"  # XFER_SEGMENT
        "05 00 00"  # SESS_TERM
    )
    assert second == bytes.fromhex(
        "64746e21 04 00"
        "07 0007 00000000000003e8 00000000000186a0 0008 64746e3a2f2f622f 00000000"
        "02 03 0000000000000000 0000000000000006"  # XFER_ACK with the flags of the segment
        "05 01 00"  # SESS_TERM, a reply
    )


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
@pytest.mark.parametrize("size", [0, 1, 1000, 1001, 50_000])
def test_bundles_arrive_however_the_bytes_come(size: int, piece: int) -> None:
    joined = Joined(piece=piece)
    joined.run()
    assert joined.events == ([Opened("dtn://b/", None)], [Opened("dtn://a/", b"from a")])
    one, other = joined.sessions
    assert one.keepalive_s == other.keepalive_s == 7
    data = bytes(size)
    number = one.send(data)
    joined.run()
    assert joined.events[1][-1] == Received(number, data)
    progress = [event for event in joined.events[0] if isinstance(event, Progress)]
    assert [event.length for event in progress] == list(range(1000, size, 1000))
    assert one.sending == {number: size}
    other.accept(number)
    joined.run()
    assert joined.events[0][-1] == Acknowledged(number, size)
    assert not one.sending
    assert not other.answering


def test_refusals_go_back() -> None:
    joined = Joined()
    joined.run()
    first, second = joined.sessions[0].send(b"1"), joined.sessions[0].send(b"2")
    joined.run()
    joined.sessions[1].refuse(second, tcpcl.COMPLETED)
    joined.sessions[1].accept(first)
    joined.run()
    assert joined.events[0][1:] == [Refused(second, tcpcl.COMPLETED), Acknowledged(first, 1)]


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    joined = Joined()
    joined.run()
    one, other = joined.sessions
    assert not one.can_send(100_001)
    head = wire.segment(0, bytes(1000), 100_001, last=False)
    assert other.receive(head, 0.0) == []
    assert other.take(0.0) == wire.refusal(0, tcpcl.NOT_ACCEPTABLE)
    assert other.receive(wire.segment(0, bytes(1000), None, last=True), 0.0) == []  # the rest is read over
    assert other.receive(wire.segment(1, b"x", 1, last=True), 0.0) == [Received(1, b"x")]


def test_more_than_was_announced_is_refused_as_well() -> None:
    joined = Joined()
    joined.run()
    other = joined.sessions[1]
    other.receive(wire.segment(0, b"", 0, last=False), 0.0)
    for _ in range(100):
        assert other.receive(wire.segment(0, bytes(1000), None, last=False), 0.0) == []
    other.take(0.0)
    other.receive(wire.segment(0, b"x", None, last=False), 0.0)
    assert other.take(0.0) == wire.refusal(0, tcpcl.NOT_ACCEPTABLE)


def test_an_end_waits_for_what_is_under_way() -> None:
    joined = Joined()
    joined.run()
    one, other = joined.sessions
    number = one.send(b"last")
    one.end(tcpcl.BUSY)
    joined.run()
    assert joined.events[1][-2:] == [Received(number, b"last"), Ending(tcpcl.BUSY)]
    assert other.state == one.state == "ending"
    assert not other.can_send(1)
    assert other.accept(number) == [Closed(0)]
    joined.run()
    assert joined.events[0][-2:] == [Acknowledged(number, 4), Closed(0)]


def test_keepalives_and_silence() -> None:
    joined = Joined()
    joined.run()
    one, other = joined.sessions
    assert one.due_s() == 7.0
    assert one.tick(6.9) == []
    assert one.take(6.9) == b""
    assert one.tick(7.0) == []
    joined.run(7.0)
    assert joined.talk[-1] == (0, bytes([wire.KEEPALIVE]))
    assert other.heard_s == 7.0
    assert one.tick(13.9) == []
    assert one.tick(14.0) == [Closed(tcpcl.IDLE)]
    assert one.take(14.0)[-3:] == wire.termination(tcpcl.IDLE, reply=False)


def test_encryption_comes_first_where_it_is_required() -> None:
    joined = Joined(Offer("dtn://a/"), Offer("dtn://b/"))
    joined.run()
    assert joined.events == ([WantTls()], [WantTls()])
    assert joined.talk == [(0, b"dtn!\x04\x01"), (1, b"dtn!\x04\x01")]
    assert joined.sessions[1].receive(b"\x16\x03", 0.0) == []
    assert joined.sessions[1].leftover() == b"\x16\x03"
    for session in joined.sessions:
        session.tls_done()
    joined.run()
    assert joined.events[1][-1] == Opened("dtn://a/", None)


@pytest.mark.parametrize(("a", "b"), [("required", "none"), ("none", "required")])
def test_no_session_with_a_node_that_does_not_encrypt(a: tcpcl.Tls, b: tcpcl.Tls) -> None:
    joined = Joined(Offer("dtn://a/", tls=a), Offer("dtn://b/", tls=b))
    with pytest.raises(PeerError):
        joined.run()


def opened() -> Session:
    joined = Joined()
    joined.run()
    return joined.sessions[1]


INIT = wire.SessInit(10, 64_000, 64_000, "dtn://a/", ())
REJECTED: dict[str, tuple[Callable[[], Session], bytes, bytes]] = {
    "no TCPCL": (lambda: Session(B, active=False, now_s=0), b"GET / HTTP/1.1", b""),
    "another version": (lambda: Session(B, active=False, now_s=0), b"dtn!\x03\0", b""),
    "an unknown type": (opened, b"\x77", b"\x06\x01\x77"),
    "a second SESS_INIT": (opened, wire.session_init(INIT), b"\x06\x03\x07"),
    "an answer to nothing": (opened, wire.acknowledgement(5, 1, 3), b"\x06\x03\x02"),
    "a refusal of nothing": (opened, wire.refusal(5, 1), b"\x06\x03\x03"),
    "a piece of no transfer": (opened, wire.segment(5, b"x", None, last=True), b"\x06\x03\x01"),
    "a segment that is too long": (opened, wire.segment(0, bytes(1001), 1001, last=True), b""),
    "a reply to nothing": (opened, wire.termination(0, reply=True), b"\x06\x03\x05"),
    "a rejection": (opened, wire.rejection(1, 1), b""),
}


@pytest.mark.parametrize("case", REJECTED)
def test_errors_of_the_other_side_end_the_session(case: str) -> None:
    make, data, answer = REJECTED[case]
    session = make()
    with pytest.raises(PeerError):
        session.receive(data, 0.0)
    assert session.take(0.0) == answer
    assert session.state == "closed"


def test_bundles_before_the_beginning_are_rejected() -> None:
    session = Session(B, active=False, now_s=0.0)
    session.receive(wire.contact_header(False), 0.0)
    session.take(0.0)
    with pytest.raises(PeerError, match="state init"):
        session.receive(wire.segment(0, b"x", 1, last=True), 0.0)


@pytest.mark.parametrize(
    "init",
    [INIT._replace(segment_mru=1), INIT._replace(extensions=(wire.Extension(True, 0x99, b""),))],
    ids=["segments too short", "a critical extension"],
)
def test_a_session_that_cannot_be(init: wire.SessInit) -> None:
    session = Session(B, active=False, now_s=0.0)
    session.receive(wire.contact_header(False), 0.0)
    session.take(0.0)
    with pytest.raises(PeerError):
        session.receive(wire.session_init(init), 0.0)
    assert session.take(0.0) == wire.termination(tcpcl.CONTACT_FAILURE, reply=False)


# -- lists, beacons, frames


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


@pytest.mark.parametrize(
    "value",
    [
        [7, 3],
        [7, 3, [1, "//a/"], 0, [[], {}]],
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
        b"\x9f", b"\xff", b"\xf7", b"\x5f\x61a\xff", b"\x01\x02", b"\xf8\x14",
    ],
)  # fmt: skip
def test_cbor_that_we_do_not_take(data: bytes) -> None:
    with pytest.raises(PeerError):
        decode(data)


def test_items_are_bounded() -> None:
    with pytest.raises(PeerError, match="too many"):
        decode(b"\x9a" + struct.pack(">I", 500_000) + b"\x80" * 500_000)
