"""Nodes as processes: start, messages across, signals, kill -9 and cuts, what cannot be started."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from serai.node.folder import init as make_folder
from tests.effort import THOROUGH, within
from tests.node.crash import Application, in_namespaces, story, wait
from tests.node.wires import ROOT, has_namespaces
from tests.programs import program

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "src")}


DOORS = """
[beacon]
on = false
[links]
listen = "127.0.0.1:0"
[mqtt]
listen = "127.0.0.1:0"
[web]
listen = "127.0.0.1:0"
"""


def init(folder: Path, name: str, more: str = "") -> Path:
    make_folder(name, "net", folder / name)
    with (folder / name / "node.toml").open("a") as file:
        file.write(DOORS + more)
    return folder / name


@contextmanager
def node(folder: Path, **environment: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """A running node, and the ports of its doors."""
    command = [sys.executable, "-m", "serai", "node", "run", str(folder), "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | environment
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())["ports"]
    finally:
        process.kill()
        process.communicate()


def test_a_message_crosses_two_nodes_and_both_end_in_order(tmp_path: Path) -> None:
    with node(init(tmp_path, "a")) as (a, doors):
        more = f'[[neighbours]]\naddress = "127.0.0.1:{doors["tcpcl"]}"\n'
        with node(init(tmp_path, "b", more)) as (b, others):
            subscriber, publisher = Application("sub", others["mqtt"]), Application("pub", doors["mqtt"])
            assert wait(lambda: subscriber.client.is_connected() and publisher.client.is_connected(), 60)
            publisher.client.publish("crash/x", b"hello", qos=2)
            assert wait(lambda: subscriber.got == {b"hello": 1}, 60)
            large = os.urandom(600_000)  # in three parts
            publisher.client.publish("crash/large", large, qos=2)
            assert wait(lambda: subscriber.got == {b"hello": 1, large: 1}, 60)
            publisher.stop()
            subscriber.stop()
            for process, number in ((a, signal.SIGTERM), (b, signal.SIGINT)):
                process.send_signal(number)
                began_s = time.monotonic()
                assert process.wait(60) == 0
                assert time.monotonic() - began_s < within(2.0)
            assert a.stderr is not None
            assert "dtn://b/: session open" in a.stderr.read()


def test_an_idle_node_is_small_and_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    """40 MB is the goal; uvloop, where it is installed, is 3 MB of it."""
    with node(init(tmp_path, "a")) as (process, _):
        status = Path(f"/proc/{process.pid}/status")
        if not status.exists():
            pytest.skip("only Linux tells how much memory a process has")
        (resident_kb,) = (int(line.split()[1]) for line in status.read_text().splitlines() if "VmRSS" in line)
        assert resident_kb < 40_000
        maps = Path(f"/proc/{process.pid}/maps").read_text()
        assert not any(name in maps for name in ("pydantic", "numpy", "numba", "pyarrow"))


def test_systemd_is_told(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
        there.bind(str(tmp_path / "notify"))
        there.settimeout(10)
        with node(init(tmp_path, "a"), NOTIFY_SOCKET=str(tmp_path / "notify")) as (process, _):
            said = {there.recv(100), there.recv(100)}
            process.terminate()
            assert said <= {b"READY=1", b"WATCHDOG=1"}
            assert there.recv(100) == b"STOPPING=1"


def attempt(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "serai", "node", "run", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=30, check=False)


def test_what_cannot_be_started_says_so_in_a_line(tmp_path: Path) -> None:
    folder = init(tmp_path, "a")
    with node(folder) as (running, doors):
        second = attempt(folder)
        assert (second.returncode, second.stderr.count("\n")) == (3, 1)
        assert "another node has this store open" in second.stderr
        other = init(tmp_path, "b")
        text = (other / "node.toml").read_text()
        (other / "node.toml").write_text(
            text.replace('[links]\nlisten = "127.0.0.1:0"', f'[links]\nlisten = "127.0.0.1:{doors["tcpcl"]}"')
        )
        busy = attempt(other)
        assert (busy.returncode, busy.stderr.count("\n")) == (2, 1)
        said = rf"TCPCL cannot listen on 127.0.0.1:{doors['tcpcl']}: address already in use"
        by = rf" by .* \(process {running.pid}\)$" if Path("/proc/net/tcp").exists() else ""
        assert re.search(said + by, busy.stderr, re.MULTILINE)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "node.toml").write_text('nmae = "c"\n')
    wrong = attempt(tmp_path / "c")
    assert wrong.returncode == 2
    assert 'nmae: unknown key; did you mean "name"?' in wrong.stderr
    assert "Traceback" not in wrong.stderr
    assert [path.name for path in (tmp_path / "c").iterdir()] == ["node.toml"]


def test_a_disk_of_which_enough_is_to_stay_free_takes_nothing(tmp_path: Path) -> None:
    with node(init(tmp_path, "a", '[store]\nfree = "1000000 GB"\n')) as (_, doors):
        publisher = Application("pub", doors["mqtt"])
        assert wait(publisher.client.is_connected, 60)
        publisher.client.publish("t", b"x", qos=1)
        assert wait(lambda: asked(doors["web"])["mqtt"]["refused"] > 0, 60)
        assert ["store.free" in problem for problem in asked(doors["web"])["problems"]] == [True]
        assert publisher.taken == 0
        publisher.stop()


def asked(port: int) -> Any:
    """What a node says of itself."""
    with urlopen(f"http://127.0.0.1:{port}/status.json") as answer:
        return json.load(answer)


LONG = pytest.mark.skipif(not THOROUGH, reason="make test-all")
LINES = [(seed, 4, 5000, 30) for seed in range(1, 21)] if THOROUGH else [(1, 4, 150, 4)]


@pytest.mark.parametrize(("seed", "nodes", "messages", "events"), LINES)
@pytest.mark.parametrize("brokers", [False, pytest.param(True, marks=LONG)])
def test_nothing_is_lost_or_twice_though_nodes_die_and_links_are_cut(
    seed: int, nodes: int, messages: int, events: int, brokers: bool
) -> None:
    """In network namespaces where there may be some; else there are relays in the wires."""
    if brokers:
        program("mosquitto")
    told = (in_namespaces if has_namespaces() else story)(
        seed, messages, nodes=nodes, events=events, brokers=brokers, timeout_s=300.0
    )
    assert (told.lost, told.twice, told.deliveries) == (0, 0, (nodes - 1) * told.messages)
    assert told.messages == messages or brokers
    assert told.kills + told.cuts == events
