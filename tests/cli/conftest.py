import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from serai.cli import execute

ROOT = Path(__file__).parents[2]
SERAI = [sys.executable, "-c", "from serai.cli import main; main()"]


def environment(**more: str) -> dict[str, str]:
    """What a user's shell has, and no more of ours than where the sources are."""
    mine = {name: value for name, value in os.environ.items() if name != "SERAI_DEBUG"}
    return mine | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80"} | more


@dataclass(frozen=True)
class Answer:
    """What a command answered."""

    code: int
    out: str
    err: str


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., Answer]:
    """Run `serai` as a process of its own, in an empty folder."""

    def run(*arguments: str, **variables: str) -> Answer:
        done = subprocess.run(
            [*SERAI, *arguments], cwd=tmp_path, env=environment(**variables), capture_output=True, text=True
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def serai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run `serai` inside this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("SERAI_DEBUG", raising=False)

    def run(*arguments: str) -> Answer:
        capfd.readouterr()
        code = execute(arguments)
        return Answer(code, *capfd.readouterr())

    return run
