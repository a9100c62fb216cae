"""serai node status, publish, subscribe and password, at a running node."""

import json
import subprocess
import sys
import time

import pytest

from serai.cli import execute
from serai.node.demo import play
from serai.node.mqtt.access import check_password
from tests.effort import within
from tests.node.test_daemon import ENVIRONMENT, init, node


def test_at_a_running_node(tmp_path, capsys, monkeypatch):
    with node(init(tmp_path, "barn")) as (_, doors):
        at = f"127.0.0.1:{doors['mqtt']}"
        capsys.readouterr()
        for number, text in enumerate(("a", "b")):
            words = ["node", "publish", f"t/{number}", text, "--node", at, "--lifetime", "2 h", "--qos", "2"]
            assert execute([*words, "--retain", "--json"]) == 0
            assert json.loads(capsys.readouterr().out) == {"topic": f"t/{number}", "published": 1}
        assert execute(["node", "subscribe", "t/+", "--count", "2", "--node", at]) == 0
        assert sorted(capsys.readouterr().out.splitlines()) == ["t/0 a", "t/1 b"]
        assert execute(["node", "subscribe", "t/1", "--count", "1", "--node", at, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"topic": "t/1", "payload": "b", "retained": True}
        assert execute(["node", "status", "--node", f"127.0.0.1:{doors['web']}"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith("barn, up for ")
        assert "neighbours    nobody\nstore         2 bundles" in shown
        assert execute(["node", "status", "--json", "--node", f"127.0.0.1:{doors['web']}"]) == 0
        assert json.loads(capsys.readouterr().out)["mqtt"]["published"] == 2


def test_every_line_of_stdin_is_a_message_and_ctrl_c_ends_a_subscription(tmp_path):
    with node(init(tmp_path, "barn")) as (_, doors):
        at = ["--node", f"127.0.0.1:{doors['mqtt']}"]
        serai = [sys.executable, "-m", "serai", "node"]
        listening = subprocess.Popen(
            [*serai, "subscribe", "--where", "t > 1", *at], stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        )
        while not json.loads(status(doors["web"]))["sessions"]:
            time.sleep(0.05)
        lines = '{"t": 1}\n{"t": 2}\n'
        subprocess.run([*serai, "publish", "x", *at], input=lines, text=True, check=True, env=ENVIRONMENT, timeout=20)
        assert listening.stdout.readline() == 'x {"t": 2}\n'
        listening.send_signal(2)
        began_s = time.monotonic()
        assert listening.wait(60) == 130
        assert time.monotonic() - began_s < within(2.0)
        listening.stdout.close()


def status(port):
    import urllib.request

    return urllib.request.urlopen(f"http://127.0.0.1:{port}/status.json").read()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["publish", "a/+", "x", "--node", "127.0.0.1:1"], "no node at 127.0.0.1:1"),
        (["publish", "a", "x", "--lifetime", "2 ells"], "unknown unit"),
        (["publish", "a", "x", "--node", "nowhere"], "no such folder or file, and not HOST:PORT"),
        (["subscribe", "--node", "127.0.0.1:99999"], "not HOST:PORT"),
        (["status", "--node", "127.0.0.1:1"], "no node's page at 127.0.0.1:1"),
    ],
)
def test_what_cannot_be_done(words, said, capsys):
    assert execute(["node", *words]) in (1, 2)
    assert said in capsys.readouterr().err


def test_password(monkeypatch, capsys, tmp_path):
    import io

    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    assert execute(["node", "password"]) == 0
    kept = capsys.readouterr().out.strip()
    assert check_password(kept, b"secret")
    assert not check_password(kept, b"Secret")
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    assert execute(["node", "password"]) == 2


def test_the_demo():
    """Three nodes and a ferry: every message once; bytes of several bundles come in one piece, and are matched."""
    told = []
    assert play(told.append, pace=0.7), told
    assert "8 published, 8 arrived" in told[-1]
    assert sum("the ferry is at" in line for line in told) == 4
