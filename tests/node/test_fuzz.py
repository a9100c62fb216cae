"""What a hostile neighbour may send: every decoder answers with a value or a PeerError, in bounded time and memory.

Quick: some thousand inputs each. With SERAI_THOROUGH=1 a million each: random bytes, and right ones with bytes changed,
doubled, cut out and joined; and a million more by coverage (tests/node/fuzzing.py),
of which one decoder always gets some.
"""

import random
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable

import pytest

from serai.core.errors import PeerError
from serai.node.bundle import bpsec
from serai.node.bundle.bpv7 import Block, Bundle, Primary, decode_bundle, encode_bundle
from serai.node.bundle.cbor import decode, encode
from serai.node.bundle.message import Envelope, message_of, onward
from serai.node.mqtt.packets import V3, V5
from serai.node.mqtt.packets import Reader as Packets
from serai.node.wire import messages as wire
from serai.node.wire.beacon import Beacon, decode_beacon, encode_beacon
from serai.node.wire.lists import JournalKnown, decode_words, encode_known, encode_list
from serai.node.wire.mtcp import Frames, encode_frame
from serai.node.wire.tcpcl import Offer, Session
from serai.node.words import AllSeen, Header, JournalSeen, ListEntry, ListMessage, Message
from tests.effort import THOROUGH
from tests.node.given import piece
from tests.node.mqtt.test_packets import KNOWN
from tests.node.wires import ROOT

QUICK = 1500
INPUTS = 1_000_000 if THOROUGH else QUICK
KEY = bytes(32)
PLAIN, SIGNED = (Envelope("dtn://a/", "net", key) for key in (b"", KEY))
HEADER = Header("dtn://a/", 1, 2, 0, "", 1000)
MESSAGE = Message("t/x", b"payload", 1, True, "text", "r", b"c", (("a", "b"),), 1, (1, 1, 2))
ENTRY = ListEntry("dtn://a/", 1, "t:x", 1000, 60_000, 30_000, 2, 3)
LISTS = [
    encode_list(ListMessage(1, 2.5, (ENTRY, ENTRY), AllSeen(frozenset(range(5))))),
    encode_list(ListMessage(1, 2.5, (ENTRY,), JournalSeen(b"12345678", 1, 9, frozenset(range(5))))),
    encode_known(JournalKnown(b"12345678", 7)),
]
BUNDLES = [onward(envelope.encode(HEADER, MESSAGE), "dtn://a/", 5, 1) for envelope in (PLAIN, SIGNED)]
BUNDLES.append(encode_bundle(Bundle(Primary("ipn:1.2", "dtn:none", 1, 1, 1, 5, crc=1), (Block(1, 1, b"x", crc=1),))))
SESSION = [
    wire.contact_header(False),
    wire.session_init(wire.SessInit(1, 1000, 1000, "dtn://b/", (wire.Extension(False, 0x8D50, b"x"),))),
    piece(0, b"some", first=True, total=8) + piece(0, b"more", last=True),
    piece(1, b"", first=True, last=True),
    wire.KEEPALIVE_MESSAGE + wire.acknowledgement(0, 3, 3) + wire.refusal(1, 2),
    wire.termination(1, reply=False),
]


def run_session(data: bytes) -> None:
    session = Session(Offer("dtn://a/", tls="none", segment_mru=1000, transfer_mru=2000), active=False, now_s=0.0)
    cut = len(data) // 2
    for part in (data[:cut], data[cut:]):
        session.receive(part, 1.0)
        if session.can_send(3) and not session.sending:
            session.send(b"one")
            session.send(b"two")
        for number in list(session.answering):
            session.accept(number)
        session.tick(2.0)
        session.take(2.0)


def run_frames(data: bytes) -> None:
    list(Frames(1000).receive(data))


def run_packets(data: bytes) -> None:
    """Of a client, as a node reads them: the last byte says whether its version is known already."""
    list(Packets(1 << 16, (0, V3, V5)[data[-1] % 3 if data else 0]).feed(data))


DECODERS: dict[str, tuple[Callable[[bytes], object], list[bytes]]] = {
    "cbor": (decode, [encode([1, -2, 1.5, None, True, b"x", "y", {1: [2], "z": {}}]), b"\x9f\x01\x5f\x41a\xff\xff"]),
    "bundle": (decode_bundle, BUNDLES),
    "open": (PLAIN.open, BUNDLES),
    "open signed": (SIGNED.open, BUNDLES),
    "message": (message_of, BUNDLES),
    "integrity": (bpsec.decode_integrity, [bpsec.encode_integrity(bpsec.Integrity((0, 1), "dtn://a/", (b"x", b"y")))]),
    "lists": (decode_words, LISTS),
    "beacon": (decode_beacon, [encode_beacon(Beacon("dtn://a/", 10, (("tcpcl", 4556),), b"12345678"))]),
    "frames": (run_frames, [encode_frame(b"x" * size) for size in (0, 5, 300)]),
    "session": (run_session, [b"".join(SESSION[:upto]) for upto in range(1, len(SESSION) + 1)]),
    "packets": (run_packets, [bytes.fromhex(written) for _, written, _ in KNOWN.values()]),
}


def changed(random: random.Random, right: list[bytes]) -> bytes:
    """Bytes that are nearly right, or not at all."""
    if random.random() < 0.1:
        return random.randbytes(random.randrange(60))
    data = bytearray(random.choice(right))
    for _ in range(random.randrange(1, 5)):
        place = random.randrange(len(data) + 1)
        match random.randrange(5):
            case 0:
                data[place : place + 1] = bytes(
                    [random.choice((0, 1, 0x18, 0x1B, 0x5F, 0x7F, 0x9F, 0xFF, random.randrange(256)))]
                )
            case 1:
                del data[place : place + random.randrange(1, 9)]
            case 2:
                data[place:place] = random.randbytes(random.randrange(1, 9))
            case 3:
                data[place:place] = data[: random.randrange(40)]
            case _:
                other = random.choice(right)
                data[place:] = other[random.randrange(len(other)) :]
    return bytes(data)


def is_refused(decoder: Callable[[bytes], object], data: bytes) -> bool:
    """Whether it is; it has to be found out quickly."""
    began_s = time.process_time()
    try:
        decoder(data)
        refused = False
    except PeerError:
        refused = True
    assert time.process_time() - began_s < 0.5
    return refused


@pytest.mark.parametrize("name", DECODERS)
def test_nothing_but_a_peer_error(name: str) -> None:
    decoder, right = DECODERS[name]
    assert name != "cbor" or not any(is_refused(decoder, data) for data in right)
    source = random.Random(name)
    tracemalloc.start()
    refused = sum(is_refused(decoder, changed(source, right)) for _ in range(QUICK))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()  # it makes everything slow
    assert peak < 30e6
    refused += sum(is_refused(decoder, changed(source, right)) for _ in range(INPUTS - QUICK))
    assert INPUTS * 0.2 < refused < INPUTS  # most are refused, some are still right


@pytest.mark.parametrize("name", DECODERS if THOROUGH else ["bundle"])
def test_nothing_but_a_peer_error_where_coverage_leads(name: str) -> None:
    pytest.importorskip("atheris", reason="atheris, which has wheels for Linux on x86-64 only")
    runs = 1_000_000 if THOROUGH else 10_000
    fuzzing = [sys.executable, "-m", "tests.node.fuzzing", name, str(runs)]
    told = subprocess.run(fuzzing, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr[-3000:]
    assert f"stat::number_of_executed_units: {runs}" in told.stderr
