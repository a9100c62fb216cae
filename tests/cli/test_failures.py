"""What is nobody's bad input: bugs, full disks, Ctrl-C."""

import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from serai.cli import LAB
from tests.cli.conftest import SERAI, environment

Run = Callable[..., Any]
ROOT = Path(__file__).parents[2]
SIMULATION = import_module("serai.lab")
SMALL = ("--set", "duration=10 min", "--set", "sensors.count=20", "--set", "events.quiet=0 s")


def raises(error: BaseException) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_a_bug_says_so_and_exits_1(serai: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SIMULATION, "simulate", raises(ZeroDivisionError("by zero")))
    answer = serai("run", "ced")
    assert (answer.code, answer.out) == (1, "")
    assert "bug in serai" in answer.err
    assert "ZeroDivisionError: by zero" in answer.err
    assert "Traceback" not in answer.err


def test_a_bug_shows_its_traceback_on_request(serai: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SIMULATION, "simulate", raises(ZeroDivisionError("by zero")))
    monkeypatch.setenv("SERAI_DEBUG", "1")
    answer = serai("run", "ced")
    assert answer.code == 1
    assert "Traceback" in answer.err


@pytest.mark.parametrize(
    ("error", "word"), [(OSError(28, "No space left on device"), "No space left"), (MemoryError(), "memory")]
)
def test_what_the_machine_cannot_do_is_no_bug(
    serai: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, word: str
) -> None:
    monkeypatch.setattr(SIMULATION, "simulate", raises(error))
    answer = serai("run", "ced")
    assert (answer.code, answer.out) == (1, "")
    assert word in answer.err
    assert "bug" not in answer.err


def test_ctrl_c_while_writing_leaves_no_folder(serai: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serai.log.folder.json.dumps", raises(KeyboardInterrupt()))  # after the tables, before run.json
    answer = serai("run", "ced", *SMALL, "--out", "out")
    assert answer.code == 130
    assert "Traceback" not in answer.err
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_stops_a_process_with_130(tmp_path: Path) -> None:
    command = [*SERAI, "demo", "--seeds", "1000000"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), **pipes) as process:
        try:
            assert process.stdout is not None
            assert "demo" in process.stdout.readline()  # now everything is loaded and the runs begin
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "Traceback" not in output + errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["--version", "scenario schema"])  # less and more than a pipe's buffer
def test_a_reader_who_leaves_is_no_bug(tmp_path: Path, command: str) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*SERAI, *command.split()], cwd=tmp_path, env=environment(), **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (1, "")


@pytest.mark.parametrize("package", LAB)
def test_without_the_laboratory_one_sentence_says_what_to_install(
    package: str, serai: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SIMULATION, "load_scenario", raises(ModuleNotFoundError("not here", name=package)))
    answer = serai("run", "ced")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == f"serai: this command needs {package}: pip install 'serai[lab]'\n"


def test_without_the_tables_one_sentence_says_what_to_install(serai: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.delitem(sys.modules, "serai.pipeline.tables", raising=False)
    monkeypatch.delitem(sys.modules, "serai.pipeline.run", raising=False)
    monkeypatch.delitem(sys.modules, "serai.pipeline.batch", raising=False)
    monkeypatch.delitem(sys.modules, "serai.pipeline.reports", raising=False)
    monkeypatch.delitem(sys.modules, "serai.pipeline.deliver", raising=False)
    answer = serai("pipeline", "status", str(ROOT / "examples" / "pipeline" / "field.toml"))
    assert (answer.code, answer.err) == (2, "serai: this command needs deltalake: pip install 'serai[pipeline]'\n")


def test_a_run_without_numpy_says_what_to_install(tmp_path: Path) -> None:
    code = "import sys; sys.modules['numpy'] = None; from serai.cli import execute; sys.exit(execute(['run', 'ced']))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "serai: this command needs numpy: pip install 'serai[lab]'\n")


def test_the_laboratory_is_what_the_extra_installs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {re.split(r"[^a-z0-9]", line)[0] for line in project["optional-dependencies"]["lab"]} == set(LAB)
