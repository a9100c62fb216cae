"""Sessions of TCPCLv4, joined in memory: byte for byte, in order, and against what the other side may do wrong."""

from collections.abc import Callable

import pytest

from serai.core.errors import PeerError
from serai.node.wire import messages as wire
from serai.node.wire import tcpcl
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
from tests.node.given import piece

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
        "07 000a 0000000000080000 0000000000400000 0008 64746e3a2f2f612f"  # SESS_INIT: keepalive, MRUs, node id
        "0000000b 00 8d50 0006 66726f6d2061"  # its extension
        "01 03 0000000000000000 00000000 0000000000000006 62756e646c65"  # XFER_SEGMENT
        "05 00 00"  # SESS_TERM
    )
    assert second == bytes.fromhex(
        "64746e21 04 00"
        "07 0007 00000000000003e8 00000000000186a0 0008 64746e3a2f2f622f 00000000"
        "02 03 0000000000000000 0000000000000006"  # XFER_ACK with the flags of the segment
        "05 01 00"  # SESS_TERM, a reply
    )


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
@pytest.mark.parametrize("size", [0, 1, 1000, 1001, 50_000])
def test_bundles_arrive_however_the_bytes_come(size: int, step: int) -> None:
    joined = Joined(piece=step)
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
    joined.run()
    assert joined.events[0][1:] == []  # not before there was an answer to the first (RFC 9174, 5.2.4)
    joined.sessions[1].accept(first)
    joined.run()
    assert joined.events[0][1:] == [Acknowledged(first, 1), Refused(second, tcpcl.COMPLETED)]


def test_what_is_too_large_is_refused_before_it_is_read() -> None:
    joined = Joined()
    joined.run()
    one, other = joined.sessions
    assert not one.can_send(100_001)
    head = piece(0, bytes(1000), first=True, total=100_001)
    assert other.receive(head[:40], 0.0) == []
    assert other.take(0.0) == wire.refusal(0, tcpcl.NOT_ACCEPTABLE)
    assert other.receive(head[40:], 0.0) == []
    assert other.take(0.0) == b""
    assert other.receive(piece(0, bytes(1000), last=True), 0.0) == []  # what was under way is refused as well
    assert other.take(0.0) == wire.refusal(0, tcpcl.NOT_ACCEPTABLE)
    assert other.receive(piece(1, b"x", first=True, last=True, total=1), 0.0) == [Received(1, b"x")]


def test_the_rest_of_a_refused_bundle_need_not_come() -> None:
    other = opened()
    other.receive(piece(0, bytes(1000), first=True, total=100_001), 0.0)
    assert other.receive(piece(1, b"x", first=True, last=True), 0.0) == [Received(1, b"x")]


@pytest.mark.parametrize(("announced", "comes"), [(3, 2), (2, 3), (0, 1), (1, 0)])
def test_another_length_than_was_announced_is_refused(announced: int, comes: int) -> None:
    other = opened()
    other.receive(piece(0, b"", first=True, total=announced), 0.0)
    other.take(0.0)
    assert other.receive(piece(0, bytes(comes), last=True), 0.0) == []
    assert other.take(0.0) == wire.refusal(0, tcpcl.NOT_ACCEPTABLE)


def test_whoever_was_refused_begins_no_more_segments() -> None:
    joined = Joined()
    joined.run()
    one = joined.sessions[0]
    first, second = one.send(bytes(3000)), one.send(b"next")
    begun = one.take(0.0, 100)
    assert begun == piece(first, bytes(1000), first=True, total=3000)
    assert one.receive(wire.refusal(first, tcpcl.NO_RESOURCES), 0.0) == [Refused(first, tcpcl.NO_RESOURCES)]
    assert one.take(0.0) == piece(second, b"next", first=True, last=True)
    assert one.unwritten == 0
    for late in (wire.refusal(first, 2), wire.acknowledgement(first, 1000, 0)):  # of what was under way
        assert one.receive(late, 0.0) == []


def test_acknowledgements_have_all_flags_of_their_segments() -> None:
    other = opened()
    head = bytearray(piece(0, b"a", first=True))
    head[1] |= 0xF0
    other.receive(bytes(head), 0.0)
    assert other.take(0.0) == wire.acknowledgement(0, 1, 0xF2)
    tail = bytearray(piece(0, b"b", last=True))
    tail[1] |= 0x80
    other.receive(bytes(tail), 0.0)
    other.accept(0)
    assert other.take(0.0) == wire.acknowledgement(0, 2, 0x81)


