"""The commands of docs/pipeline.md, as they stand there, and what they say."""

import json
import re
from pathlib import Path

import pytest

from serai.cli import execute
from serai.pipeline.tables import Tables
from serai.spark.stores import Folder

PAGE = (Path(__file__).parents[2] / "docs" / "pipeline.md").read_text()


def test_the_tutorial_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    copy, run, status = re.findall(r"^ {4}serai (.+)$", PAGE, flags=re.MULTILINE)[:3]
    assert execute(copy.split()) == 0
    capsys.readouterr()
    assert execute(run.split()) == 0
    said = capsys.readouterr().out
    shown = re.search(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    assert shown is not None
    assert shown[1] in said
    assert "torn.parquet" in said
    assert execute(status.split()) == 1  # nodes are silent, and one file is torn
    capsys.readouterr()
    assert execute([*status.split(), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["nodes"][2]["gaps"] == ["1:4-5"]
    assert "ridge lacks 25% of its events: 1:4-5" in found["alerts"]
    assert len((tmp_path / "pipeline" / "outbox" / "batch-00000000.jsonl").read_text().splitlines()) == 15
    assert "ridge" in (tmp_path / "pipeline" / "home" / "report.html").read_text()
    assert execute(["pipeline", "retry", "pipeline/field.toml"]) == 0
    assert "1 file will be read again" in capsys.readouterr().out
    events = Tables(Folder(tmp_path / "pipeline" / "home")).read("events", ["event"])
    assert len(set(events["event"].to_pylist())) == len(events) == 23


def test_an_unknown_example_and_a_place_that_is_taken_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(["examples", "copy", "pipelin"]) == 2
    assert 'did you mean "pipeline"?' in capsys.readouterr().err
    (tmp_path / "pipeline").mkdir()
    assert execute(["examples", "copy", "pipeline"]) == 2
    assert "exists already" in capsys.readouterr().err
