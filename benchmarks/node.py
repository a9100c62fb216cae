"""Live nodes: CPU for each bundle and side beside mosquitto, rate, latency, memory, start.

    python benchmarks/node.py [N]                   all of it: the tables of docs/benchmarks.md as they stand there
    python benchmarks/node.py stores 1000000        start, memory and lists alone, with so many bundles

Nodes are processes on loopback: the first takes N messages over MQTT (QoS 1, stock paho, 20 in flight), the second
comes then and takes them over. CPU is that of the processes, all threads, as the scheduler counts it; a bundle counts
when it is on the receiver's disk (`durability = "power"`). Mosquittos do the same: the second is a bridge that comes
later. They keep their store in memory and save it now and then, so nothing there waits for a disk.
"""

import gc
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from serai.node.bundle.message import Envelope, onward  # noqa: E402
from serai.node.core import Node  # noqa: E402
from serai.node.daemon import matches  # noqa: E402
from serai.node.keys import enrol, make_network  # noqa: E402
from serai.node.settings import NodeSettings  # noqa: E402
from serai.node.store import Store  # noqa: E402
from serai.node.wire.lists import JournalKnown, decode_words, encode_known, encode_list  # noqa: E402
from serai.node.words import Accept, Effects, Message, SendBundle, SendKnown, SendList  # noqa: E402
from tests.node.crash import Application, wait  # noqa: E402
from tests.node.test_daemon import DOORS, init, node  # noqa: E402
from tests.node.wires import Relay, free_port  # noqa: E402