def test_an_unknown_extension_of_a_transfer_that_must_be_known() -> None:
    other = opened()
    item = b"\1\0\x77\0\0"
    head = bytes([1, 3]) + bytes(8) + len(item).to_bytes(4) + item + (1).to_bytes(8) + b"x"
    assert other.receive(head, 0.0) == []
    assert other.take(0.0) == wire.refusal(0, tcpcl.EXTENSION_FAILURE)
    assert other.receive(head.replace(b"\1\0\x77", b"\0\0\x77").replace(bytes(8), bytes(7) + b"\1", 1), 0.0)


def test_a_session_that_ends_takes_nothing_new() -> None:
    joined = Joined()
    joined.run()
    other = joined.sessions[1]
    other.receive(piece(0, b"begun", first=True), 0.0)
    other.end()
    other.take(0.0)
    assert other.receive(piece(0, b"", last=True), 0.0) == [Received(0, b"begun")]
    other.receive(piece(1, b"new", first=True, last=True), 0.0)
    other.accept(0)
    assert other.take(0.0) == wire.acknowledgement(0, 5, 1) + wire.refusal(1, tcpcl.SESSION_ENDS)


@pytest.mark.parametrize("rate_bps", [1000.0, 64_000.0, 1e6, 1e9])
def test_segments_are_as_long_as_the_link_is_fast(rate_bps: float) -> None:
    """On a slow link something is acknowledged every few seconds; on a fast one there are few segments."""
    wide = {"segment_mru": 1 << 20, "transfer_mru": 1 << 22}
    a, b = (Offer(f"dtn://{name}/", tls="none", **wide) for name in "ab")  # type: ignore[arg-type]
    joined = Joined(a, b)
    joined.run()
    one, other = joined.sessions
    now_s, longest_s, segments = 0.0, 0.0, 0
    for number in range(8):
        one.send(bytes(1 << 18 if rate_bps > 1e5 else 1 << 13))
        while data := one.take(now_s, 1):
            now_s += 8 * len(data) / rate_bps
            longest_s = max(longest_s, 8 * len(data) / rate_bps)
            segments += 1
            other.receive(data, now_s)
            one.receive(other.take(now_s), now_s)
        other.accept(number)
        one.receive(other.take(now_s), now_s)
    assert longest_s < (34.0 if rate_bps == 1000.0 else 3.0)
    assert rate_bps < 1e9 or segments < 64 + 8


def test_more_than_was_announced_is_refused_as_well() -> None:
    joined = Joined()
    joined.run()
    other = joined.sessions[1]
    other.receive(piece(0, b"", first=True), 0.0)
    for _ in range(100):
        assert other.receive(piece(0, bytes(1000)), 0.0) == []
    other.take(0.0)
    other.receive(piece(0, b"x"), 0.0)
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


def dialled() -> Session:
    session = Session(A, active=True, now_s=0.0)
    session.take(0.0)
    return session


INIT = wire.SessInit(10, 64_000, 64_000, "dtn://a/", ())
REJECTED: dict[str, tuple[Callable[[], Session], bytes, bytes]] = {
    "no TCPCL": (lambda: Session(B, active=False, now_s=0), b"GET / HTTP/1.1", b""),
    "another version": (lambda: Session(B, active=False, now_s=0), b"dtn!\x03\0", b"dtn!\x04\0\x05\0\x02"),
    "another version of who was dialled": (dialled, b"dtn!\x03\0", b""),
    "an unknown type": (opened, b"\x77", b"\x06\x01\x77"),
    "a second SESS_INIT": (opened, wire.session_init(INIT), b"\x06\x03\x07"),
    "an answer to nothing": (opened, wire.acknowledgement(5, 1, 3), b"\x06\x03\x02"),
    "a refusal of nothing": (opened, wire.refusal(5, 1), b"\x06\x03\x03"),
    "a piece of no transfer": (opened, piece(5, b"x", last=True), b"\x06\x03\x01"),
    "a segment that is too long": (opened, piece(0, bytes(1001), first=True, last=True), b""),
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
        session.receive(piece(0, b"x", first=True, last=True), 0.0)


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
