"""The commands of docs/plan-tutorial.md, one after the other, with the files as they stand there."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from serai.cli import execute

PAGE = (Path(__file__).parents[2] / "docs" / "plan-tutorial.md").read_text()


def test_the_tutorial_leads_to_a_plan(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = dict(re.findall(r"^`([\w.]+)`:\n\n```\w+\n(.*?)```", PAGE, flags=re.M | re.S))
    assert len(files) == 6
    for name, text in files.items():
        Path(name).write_text(text)
    commands = re.findall(r"^    serai (.+)$", PAGE, flags=re.M)
    assert len(commands) == 8
    for command in commands:
        assert execute(shlex.split(command)) == 0, command
    said = capsys.readouterr().out
    assert "bound" in said
    assert "vehicles (vehicles.gpx)" in Path("answer/report.html").read_text()  # given, not drawn
    for page in ("run/replay.html", "run/report.html", "answer/report.html", "relays/report.html"):
        assert Path(page).stat().st_size > 10_000
    said_by = {name: json.loads(Path(name, "answer.json").read_text())["sentence"] for name in ("answer", "relays")}
    assert said_by["answer"].startswith("2 vehicles, range 40 m: cost 800")
    assert said_by["relays"].startswith("1 relay: cost 435.")  # as section 7 says
