"""Wireshark reads what sessions say: no malformed packet, no warning, good CRCs."""

import asyncio
import json
import struct
import subprocess
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from serai.node.bundle.message import Envelope, onward
from serai.node.links import Address
from serai.node.wire import messages as wire
from serai.node.wire import tcpcl
from serai.node.wire.lists import encode_list
from serai.node.wire.tcpcl import Offer
from serai.node.words import AllSeen, Header, ListMessage, Message
from tests.node.running import Relay, Running, running, until
from tests.node.test_sessions import Joined
from tests.programs import program

LINK_RAW_IP, LINK_USER0 = 101, 147
WORSE_THAN_A_NOTE = 0x600000


def write_capture(path: Path, packets: list[bytes], link: int) -> None:
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, link))
        for number, packet in enumerate(packets):
            file.write(struct.pack("<IIII", number, 0, len(packet), len(packet)) + packet)


def as_packets(talk: list[tuple[int, bytes]]) -> list[bytes]:
    """TCP to port 4556 with these bytes: 0 from the dialler, 1 from the other."""
    packets = []
    sent = [1, 1]
    addresses = [bytes([127, 0, 0, 1]), bytes([127, 0, 0, 2])]
    for who, data in talk:
        for start in range(0, len(data), 30_000):
            piece = data[start : start + 30_000]
            ports = (50_000, 4556) if who == 0 else (4556, 50_000)
            tcp = struct.pack(">HHIIBBHHH", *ports, sent[who], sent[1 - who], 5 << 4, 0x18, 65_535, 0, 0) + piece
            ends = addresses[who], addresses[1 - who]
            packets.append(struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, *ends) + tcp)
            sent[who] += len(piece)
    return packets


