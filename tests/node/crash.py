"""Nodes in a line that are killed and whose links are cut, with applications that count what they get.

    python -m tests.node.crash SEEDS MESSAGES

prints the table of docs/node/crash.md: for each seed kills, cuts, messages, deliveries, lost and twice.
"""

import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from serai.node.keys import enrol, make_network

ROOT = Path(__file__).parents[2]


class Story(NamedTuple):
    """What happened to a line of nodes, and what became of the messages."""

    kills: int
    cuts: int
    messages: int
    deliveries: int
    lost: int
    twice: int
    took_s: float


def free_port() -> int:
    with socket.socket() as there:
        there.bind(("127.0.0.1", 0))
        return int(there.getsockname()[1])


class Relay:
    """A wire between two nodes, which can be cut: connections are reset, and refused for a while."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pairs: dict[socket.socket, socket.socket] = {}
        self.down_until_s = 0.0
        self.stopping = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def cut(self, for_s: float) -> None:
        self.down_until_s = time.monotonic() + for_s

    def run(self) -> None:
        while not self.stopping:
            readable, _, _ = select.select([self.listener, *self.pairs], [], [], 0.02)
            if time.monotonic() < self.down_until_s:
                for one in list(self.pairs):
                    self.close(one)
            for one in readable:
                if one is self.listener:
                    self.join()
                elif one in self.pairs:
                    self.copy(one)
        for one in list(self.pairs):
            self.close(one)
        self.listener.close()

    def join(self) -> None:
        near, _ = self.listener.accept()
        try:
            if time.monotonic() < self.down_until_s:
                raise OSError
            far = socket.create_connection(("127.0.0.1", self.target), timeout=1)
        except OSError:
            near.close()
            return
        self.pairs[near], self.pairs[far] = far, near

    def copy(self, one: socket.socket) -> None:
        try:
            data = one.recv(65_536)
            if not data:
                raise OSError
            self.pairs[one].sendall(data)
        except OSError:
            self.close(one)

    def close(self, one: socket.socket) -> None:
        other = self.pairs.pop(one, None)
        if other is not None:
            self.pairs.pop(other, None)
            for end in (one, other):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, no goodbye
                end.close()

    def stop(self) -> None:
        self.stopping = True
        self.thread.join(5)


class Process:
    """A node in a process of its own, which can be killed and begun again."""

    def __init__(self, folder: Path, name: str, port: int, neighbours: list[int]) -> None:
        self.folder, self.name, self.mqtt_port = folder, name, free_port()
        with (folder / "node.toml").open("a") as file:
            file.write(f'[beacon]\non = false\n[links]\nlisten = "127.0.0.1:{port}"\n')
            file.write(f'[mqtt]\nlisten = "127.0.0.1:{self.mqtt_port}"\n[web]\nlisten = "127.0.0.1:0"\n')
            for neighbour in neighbours:
                file.write(f'[[neighbours]]\naddress = "127.0.0.1:{neighbour}"\n')
        self.start()

    def start(self) -> None:
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        with (self.folder / "log").open("ab") as log:
            command = [sys.executable, "-m", "serai", "node", "run", str(self.folder)]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)


class Application:
    """A client with a session that lasts, as stock paho makes it."""

    def __init__(self, name: str, port: int) -> None:
        self.got: Counter[bytes] = Counter()
        self.taken = 0  # publications that the node has acknowledged
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2, name, clean_session=False, protocol=MQTTProtocolVersion.MQTTv311
        )
        self.client.max_queued_messages_set(0)
        self.client.reconnect_delay_set(1, 1)
        self.client.on_message, self.client.on_publish = self.message, self.published
        self.client.on_connect = lambda client, *_: (
            client.subscribe("crash/#", qos=2) if name.startswith("sub") else None
        )
        self.client.connect_async("127.0.0.1", port, keepalive=5)
        self.client.loop_start()

    def message(self, client: Any, data: Any, message: mqtt.MQTTMessage) -> None:
        self.got[bytes(message.payload)] += 1

    def published(self, *about: Any) -> None:
        self.taken += 1

    def stop(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def line_of_nodes(folder: Path, count: int) -> tuple[list[Process], list[Relay]]:
    """Nodes n0, n1 ...; each dials the one before through a relay, with TLS."""
    from datetime import UTC, datetime

    make_network("net", folder / "net", datetime.now(UTC))
    ports = [free_port() for _ in range(count)]
    relays = [Relay(port) for port in ports[:-1]]
    nodes = []
    for place, port in enumerate(ports):
        enrol(f"n{place}", folder / "net", folder / f"n{place}", datetime.now(UTC))
        nodes.append(Process(folder / f"n{place}", f"n{place}", port, [relays[place - 1].port] if place else []))
    return nodes, relays


def story(seed: int, messages: int, *, nodes: int = 4, events: int = 10, timeout_s: float = 120.0) -> Story:
    """Publish at the first node, subscribe at all others; meanwhile kill nodes and cut links, by the seed."""
    chance, began_s = random.Random(seed), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        line, relays = line_of_nodes(Path(folder), nodes)
        subscribers = [Application(f"sub{place}", node.mqtt_port) for place, node in enumerate(line) if place]
        publisher = Application("pub", line[0].mqtt_port)
        kills = cuts = 0
        try:
            wait(lambda: all(one.client.is_connected() for one in [publisher, *subscribers]), timeout_s)
            for part in range(events + 1):
                first, last = (messages * place // (events + 1) for place in (part, part + 1))
                for number in range(first, last):  # paho keeps what it cannot send now
                    publisher.client.publish(f"crash/{number % 3}", str(number).encode(), qos=2)
                time.sleep(chance.uniform(0.05, 0.5))
                if part == events:
                    break
                if chance.random() < 0.5:
                    relays[chance.randrange(len(relays))].cut(chance.uniform(0.05, 0.5))
                    cuts += 1
                else:
                    victim = line[chance.randrange(nodes)]
                    victim.kill()
                    kills += 1
                    time.sleep(chance.uniform(0.0, 0.3))
                    victim.start()
            wait(lambda: publisher.taken == messages, timeout_s)
            standstill(lambda: sum(len(one.got) for one in subscribers), messages * len(subscribers), timeout_s)
            time.sleep(0.5)  # for what would come twice
        finally:
            for application in [publisher, *subscribers]:
                application.stop()
            codes = [node.stop() for node in line]
            for relay in relays:
                relay.stop()
            logs = "\n".join((node.folder / "log").read_text(errors="replace") for node in line)
        assert codes == [0] * nodes, logs[-5000:]
        assert "Traceback" not in logs, logs[logs.index("Traceback") :][:5000]
    got = [one.got for one in subscribers]
    deliveries = sum(one.total() for one in got)
    lost = sum(messages - len(one) for one in got)
    twice = sum(one.total() - len(one) for one in got)
    return Story(kills, cuts, messages, deliveries, lost, twice, time.monotonic() - began_s)


def standstill(count: Any, goal: int, timeout_s: float) -> None:
    """Wait until the goal is reached, or nothing more has come for so long: a busy machine is slow."""
    before, changed_s = count(), time.monotonic()
    while before < goal and time.monotonic() - changed_s < timeout_s:
        time.sleep(0.05)
        if (now := count()) != before:
            before, changed_s = now, time.monotonic()


def wait(condition: Any, timeout_s: float) -> bool:
    """Whether it has come true in time."""
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        if condition():
            return True
        time.sleep(0.05)
    return False


if __name__ == "__main__":
    seeds, messages = (int(text) for text in sys.argv[1:3])
    total = Counter[str]()
    print("| seed | kills | cuts | messages | deliveries | lost | twice | s |\n|---|---|---|---|---|---|---|---|")
    for seed in range(1, seeds + 1):
        told = story(seed, messages, events=30)
        total.update({name: value for name, value in told._asdict().items() if name != "took_s"})
        print(f"| {seed} | {' | '.join(str(value) for value in told[:-1])} | {told.took_s:.0f} |", flush=True)
    print(f"| all | {' | '.join(str(total[name]) for name in Story._fields[:-1])} | |")
