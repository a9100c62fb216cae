"""Power fails at a node, at any of its writes: what it had acknowledged is there when it starts again."""

import asyncio
import os
import random
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from serai.node.bundle.message import Envelope, onward
from serai.node.core import Node
from serai.node.link import Hello, network_id
from serai.node.mqtt.packets import Connect, Publish, Reader, encode
from serai.node.settings import NodeSettings
from serai.node.store import Store
from serai.node.wire import messages as wire
from serai.node.wire.tcpcl import Offer, Refused, Session
from tests.effort import THOROUGH
from tests.node.flood import message
from tests.node.power import TRACING, Disk, Event, read_trace
from tests.node.test_daemon import DOORS, make_folder
from tests.node.wires import ROOT
from tests.programs import program

EACH = 16
LARGE = 250_000  # some are: the store then moves its log into its file meanwhile
Promises = list[tuple[bytes, bytes]]
"""What a node says when it has something, and what it then has to keep."""


@contextmanager
def traced(folder: Path, trace: Path) -> Iterator[tuple[int, dict[str, int]]]:
    """A node that is watched: the number of its process, and its doors."""
    command = [program("strace"), *TRACING, "-o", str(trace), sys.executable, "-m", "serai", "node", "run"]
    watched = subprocess.Popen(
        [*command, str(folder), "--json"], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert watched.stdout is not None
    doors = re.findall(r'"(\w+)": (\d+)', watched.stdout.readline())
    pid = int((folder / "node.db.lock").read_text())
    try:
        yield pid, {name: int(port) for name, port in doors}
        watched.wait(30)
    finally:
        if watched.poll() is None:
            os.kill(pid, signal.SIGKILL)
        watched.communicate()


def publish(port: int, begin: int) -> Promises:
    """An application, QoS 1 and 2 by turns: waits for the acknowledgement of each before the next."""
    promises = []
    with socket.create_connection(("127.0.0.1", port)) as there:
        there.settimeout(30)
        reader = Reader(version=4)
        there.sendall(encode(Connect(f"app{begin}"), 4))
        assert list(reader.feed(there.recv(100)))
        for number in range(begin, begin + EACH):
            qos, text = 1 + number % 2, b"p%06d " % number
            payload = text.ljust(LARGE if number % 3 == 0 else 30, b".")
            there.sendall(encode(Publish("t", payload, qos, packet=number), 4))
            answer = b""
            while len(answer) < 4:
                answer += there.recv(100)
            promises.append((answer, text))
    return promises


async def hand_over(port: int, name: str) -> Promises:
    """A neighbour, several bundles at a time: each is acknowledged by its number."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    eid, promises = f"dtn://{name}/", []
    hello = Hello(network_id("net", b""), name.encode().ljust(8), 0, 2, True)
    session = Session(Offer(eid, tls="none", extension=hello.encode()), active=True, now_s=0.0)
    payloads = [b"%s%06d " % (name.encode(), number) for number in range(EACH)]
    bundles = [(onward(message(Envelope(eid, "net"), n, text)[1], eid, 5, 1), text) for n, text in enumerate(payloads)]
    async with asyncio.timeout(60):
        while bundles or session.sending:
            while session.state == "open" and bundles and len(session.sending) < 8:
                (data, text), *bundles = bundles
                promises.append((wire.acknowledgement(session.send(data), len(data), 3), text))
            writer.write(session.take(0.0))
            refused = [one for one in session.receive(await reader.read(65_536), 0.0) if isinstance(one, Refused)]
            assert not refused
            for number in list(session.answering):
                session.accept(number)
    writer.close()
    return promises


def story(folder: Path, durability: str) -> tuple[list[Event], list[Promises]]:
    """A node is killed once and ends in order once; what it did, and what it promised in each of its two lives."""
    make_folder("a", "net", folder / "a")
    with (folder / "a" / "node.toml").open("a") as file:
        file.write(f'{DOORS}[store]\ndurability = "{durability}"\n')
    events, promises = [], []
    for life, ending in enumerate((signal.SIGKILL, signal.SIGTERM)):
        with traced(folder / "a", folder / "trace") as (pid, doors):
            told = publish(doors["mqtt"], 1 + life * EACH)
            told += asyncio.run(hand_over(doors["tcpcl"], f"n{life}"))
            told += publish(doors["mqtt"], 1000 + life * EACH)
            os.kill(pid, ending)
        promises.append(told)
        events += [Event("began"), *read_trace(folder / "trace", "node.db")]
    return events, promises


def kept(said: dict[str, bytearray], promises: Promises) -> list[bytes]:
    """What the node has acknowledged so far; on which connection plays no part, as nobody else says such bytes."""
    return [text for answer, text in promises if any(answer in told for told in said.values())]


def start_again(files: dict[str, bytes], folder: Path) -> list[bytes]:
    """Start with what is on disk; the payloads that are there."""
    folder.mkdir()
    for name, content in files.items():
        (folder / Path(name).name).write_bytes(content)
    if not (folder / "node.db").exists():
        return []
    store = Store.open(folder / "node.db", b"another ")
    assert store._all("PRAGMA integrity_check") == [("ok",)]
    node = Node(NodeSettings("dtn://a/"), store.saved(), lambda header, message: b"", data=store.data)
    found = [store.data(id) for id in node.holdings.by_id]
    numbers = [row[0] for row in store._all("SELECT sequence FROM bundle WHERE source = 'dtn://a/'")]
    assert node.holdings._numbers["sequence"][0] > max(numbers, default=0)  # none is given out twice
    store.close()
    return found


def missing(events: list[Event], promises: list[Promises], tmp_path: Path, every: int) -> tuple[int, int]:
    """Let power fail at every n-th write, and more often where something was synced: how often something that was
    acknowledged was missing, and how often it failed."""
    disk, chance, life = Disk(), random.Random(1), -1
    said: dict[str, bytearray] = {}
    owed: list[bytes] = []
    lost = failures = 0
    for place, event in enumerate(events):
        if event.call == "began":
            owed = owed if life < 0 else owed + kept(said, promises[life])
            life, said = life + 1, {}
        elif event.call == "say":
            said.setdefault(event.name, bytearray()).extend(event.data)
        else:
            disk.after(event)
        if place % every:
            continue
        for how in ("none", "all", "some", "some"):
            failures += 1
            found = start_again(disk.fails(chance, how), tmp_path / f"{place}-{failures}")
            texts = {text[0] for text in map(re.compile(rb"(?:p|n\d)\d{6} ").search, found) if text}
            lost += not texts.issuperset(owed + kept(said, promises[life]))
    assert len(owed) == 3 * EACH
    assert len(kept(said, promises[life])) == 3 * EACH
    return lost, failures


def test_what_was_acknowledged_outlives_a_power_failure(tmp_path: Path) -> None:
    events, promises = story(tmp_path, "power")
    written = sum(event.call == "write" and event.name.endswith("node.db") for event in events)
    assert written > 100  # the log was moved into the file meanwhile
    every = 7 if THOROUGH else max(1, len(events) // 30)
    lost, failures = missing(events, promises, tmp_path, every)
    assert lost == 0
    assert failures > 100


@pytest.mark.skipif(not THOROUGH, reason="a test of the test: make test-all")
def test_the_disk_here_is_not_kinder_than_a_real_one(tmp_path: Path) -> None:
    """With `durability = "crash"` a power failure costs what was acknowledged, and here it does."""
    events, promises = story(tmp_path, "crash")
    lost, _ = missing(events, promises, tmp_path, max(1, len(events) // 10))
    assert lost > 0
