"""dtn7zero, another implementation: it hears our beacon, sends us its own, and bundles go over by MTCP both ways.

It reads no CRCs, so it gets bundles without: what our nodes make it does not take ("not implemented yet").
"""

import importlib
import socket
import time
from collections.abc import Callable
from typing import Any

import cbor2
import pytest

from serai.node.bundle.bpv7 import (
    BUNDLE_AGE,
    HOP_COUNT,
    NO_CRC,
    PAYLOAD,
    PREVIOUS_NODE,
    Block,
    Bundle,
    Primary,
    decode_bundle,
    encode_bundle,
)
from serai.node.wire.beacon import Beacon, decode_beacon, encode_beacon
from serai.node.wire.mtcp import Frames, encode_frame
from tests.node.wires import free_port

dtn7zero = pytest.importorskip("dtn7zero", reason="dtn7zero, which `make` installs where there is a C compiler")
US = "127.0.0.2"  # to it, all that comes from 127.0.0.1 is its own


def poll(receive: Callable[[], Any]) -> Any:
    """It has no thread of its own: it works when it is asked to."""
    end_s = time.monotonic() + 20
    while time.monotonic() < end_s:
        dtn7zero.update()
        try:
            if found := receive():
                return found
        except BlockingIOError:
            time.sleep(0.005)
    raise AssertionError("nothing came")


def test_beacons_and_bundles_both_ways() -> None:
    settings = importlib.import_module("dtn7zero.configuration").CONFIGURATION
    settings.PORT.MTCP, settings.IPND.INTERFACE_WHITELIST = free_port(), ["lo"]
    got: list[tuple[bytes, str]] = []
    there = dtn7zero.setup("dtn://seven/", lambda payload, source, *_: got.append((payload, source)))
    with socket.create_server((US, 0)) as mtcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as radio:
        for one in (mtcp, radio):
            one.setblocking(False)
        radio.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        radio.bind((US, 3003))

        services = (("tcpcl", 4556), ("mtcp", mtcp.getsockname()[1]))
        radio.sendto(encode_beacon(Beacon("dtn://a/", 10, services, bytes(8))), ("127.0.0.1", 3003))
        beacon = decode_beacon(poll(lambda: radio.recv(2000)))  # it answers whom it does not know
        assert (beacon.node, beacon.network) == ("dtn://seven/", None)
        assert beacon.port("mtcp") == settings.PORT.MTCP

        path = ((PREVIOUS_NODE, [1, "//a/"]), (BUNDLE_AGE, 5), (HOP_COUNT, [64, 1]))
        blocks = [Block(type, type, cbor2.dumps(value), crc=NO_CRC) for type, value in path]
        primary = Primary("dtn://seven/", "dtn://a/", 800_000_000_000, 2, 10**12, crc=NO_CRC)
        bundle = Bundle(primary, (*blocks, Block(PAYLOAD, 1, b"hello", crc=NO_CRC)))
        with socket.create_connection(("127.0.0.1", settings.PORT.MTCP), source_address=(US, 0)) as to_it:
            to_it.sendall(encode_frame(encode_bundle(bundle)))
            assert poll(lambda: got) == [(b"hello", "dtn://a/")]

        there.send(b"good day" * 100, "dtn://a/x")
        from_it = poll(lambda: mtcp.accept())[0]
        with from_it:
            from_it.setblocking(False)
            frames = Frames(10_000)
            (data,) = poll(lambda: list(frames.receive(from_it.recv(5000))))
        read = decode_bundle(data)
        assert (read.primary.source, read.primary.destination) == ("dtn://seven/", "dtn://a/x")
        assert read.payload == b"good day" * 100
