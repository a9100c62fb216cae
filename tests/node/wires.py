"""Wires between nodes in a line that can be cut: relays on loopback, or network namespaces joined by veth pairs.

    line = Relays(4), or inside `apart(...)`: Namespaces(4)
    line.wires[0].cut(0.5)          between the first node and the second

A relay resets its connections; a veth pair that is down says nothing, as a radio link that is lost.
"""

import select
import shutil
import socket
import subprocess
import sys
import threading
import time
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
APART = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc")


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


class Relays:
    """A line on loopback."""

    def __init__(self, count: int) -> None:
        self.ports = [free_port() for _ in range(count)]
        self.wires = [Relay(port) for port in self.ports[:-1]]

    def inside(self, place: int) -> list[str]:
        """What goes before a command that runs where a node does."""
        return []

    def doors(self, place: int) -> str:
        """Where a node takes sessions, where applications reach it, and whom it dials."""
        before = f'[[neighbours]]\naddress = "127.0.0.1:{self.wires[place - 1].port}"\n' if place else ""
        return f'[links]\nlisten = "127.0.0.1:{self.ports[place]}"\n{before}'

    def host(self, place: int) -> str:
        """Where applications reach what runs there."""
        return "127.0.0.1"

    def stop(self) -> None:
        """Take it down."""
        for wire in self.wires:
            wire.stop()


class Pair:
    """The wire between two namespaces."""

    def __init__(self, enter: list[str], device: str) -> None:
        self.enter, self.device = enter, device
        self.up: list[threading.Timer] = []

    def cut(self, for_s: float) -> None:
        _run(*self.enter, "ip", "link", "set", self.device, "down")
        timer = threading.Timer(for_s, _run, (*self.enter, "ip", "link", "set", self.device, "up"))
        timer.start()
        self.up.append(timer)


class Namespaces:
    """A line of network namespaces, each joined with the next, and all with the one that this runs in."""

    def __init__(self, count: int) -> None:
        _run("ip", "link", "set", "lo", "up")
        self.holders = [subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) for _ in range(count)]
        self.wires = []
        for place, holder in enumerate(self.holders):
            while _net(holder.pid) == _net("self"):
                time.sleep(0.01)
            _run(*self.inside(place), "ip", "link", "set", "lo", "up")
            self._join(None, place, f"10.77.{place}", f"m{place}")
            if place:
                self._join(place - 1, place, f"10.78.{place}", f"w{place}")
                self.wires.append(Pair(self.inside(place - 1), f"w{place}a"))

    def _join(self, one: int | None, other: int, net: str, device: str) -> None:
        ends = ((one, f"{device}a", f"{net}.1/24"), (other, f"{device}b", f"{net}.2/24"))
        _run("ip", "link", "add", f"{device}a", "type", "veth", "peer", "name", f"{device}b")
        for place, end, address in ends:
            if place is not None:
                _run("ip", "link", "set", end, "netns", str(self.holders[place].pid))
            enter = [] if place is None else self.inside(place)
            _run(*enter, "ip", "addr", "add", address, "dev", end)
            _run(*enter, "ip", "link", "set", end, "up")

    def inside(self, place: int) -> list[str]:
        """What goes before a command that runs where a node does."""
        return ["nsenter", f"--net=/proc/{self.holders[place].pid}/ns/net"]

    def doors(self, place: int) -> str:
        """As above; a link that says nothing is given up after a second."""
        before = f'[[neighbours]]\naddress = "10.78.{place}.1:4556"\n' if place else ""
        return f'[links]\nlisten = "0.0.0.0:4556"\nuser_timeout = "1 s"\nkeepalive = "1 s"\n{before}'

    def host(self, place: int) -> str:
        """Where applications reach what runs there."""
        return f"10.77.{place}.2"

    def stop(self) -> None:
        """Take it down."""
        for wire in self.wires:
            for timer in wire.up:
                timer.join()
        for holder in self.holders:
            holder.kill()
            holder.wait()


def _net(process: int | str) -> Path:
    return Path(f"/proc/{process}/ns/net").readlink()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@cache
def has_namespaces() -> bool:
    """Whether this machine lets us have network namespaces, and pairs between them."""
    if not shutil.which("ip") or not shutil.which("unshare"):
        return False
    pair = "ip link add a type veth peer name b"
    return subprocess.run([*APART, "sh", "-c", pair], capture_output=True, check=False).returncode == 0


def apart(module: str, *words: str) -> str:
    """What a module prints that runs in namespaces of its own; everything that it has begun ends with it."""
    command = [*APART, sys.executable, "-m", module, *words]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-12000:]
    return ended.stdout