def cpu_s(pid: int) -> float:
    """Of all threads so far; none of them ends while it is measured."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def memory_mb(pid: int | str) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


def stored(folder: Path) -> int:
    with closing(sqlite3.connect(f"file:{folder / 'node.db'}?mode=ro", uri=True)) as store:
        return int(store.execute("SELECT max(id) FROM bundle").fetchone()[0] or 0)  # which costs nothing


def publish(port: int, pid: int, messages: int, size: int) -> float:
    """Seconds of CPU that a server takes for each message."""
    publisher = Application("pub", port)
    wait(publisher.client.is_connected, 10)
    before_s = cpu_s(pid)
    for _ in range(messages):
        publisher.client.publish("bench", os.urandom(size), qos=1)
    assert wait(lambda: publisher.taken == messages, 600)
    took_s = cpu_s(pid) - before_s
    publisher.stop()
    return took_s / messages


def folders(folder: Path, secure: bool) -> list[Path]:
    """Two nodes that do not know each other yet."""
    if not secure:
        return [init(folder, name) for name in "ab"]
    make_network("net", folder / "net", datetime.now(UTC))
    for name in "ab":
        enrol(name, folder / "net", folder / name, datetime.now(UTC))
        with (folder / name / "node.toml").open("a") as file:
            file.write(DOORS)
    return [folder / name for name in "ab"]


def transfer(messages: int, size: int, secure: bool) -> dict[str, float]:
    """Microseconds of CPU for each bundle: taken from an application, sent, received; and bundles a second."""
    with tempfile.TemporaryDirectory() as name:
        first, second = folders(Path(name), secure)
        with node(first) as (a, doors):
            published_s = publish(doors["mqtt"], a.pid, messages, size)
            with (second / "node.toml").open("a") as file:
                file.write(f'[[neighbours]]\naddress = "127.0.0.1:{doors["tcpcl"]}"\n')
            with node(second) as (b, _):
                before_s, there_s = cpu_s(a.pid), cpu_s(b.pid)
                assert wait(lambda: stored(second) > 0, 60)
                began_s, at_first = time.perf_counter(), stored(second)
                while (there := stored(second)) < messages:
                    time.sleep(0.005)
                    assert time.perf_counter() - began_s < 600, f"{there} of {messages}"
                took_s = time.perf_counter() - began_s
                sent_s, received_s = cpu_s(a.pid) - before_s, cpu_s(b.pid) - there_s
    return {
        "published": 1e6 * published_s, "sent": 1e6 * sent_s / messages, "received": 1e6 * received_s / messages,
        "rate": (messages - at_first) / took_s,
    }  # fmt: skip


@contextmanager
def mosquitto(more: str = "") -> Iterator[tuple[int, int]]:
    """A mosquitto with its store, saved now and then: process and port."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        settings = (
            f"listener {port} 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location {folder}/\n"
        )
        (Path(folder) / "conf").write_text(f"{settings}user root\nmax_queued_messages 0\n{more}")
        process = subprocess.Popen(["mosquitto", "-c", f"{folder}/conf"], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        try:
            yield process.pid, port
        finally:
            process.kill()
            process.wait()


def leave_session(port: int, name: str) -> None:
    """Have messages kept for a client that is away."""
    client = Application(name, port)
    wait(client.client.is_connected, 10)
    client.client.subscribe("bench", qos=1)
    time.sleep(0.5)
    client.stop()


def until_idle(*processes: int) -> None:
    """Wait until they have done what they had to do."""
    before_s = -1.0
    while (now_s := sum(map(cpu_s, processes))) - before_s > 0.002:
        before_s = now_s
        time.sleep(2.0)


def mosquittos(messages: int, size: int) -> dict[str, float]:
    """The same with two mosquittos: the second is a bridge that comes later, and keeps all of it for a client."""
    with mosquitto() as (first, port):
        leave_session(port, "second")
        published_s = publish(port, first, messages, size)
        wire = Relay(port)
        wire.cut(1e9)  # until there is somebody to keep them for
        bridge = (
            f"connection second\naddress 127.0.0.1:{wire.port}\nremote_clientid second\ncleansession false\n"
            "topic bench in 1\nnotifications false\nrestart_timeout 1 1\n"
        )
        with mosquitto(bridge) as (second, its_port):
            leave_session(its_port, "later")
            before_s, there_s = cpu_s(first), cpu_s(second)
            wire.down_until_s = 0.0
            time.sleep(3.0)
            until_idle(first, second)
            sent_s, received_s = cpu_s(first) - before_s, cpu_s(second) - there_s
            later = Application("later", its_port)
            assert wait(lambda: later.got.total() == messages, 60), later.got
            later.stop()
        wire.stop()
    return {"published": 1e6 * published_s, "sent": 1e6 * sent_s / messages, "received": 1e6 * received_s / messages}


def latencies_ms(messages: int = 200) -> list[float]:
    """From application to application over one hop, QoS 2, one message at a time."""
    with tempfile.TemporaryDirectory() as name:
        first, second = folders(Path(name), secure=False)
        with node(first) as (_, doors):
            with (second / "node.toml").open("a") as file:
                file.write(f'[[neighbours]]\naddress = "127.0.0.1:{doors["tcpcl"]}"\n')
            with node(second) as (_, others):
                subscriber, publisher = Application("sub", others["mqtt"]), Application("pub", doors["mqtt"])
                assert wait(lambda: subscriber.client.is_connected() and publisher.client.is_connected(), 10)
                time.sleep(1.0)
                took_ms = []
                for number in range(messages):
                    began_s = time.perf_counter()
                    publisher.client.publish("crash/x", str(number), qos=2)
                    while len(subscriber.got) <= number:
                        time.sleep(0.0002)
                    took_ms.append(1e3 * (time.perf_counter() - began_s))
                publisher.stop()
                subscriber.stop()
    return took_ms


class Filled:
    """A core with a store, without sockets."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path, self.eid, self.envelope = folder / f"{name}.db", f"dtn://{name}/", Envelope(f"dtn://{name}/", "net")
        self.settings = NodeSettings(self.eid, store_bundles=1 << 40, store_bytes=1 << 50, window_bytes=1 << 30)
        self.waiting: list[Effects] = []
        self.start()

    def start(self) -> None:
        self.store = Store.open(self.path, self.path.stem.ljust(8).encode(), "crash")
        saved = self.store.saved()
        gc.disable()
        self.node = Node(self.settings, saved, self.envelope.encode, matches, self.store.data, 8e8)
        gc.freeze()
        gc.enable()

    def perform(self, effects: Effects) -> Effects:
        self.waiting.append(effects)
        if len(self.waiting) == 2000:
            self.commit()
        return effects

    def commit(self) -> None:
        self.store.commit(self.waiting)
        self.waiting.clear()

    def stop(self) -> None:
        self.commit()
        self.store.close()


def meet(here: Filled, there: Filled, now_s: float) -> int:
    """A contact until nobody has anything more to say; the bytes of its lists."""
    list_bytes = 0
    known = []
    for one, other in ((here, there), (there, here)):
        up = one.perform(one.node.contact_up(other.eid, now_s, 1e9, carries=True, epoch=other.node.epoch))
        known += [(other, one, word) for word in up.words if isinstance(word, SendKnown)]
    for one, other, word in known:
        list_bytes += len(encode_known(JournalKnown(word.epoch, word.upto)))
        one.perform(one.node.journal_known(other.eid, word.epoch, word.upto, now_s))
    moved = True
    while moved:
        moved = False
        for one, other in ((here, there), (there, here)):
            for word in one.node.next_transfer(other.eid, now_s).words:
                moved = True
                if isinstance(word, SendList):
                    data = encode_list(word.message)
                    list_bytes += len(data)
                    other.perform(other.node.list_received(one.eid, decode_words(data), now_s))  # type: ignore[arg-type]
                elif isinstance(word, SendBundle):
                    if word.id > one.store._all("SELECT max(id) FROM data")[0][0]:
                        one.commit()
                    arrived = other.envelope.open(onward(one.store.data(word.id), one.eid, 0, word.hops + 1))
                    said = other.node.bundle_received(one.eid, word.transfer, arrived.header, arrived.data, now_s)
                    assert any(isinstance(answer, Accept) for answer in other.perform(said).words)
                one.perform(one.node.acknowledged(other.eid, word.transfer, now_s))
    for one, other in ((here, there), (there, here)):
        one.perform(one.node.contact_down(other.eid, now_s))
    return list_bytes


def stores(bundles: int) -> None:
    """Start, memory, choice and lists of nodes that hold so many bundles of 256 bytes."""
    with tempfile.TemporaryDirectory() as name:
        here, there = (Filled(Path(name), one) for one in "ab")
        for number in range(bundles):
            message = Message(f"field/{number % 100}", bytes(256), 1)
            here.perform(here.node.published("app", message, 6e5, 8e8))
        first = meet(here, there, 8e8 + 1)
        second = meet(here, there, 8e8 + 2)
        third = meet(here, there, 8e8 + 3)
        here.stop()
        there.stop()
        del here.node, there.node
        gc.unfreeze()
        gc.collect()
        program = [sys.executable, __file__, "start", str(there.path)]
        started = subprocess.run(program, capture_output=True, text=True, check=True).stdout
    print(f"| {bundles:,} | {started.strip()} | {first:,} / {second:,} / {third:,} |", flush=True)


def start(path: Path) -> None:
    """The start of a node with this store, and its first choices."""
    before_mb, before_s = memory_mb("self"), time.process_time()
    filled = Filled(path.parent, path.stem)
    start_s, bundles = time.process_time() - before_s, len(filled.node.holdings.by_id)
    all_mb = memory_mb("self")
    filled.node.contact_up("dtn://c/", 8e8 + 9, 1e9, carries=True, epoch=b"")
    filled.node.router.contacts["dtn://c/"].lists = 1  # as if it had said that it has nothing
    chosen = []
    for _ in range(1000):
        before_s = time.process_time()
        message = filled.node.router.next_bundle("dtn://c/", 8e8 + 9)
        chosen.append(time.process_time() - before_s)
        assert message is not None
        filled.node.router.sent("dtn://c/", message, accepted=True)
    kilobytes = (all_mb - before_mb) * 1e3 / bundles
    print(f"{start_s:.2f} | {all_mb:.0f} | {kilobytes:.2f} | {chosen[0]:.2f} | {1e6 * statistics.mean(chosen[1:]):.1f}")


def heading(*columns: str) -> None:
    print(f"| {' | '.join(columns)} |\n{len(columns) * '|---'}|")


GOALS = {256: {"published": 60, "sent": 45, "received": 80, "rate": 10_000}, 64 << 10: {"sent": 150, "received": 400}}


def row(what: str, size: int, messages: int, found: dict[str, float]) -> None:
    """One row of the first table; a goal stands behind what it is for."""
    columns = [
        f"{found[name]:,.0f}" + (f" ({goal:,})" if (goal := GOALS[size].get(name)) and "node" in what else "")
        if name in found
        else ""
        for name in ("published", "sent", "received", "rate")
    ]
    print(f"| {what} | {size} B | {messages:,} | {' | '.join(columns)} |", flush=True)


def main(messages: int) -> None:
    loop = "uvloop" if find_spec("uvloop") else "asyncio"
    print(f"Load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, Python {sys.version.split()[0]}, {loop}. ", end="")
    print("In brackets: the goal, which is for an idle core.\n")
    heading("", "payload", "messages", "publish, us", "send, us", "receive, us", "messages/s")
    large = max(200, messages // 20)
    for size, count in ((256, messages), (64 << 10, large)):
        row("node", size, count, transfer(count, size, secure=False))
    row("node, keys and TLS", 256, messages, transfer(messages, 256, secure=True))
    if shutil.which("mosquitto"):
        for size, count in ((256, messages), (64 << 10, large)):
            row("mosquitto, not committed", size, count, mosquittos(count, size))
    with tempfile.TemporaryDirectory() as name, node(init(Path(name), "a")) as (a, _):
        time.sleep(2.0)
        print(f"\nA node that does nothing: {memory_mb(a.pid):.0f} MB (40).", end=" ")
    took_ms = sorted(latencies_ms())
    median, late = took_ms[len(took_ms) // 2], took_ms[len(took_ms) * 95 // 100]
    print(
        f"From application to application over one hop, QoS 2, one message at a time: median {median:.1f} ms (10),",
        end="",
    )
    print(f" 95 % within {late:.1f} ms. Load at the end: {os.getloadavg()[0]:.1f}.\n")
    heading("bundles", "start, CPU s", "MB", "kB a bundle", "first choice, CPU s", "next, us", "lists of 3 contacts, B")
    for bundles in (100_000, 1_000_000):
        stores(bundles)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["start", path]:
            start(Path(path))
        case ["stores", count]:
            stores(int(count))
        case arguments:
            main(int(arguments[0]) if arguments else 10_000)
