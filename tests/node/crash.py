"""Nodes in a line that are killed and whose links are cut, with applications that count what they get.

    python -m tests.node.crash SEEDS MESSAGES [mosquitto]

prints the table of docs/node/crash.md: for each seed kills, cuts, messages, deliveries, lost and twice; in network
namespaces where there may be some, else on loopback. With `mosquitto` there is one at both ends, which bridges to the
node there and is stopped and begun again as well.
"""

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

from serai.node.bundle.message import message_of
from serai.node.keys import enrol, make_network
from serai.node.mqtt.access import hash_password
from tests.node.wires import ROOT, Namespaces, Relays, apart, free_port, has_namespaces

Line = Relays | Namespaces


class Story(NamedTuple):
    """What happened to a line of nodes, and what became of the messages.

    With mosquittos at the ends `messages` are those that the first node has taken from one; what they lose on the way
    to it, from it or between their own applications is `elsewhere`.
    """

    kills: int
    cuts: int
    messages: int
    deliveries: int
    lost: int
    twice: int
    elsewhere: int
    took_s: float


class Process:
    """A program that can be ended and begun again."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.folder, self.command = folder, command
        self.start()

    def start(self) -> None:
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log, env=environment)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)


def make_node(folder: Path, line: "Line", place: int, mqtt_port: int) -> Process:
    """Node n0, n1 ...; each dials the one before, with TLS."""
    enrol(f"n{place}", folder / "net", folder / f"n{place}", datetime.now(UTC))
    users = f'[mqtt.users.app]\npassword = "{hash_password(b"secret", b"salt")}"\n'
    with (folder / f"n{place}" / "node.toml").open("a") as file:
        file.write(f'[beacon]\non = false\n[mqtt]\nlisten = "0.0.0.0:{mqtt_port}"\n{users}')
        file.write(f'[web]\nlisten = "127.0.0.1:0"\n{line.doors(place)}')
    command = [sys.executable, "-m", "serai", "node", "run", str(folder / f"n{place}")]
    return Process(folder / f"n{place}", [*line.inside(place), *command])


class Broker(Process):
    """A mosquitto at one end, which bridges to the node there. It saves what it has when it is asked to end, and else
    a moment after it has said so; so it is ended in order, where nodes are killed."""

    def __init__(self, folder: Path, line: "Line", place: int, ports: tuple[int, int], topic: str) -> None:
        (folder / f"mosquitto{place}").mkdir()
        mine, node = ports
        settings = (
            f"user root\nlistener {mine} 0.0.0.0\nallow_anonymous true\npersistence true\nmax_queued_messages 0\n"
            f"persistence_location {folder}/mosquitto{place}/\nconnection serai\naddress 127.0.0.1:{node}\n{topic}\n"
            f"remote_clientid bridge{place}\ncleansession false\nrestart_timeout 1 1\n"
        )
        (folder / f"mosquitto{place}" / "conf").write_text(settings)
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        super().__init__(
            folder / f"mosquitto{place}", [*line.inside(place), program, "-c", f"{folder}/mosquitto{place}/conf"]
        )

    def kill(self) -> None:
        self.stop()


class Application:
    """A client with a session that lasts, as stock paho makes it."""

    def __init__(self, name: str, port: int, host: str = "127.0.0.1") -> None:
        self.got: Counter[bytes] = Counter()
        self.taken = 0  # publications that the node has acknowledged
        self.client = mqtt.Client(
            CallbackAPIVersion.VERSION2, name, clean_session=False, protocol=MQTTProtocolVersion.MQTTv311
        )
        self.client.max_queued_messages_set(0)
        self.client.reconnect_delay_set(1, 1)
        if host != "127.0.0.1":
            self.client.username_pw_set("app", "secret")
        self.client.on_message, self.client.on_publish = self.message, self.published
        self.client.on_connect = lambda client, *_: (
            client.subscribe("crash/#", qos=2) if name.startswith("sub") else None
        )
        self.client.connect_async(host, port, keepalive=5)
        self.client.loop_start()

    def message(self, client: Any, data: Any, message: mqtt.MQTTMessage) -> None:
        self.got[bytes(message.payload)] += 1

    def published(self, *about: Any) -> None:
        self.taken += 1

    def stop(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


@dataclass
class Scene:
    """Nodes in a line, with a mosquitto at both ends or without, and their applications."""

    folder: Path
    line: Line
    nodes: int
    brokers: bool

    def __post_init__(self) -> None:
        make_network("net", self.folder / "net", datetime.now(UTC))
        alone = isinstance(self.line, Namespaces)  # each has its ports for itself
        ports = [1883 if alone else free_port() for _ in range(self.nodes)]
        self.processes = [make_node(self.folder, self.line, place, port) for place, port in enumerate(ports)]
        doors = [(self.line.host(place), port) for place, port in enumerate(ports)]
        self.subscribers = [Application(f"sub{place}", port, host) for place, (host, port) in enumerate(doors) if place]
        if self.brokers:
            last = self.nodes - 1
            ends = [1884 if alone else free_port() for _ in range(2)]
            for place, port, topic in ((0, ends[0], "topic crash/# out 2"), (last, ends[1], "topic crash/# in 2")):
                self.processes.append(Broker(self.folder, self.line, place, (port, ports[place]), topic))
            doors[0] = self.line.host(0), ends[0]
            self.subscribers.append(Application("sub at mosquitto", ends[1], self.line.host(last)))
        self.publisher = Application("pub", doors[0][1], doors[0][0])

    def published(self, messages: int) -> Counter[bytes]:
        """What the first node has taken."""
        if not self.brokers:
            return Counter(str(number).encode() for number in range(messages))
        store = f"file:{self.folder}/n0/node.db?mode=ro"
        with closing(sqlite3.connect(store, uri=True)) as reader:
            rows = reader.execute("SELECT bytes FROM bundle JOIN data USING(id) WHERE channel LIKE 'crash/%'")
            return Counter(message_of(row[0]).payload for row in rows)

    @property
    def applications(self) -> list[Application]:
        """All of them."""
        return [self.publisher, *self.subscribers]

    def stop(self) -> None:
        """End everything, in order."""
        for application in self.applications:
            application.stop()
        ended = [process.process.poll() for process in self.processes]
        codes = [process.stop() for process in self.processes]
        self.line.stop()
        logs = "\n".join((process.folder / "log").read_text(errors="replace") for process in self.processes)
        assert not any(ended), f"{ended}\n{logs[-9000:]}"
        assert codes[: self.nodes] == [0] * self.nodes, f"{codes}\n{logs[-9000:]}"
        assert "Traceback" not in logs, logs[logs.index("Traceback") :][:5000]


def story(
    seed: int, messages: int, *, nodes: int = 4, events: int = 10, brokers: bool = False, timeout_s: float = 120.0,
    line: type[Relays] | type[Namespaces] = Relays,
) -> Story:  # fmt: skip
    """Publish at the first node, subscribe at all others; meanwhile kill nodes and cut links, by the seed."""
    chance, began_s = random.Random(seed), time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        scene = Scene(Path(folder), line(nodes), nodes, brokers)
        stack.callback(scene.stop)
        kills = cuts = 0
        wait(lambda: all(one.client.is_connected() for one in scene.applications), timeout_s)
        for part in range(events + 1):
            first, last = (messages * place // (events + 1) for place in (part, part + 1))
            for number in range(first, last):  # paho keeps what it cannot send now
                scene.publisher.client.publish(f"crash/{number % 3}", str(number).encode(), qos=1 + (not brokers))
            time.sleep(chance.uniform(0.05, 0.5))
            if part == events:
                break
            if chance.random() < 0.5:
                scene.line.wires[chance.randrange(nodes - 1)].cut(chance.uniform(0.05, 0.5 if line is Relays else 4.0))
                cuts += 1
            else:
                victim = chance.choice(scene.processes)
                victim.kill()
                kills += 1
                time.sleep(chance.uniform(0.0, 0.3))
                victim.start()
        wait(lambda: scene.publisher.taken == messages, timeout_s)
        if brokers:  # a mosquitto dials only now and then
            standstill(lambda: len(scene.published(messages)), messages, 20.0)
        wanted = scene.published(messages)
        got = [one.got for one in scene.subscribers[: nodes - 1]]
        standstill(lambda: sum(map(len, got)), len(wanted) * len(got), timeout_s)
        for one in scene.subscribers[nodes - 1 :]:
            standstill(lambda one=one: len(one.got), len(wanted), 15.0)  # type: ignore[misc]
        time.sleep(0.5)  # for what would come twice
        if brokers:  # one that was begun again may still hand over what it had handed over before, as a new message
            quiet(lambda: (scene.published(messages).total(), *(one.total() for one in got)), 4.0)
        wanted = scene.published(messages)
        elsewhere = sum((wanted - one.got).total() for one in scene.subscribers[nodes - 1 :])
    return Story(
        kills, cuts, wanted.total(), sum(one.total() for one in got), sum((wanted - one).total() for one in got),
        sum((one - wanted).total() for one in got), elsewhere + messages - len(wanted), time.monotonic() - began_s,
    )  # fmt: skip


def in_namespaces(seed: int, messages: int, **how: float) -> Story:
    """The same in network namespaces."""
    told = json.loads(apart("tests.node.crash", "one", json.dumps({"seed": seed, "messages": messages} | how)))
    return Story(*told)


def standstill(count: Any, goal: int, timeout_s: float) -> None:
    """Wait until the goal is reached, or nothing more has come for so long: a busy machine is slow."""
    before, changed_s = count(), time.monotonic()
    while before < goal and time.monotonic() - changed_s < timeout_s:
        time.sleep(0.05)
        if (now := count()) != before:
            before, changed_s = now, time.monotonic()


def quiet(state: Any, for_s: float) -> None:
    """Wait until nothing has changed for so long."""
    before = None
    while (now := state()) != before:
        before = now
        time.sleep(for_s)


def wait(condition: Any, timeout_s: float) -> bool:
    """Whether it has come true in time."""
    end_s = time.monotonic() + timeout_s
    while time.monotonic() < end_s:
        if condition():
            return True
        time.sleep(0.05)
    return False


def main(seeds: int, messages: int, brokers: bool) -> None:
    """Print the table."""
    total = Counter[str]()
    print("| seed | kills | cuts | messages | deliveries | lost | twice | elsewhere | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for seed in range(1, seeds + 1):
        told = (in_namespaces if has_namespaces() else story)(seed, messages, events=30, brokers=brokers)
        total.update({name: value for name, value in told._asdict().items() if name != "took_s"})
        print(f"| {seed} | {' | '.join(str(value) for value in told[:-1])} | {told.took_s:.0f} |", flush=True)
    print(f"| **all** | {' | '.join(f'**{total[name]}**' for name in Story._fields[:-1])} | |")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["one", how]:
            print(json.dumps(story(**json.loads(how), line=Namespaces)))
        case [seeds, messages, *more]:
            main(int(seeds), int(messages), more == ["mosquitto"])