def read_by_tshark(path: Path, *options: str) -> list[dict[str, Any]]:
    command = [program("tshark"), "-2", "-r", str(path), "-T", "json", "--no-duplicate-keys", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [packet["_source"]["layers"] for packet in json.loads(done.stdout)]


def found(layers: Any, name: str) -> list[Any]:
    """All values of a field, wherever it stands."""
    if isinstance(layers, list):
        return [value for item in layers for value in found(item, name)]
    if not isinstance(layers, dict):
        return []
    here = [item for item in (layers.get(name),) if item is not None]
    flat = [value for item in here for value in (item if isinstance(item, list) else [item])]
    return flat + [value for key, item in layers.items() if key != name for value in found(item, name)]


def complaints(packets: Any) -> list[str]:
    """What is worse than a note; types of ours, from the ranges for private use, are unknown to Wireshark."""
    worse = [
        expert["_ws.expert.message"]
        for expert in found(packets, "_ws.expert")
        if int(expert["_ws.expert.severity"]) >= WORSE_THAN_A_NOTE
    ]
    return [text for text in worse if text not in ("Session Extension type is unknown", "Unknown type code")]


def bundles(key: bytes) -> list[bytes]:
    one, other = (Envelope(f"dtn://{name}/", "net", key) for name in "ab")
    message = Message("Wetter/Köln", bytes(100_000), 2, True, "text/plain", "r", b"c", (("a", "b"),), 1)
    kept = one.encode(Header("dtn://a/", 800_000_000_000, 7, 0, "", 60_000), message)
    short = other.encode(Header("dtn://c/", 1, 0, 0, "", 5), Message("t", b""))
    words = encode_list(ListMessage(1, 2.0, (), AllSeen(frozenset({1}))))
    return [
        onward(kept, "dtn://a/", 12, 1),
        onward(short, "dtn://a/", 1, 2),
        one.control("dtn://b/", words, 800_000_000_000, 1),
    ]


def test_a_session_is_clean(tmp_path: Path) -> None:
    joined = Joined(Offer("dtn://a/", tls="none", extension=b"\x81\x01"), Offer("dtn://b/", tls="none"))
    joined.run()
    for bundle in bundles(b""):
        joined.sessions[0].send(bundle)
    joined.run()
    joined.sessions[1].accept(0)
    joined.sessions[1].refuse(1, tcpcl.COMPLETED)
    joined.sessions[1].accept(2)
    joined.run()
    joined.sessions[0].tick(10.0)
    joined.run()
    joined.sessions[0].end()
    joined.run()
    write_capture(tmp_path / "session.pcap", as_packets(joined.talk), LINK_RAW_IP)
    packets = read_by_tshark(tmp_path / "session.pcap", "-d", "tcp.port==4556,tcpcl")
    assert complaints(packets) == []
    assert found(packets, "_ws.malformed") == []
    types = [int(type, 0) for type in found(packets, "tcpcl.v4.mhdr.type")]
    assert [type for type, _ in groupby(types)] == [7, 1, 2, 3, 2, 4, 5]  # INIT, segments, answers, KEEPALIVE, TERM
    assert types.count(1) == 2 + -(-len(bundles(b"")[0]) // (4 << 10))  # one is cut into segments
    assert types.count(7) == types.count(5) == 2


def test_a_rejection_is_read_as_we_mean_it(tmp_path: Path) -> None:
    joined = Joined(Offer("dtn://a/", tls="none"), Offer("dtn://b/", tls="none"))
    joined.run()
    talk = [*joined.talk, (1, wire.rejection(wire.UNEXPECTED, wire.XFER_ACK))]
    write_capture(tmp_path / "session.pcap", as_packets(talk), LINK_RAW_IP)
    packets = read_by_tshark(tmp_path / "session.pcap", "-d", "tcp.port==4556,tcpcl")
    assert found(packets, "tcpcl.v4.msg_reject.reason") == ["3"]
    assert found(packets, "tcpcl.v4.msg_reject.head") == ["0x02"]


@pytest.mark.parametrize("key", [b"", bytes(32)], ids=["with CRCs", "with integrity blocks"])
def test_bundles_are_clean_and_their_crcs_good(tmp_path: Path, key: bytes) -> None:
    write_capture(tmp_path / "bundles.pcap", bundles(key), LINK_USER0)
    as_bundles = 'uat:user_dlts:"User 0 (DLT=147)","bpv7","0","","0",""'
    packets = read_by_tshark(tmp_path / "bundles.pcap", "-o", as_bundles)
    assert complaints(packets) == []
    assert found(packets, "_ws.malformed") == []
    assert len(found(packets, "bpv7.primary.src_uri")) == 3
    checked = found(packets, "bpv7.crc_status")
    # primary block, three blocks of the path, 192 and payload; with integrity blocks only the path and that block
    assert checked == ["1"] * (6 + 6 + 5 if not key else 4 + 4 + 4)
    if key:
        assert found(packets, "bpsec.asb.target") == ["0", "1", "2"] * 2 + ["0", "1"]
        assert set(found(packets, "bpsec.defaultsc.shavar")) == {"5"}
        assert set(found(packets, "bpsec.defaultsc.scope")) == {"0x0000000000000007"}


def test_a_session_between_two_live_nodes_is_clean(tmp_path: Path) -> None:
    async def story() -> list[tuple[int, bytes]]:
        a, b = Running("a"), Running("b")
        async with running(a, b) as (_, port):
            relay = Relay(port)
            for size in (1, 300, 200_000):
                a.publish(bytes(size))
                b.publish(bytes(size))
            a.links.dial(Address("127.0.0.1", await relay.start()))
            await until(lambda: len(a.core.kept) == len(b.core.kept) == 6)
            await a.links.stop()
            relay.stop()
            return relay.talk

    write_capture(tmp_path / "live.pcap", as_packets(asyncio.run(story())), LINK_RAW_IP)
    packets = read_by_tshark(tmp_path / "live.pcap", "-d", "tcp.port==4556,tcpcl")
    assert complaints(packets) == []
    assert found(packets, "_ws.malformed") == []
    assert found(packets, "tcpcl.v4.sess_init.nodeid_data") == ["dtn://a/", "dtn://b/"]
    types = [int(type, 0) for type in found(packets, "tcpcl.v4.mhdr.type")]
    assert types.count(wire.SESS_TERM) == 2
    assert types.count(wire.XFER_SEGMENT) == types.count(wire.XFER_ACK) > 2 * (1 + 1 + 1 + 1)  # a list, and bundles
