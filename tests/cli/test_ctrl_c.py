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


def test_while_the_command_line_is_loaded(tmp_path: Path) -> None:
    """From the first line of ours on; before it, Python itself is asked to stop, and says so in its own way."""
    code = """
import os, runpy, signal, sys
class PressedWhileLoading:
    def find_spec(self, name, path=None, target=None):
        if name == "serai.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, PressedWhileLoading())
sys.argv[1:] = ["run", "ced", "--out", "run"]
runpy.run_module("serai", run_name="__main__", alter_sys=True)
"""
    assert _program(tmp_path, code) == (130, "serai: stopped\n")
    assert list(tmp_path.iterdir()) == []


def test_while_a_text_is_run_as_a_program(tmp_path: Path) -> None:
    """As classes of data are made when modules are loaded; Python would leave with a code of its own."""
    code = """
import sys, serai.lab
def load(*_):
    exec("import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)")
serai.lab.load_scenario = load
sys.argv[1:] = ["run", "ced"]
from serai.__main__ import main
main()
"""
    assert _program(tmp_path, code) == (130, "serai: stopped\n")


def test_where_spark_wants_to_hear_it_itself(tmp_path: Path) -> None:
    """Its own answer to Ctrl-C talks to the JVM through a connection that may be busy: a traceback."""
    code = """
import signal
from serai.core.stopping import heard_by_us, watch_for_ctrl_c
watch_for_ctrl_c()
ours = signal.getsignal(signal.SIGINT)
with heard_by_us():
    signal.signal(signal.SIGINT, lambda *_: print("Spark heard it"))
print(signal.getsignal(signal.SIGINT) is ours)
from serai.spark.session import spark_session
spark = spark_session("local[1]")
print(signal.getsignal(signal.SIGINT) is ours)
spark.stop()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\nTrue\n"


def _program(folder: Path, code: str) -> tuple[int, str]:
    """The exit code of a program, and what it says on stderr."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


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
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    sweep = ("sweep", "ced", *SMALL, "--seeds", "1000000", "--out", "sweep")
    process = begin(tmp_path, *sweep, TMPDIR=str(temporary))
    assert process.stderr is not None
    for line in process.stderr:
        if "runs" in line:
            assert [*temporary.rglob("blockmgr-*")], "the JVM keeps its files elsewhere"
            break
    stopped(process, resumable=True)
    assert list(temporary.iterdir()) == []
    whole = [path for path in (tmp_path / "sweep").rglob("*") if path.is_file()]
    assert not [path for path in whole if path.name.startswith("sweep") and path.suffix == ".parquet"]
