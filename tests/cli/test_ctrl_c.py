"""Ctrl-C, as real signals to real processes: gone within two seconds, with 130, one line and nothing half-written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import SERAI, environment
from tests.effort import within

WITHIN_S = 2.0
LONG = ("--set", "duration=2000 h")
SMALL = ("--set", "duration=5 min")
RESUME = "give the same command again to go on"


def stopped(process: subprocess.Popen[str], resumable: bool = False, most_lines: int = 10) -> str:
    """Press Ctrl-C, and what the process still says on stderr."""
    begun_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=60)
        took_s = time.monotonic() - begun_s
        _, errors = process.communicate(timeout=30)  # ends when those that it has started are gone, too
    finally:
        process.kill()
    assert process.returncode == 130, errors
    assert took_s < within(WITHIN_S)
    assert "Traceback" not in errors
    assert "bug" not in errors
    lines = errors.splitlines()
    assert lines[-1] == (f"serai: stopped; {RESUME}" if resumable else "serai: stopped"), errors
    assert errors.count("stopped") == 1
    assert len(lines) <= most_lines, errors
    return errors


def begin(folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*SERAI, *arguments], cwd=folder, env=environment(**variables), **pipes)


def test_while_compiling(tmp_path: Path) -> None:
    cache, work = tmp_path / "cache", tmp_path / "work"
    work.mkdir()
    process = begin(work, "run", "dg", *SMALL, "--out", "run", SERAI_CACHE_DIR=str(cache))
    assert process.stderr is not None
    assert "compiling" in process.stderr.readline()
    time.sleep(1.5)
    assert stopped(process) == "serai: stopped\n"
    assert list(work.iterdir()) == []


def test_inside_a_kernel(tmp_path: Path) -> None:
    subprocess.run([*SERAI, "run", "ced", *SMALL], cwd=tmp_path, env=environment(), check=True, capture_output=True)
    process = begin(tmp_path, "run", "ced", *LONG, "--out", "run")
    _burns(process, 6.0)
    stopped(process)
    assert list(tmp_path.iterdir()) == []


def test_in_code_that_never_comes_back(tmp_path: Path) -> None:
    """Minutes outside of Python, as a kernel may take them, while a folder is being written."""
    code = """
import hashlib, pathlib, sys
from serai.core.stopping import removed_if_stopped, watch_for_ctrl_c
watch_for_ctrl_c()
folder = pathlib.Path("unfinished")
folder.mkdir()
with removed_if_stopped(folder):
    print("ready", file=sys.stderr, flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)
"""
    command = [sys.executable, "-c", code]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), **pipes)
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    time.sleep(0.5)
    assert stopped(process) == "serai: stopped\n"
    assert list(tmp_path.iterdir()) == []


def _burns(process: subprocess.Popen[str], seconds: float) -> None:
    """Wait until the process has taken so much time of a core."""
    ticks = os.sysconf("SC_CLK_TCK")
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        assert process.poll() is None, "it has finished before anybody could stop it"
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        if (int(fields[11]) + int(fields[12])) / ticks > seconds:
            return
        time.sleep(0.05)


@pytest.mark.parametrize("wait_s", [0.3, 1.5])
def test_while_spark_starts(tmp_path: Path, wait_s: float) -> None:
    process = begin(tmp_path, "sweep", "ced", *SMALL, "--seeds", "100000", "--out", "sweep")
    assert process.stderr is not None
    for line in process.stderr:
        if "starting" in line:
            break
    time.sleep(wait_s)
    stopped(process, resumable=True, most_lines=1)


def test_in_a_sweep(tmp_path: Path) -> None:
    process = begin(tmp_path, "sweep", "ced", *SMALL, "--seeds", "1000000", "--out", "sweep")
    assert process.stderr is not None
    for line in process.stderr:
        if "runs" in line:
            break
    stopped(process, resumable=True)
    whole = [path for path in (tmp_path / "sweep").rglob("*") if path.is_file()]
    assert not [path for path in whole if path.name.startswith("sweep") and path.suffix == ".parquet"]
