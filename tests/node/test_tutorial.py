"""The tutorial, command by command, on this machine; only its ports are others."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.node.wires import ROOT, free_port

TEXT = (ROOT / "docs" / "node" / "tutorial.md").read_text()
PORTS = {"hut": (4556, 1883, 8080), "boat": (4557, 1884, 8081), "office": (4558, 1885, 8082)}
WAIT = """
up() { for _ in $(seq 300); do (echo > /dev/tcp/127.0.0.1/$1) 2> /dev/null && return; sleep 0.1; done; return 1; }
lines() { for _ in $(seq 300); do [ "$(wc -l < $1)" -ge $2 ] && return; sleep 0.1; done; return 1; }
trap 'kill $(jobs -p) 2> /dev/null; wait' EXIT
set -e
"""


def blocks() -> list[str]:
    """What a reader types, but for the installation."""
    found = re.findall(r"^```sh\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert len(found) == 8
    return found[1:]


def script() -> str:
    """The blocks as one script, which waits where a reader would look before going on."""
    lines = []
    for line in "".join(blocks()).splitlines():
        if line == "cat frost.txt":
            lines.append("lines frost.txt 2")
        lines.append(line)
        if found := re.fullmatch(r"serai node run (\w+) &", line):
            lines.append(f"up {PORTS[found[1]][1]}")
    return WAIT + "\n".join(lines)


def on_free_ports(text: str) -> str:
    """The same with ports that nobody has; the hut's are defaults, and have to be written down."""
    doors = 'listen = "127.0.0.1:{}"\n'
    tables = ("[links]\n" + doors, "[mqtt]\n" + doors, "[web]\n" + doors)
    hut = "".join(table.format(port) for table, port in zip(tables, PORTS["hut"], strict=True))
    text = text.replace("cat >> hut/node.toml <<'END'\n", f"cat >> hut/node.toml <<'END'\n{hut}")
    for port in (port for ports in PORTS.values() for port in ports):
        text = re.sub(rf"(?<!\d){port}(?!\d)", f"<{port}>", text)
    return re.sub(r"<(\d+)>", lambda found: str(FREE[int(found[1])]), text)


FREE = {port: free_port() for ports in PORTS.values() for port in ports}


def test_the_tutorial_works(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "serai"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m serai "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PATH": path}
    command = ["bash", "-c", on_free_ports(script())]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    promised = re.search(r"^cat frost\.txt\n```\n\n((?: {4}.+\n)+)", TEXT, flags=re.MULTILINE)
    assert promised is not None
    said = sorted(line.strip() for line in promised[1].splitlines())
    assert sorted((tmp_path / "frost.txt").read_text().splitlines()) == said
    assert "scrypt:16384:8:1:" in done.stdout
    assert "Traceback" not in done.stderr
