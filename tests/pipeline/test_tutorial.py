"""The commands of docs/pipeline.md, as they stand there, and what they say."""

import ast
import collections
import json
import re
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from serai.cli import execute
from serai.pipeline.tables import Tables
from serai.spark.stores import Folder
from tests.pipeline.field import rows_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "pipeline.md").read_text()
DAY_IS_OLD = "day < '2026-11-02'"


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


@pytest.fixture
def tutorial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the tutorial leaves."""
    monkeypatch.chdir(tmp_path)
    execute(["examples", "copy", "pipeline"])
    assert execute(["pipeline", "run", "pipeline/field.toml", "--once"]) == 0
    return tmp_path / "pipeline"


def shown(page: str, names: dict[str, Any]) -> list[Any]:
    """What the last lines of a page's Python say, run as they stand there, one after the other."""
    answers = []
    for text in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), flags=re.DOTALL):
        *first, last = ast.parse(text).body
        exec(compile(ast.Module(first, []), page, "exec"), names)
        if isinstance(last, ast.Expr):
            answers.append(eval(compile(ast.Expression(last.value), page, "eval"), names))
        else:
            exec(compile(ast.Module([last], []), page, "exec"), names)
    return answers


def test_the_tables_are_read_as_their_page_says(tutorial: Path, spark) -> None:
    names: dict[str, Any] = {"spark": spark}
    by_polars, by_duckdb, by_spark = shown("pipeline-tables.md", names)
    rows = rows_of(tutorial / "home", "events", "node", "temperature")
    of_node: dict[str, list[float]] = {}
    for node, temperature in rows:
        of_node.setdefault(node, []).append(temperature)
    means = {node: sum(each) / len(each) for node, each in of_node.items()}
    assert dict(by_polars.rows()) == pytest.approx(means)
    told = collections.Counter(name for _, name in rows_of(tutorial / "home", "pairs", "event", "subscription"))
    assert dict(by_duckdb.fetchall()) == told
    assert by_spark.count() == len(rows) == 23
    assert len(by_spark.select("day").distinct().collect()) == 2


def test_old_days_go_and_small_files_are_joined_as_the_page_says(
    tutorial: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tutorial)
    page = (DOCS / "pipeline-operations.md").read_text()
    assert "day < '2026-01-01'" in page
    monkeypatch.setattr(DeltaTable, "delete", lambda self, _, delete=DeltaTable.delete: delete(self, DAY_IS_OLD))
    shown("pipeline-operations.md", {})
    left = rows_of(tutorial / "home", "events", "event", "day")
    assert 0 < len(left) < 23
    assert {str(day) for _, day in left} == {"2026-11-02"}
    Path("inbox/again.csv").write_text(Path("inbox/meadow-1.csv").read_text() + "\n")
    assert execute(["pipeline", "run", "field.toml", "--once"]) == 0
    assert "0 new events" in capsys.readouterr().out  # their numbers are known
    assert rows_of(tutorial / "home", "events", "event", "day") == left
    retry = re.search(r"^ {4}serai (pipeline retry .*--match.*)$", page, flags=re.MULTILINE)
    assert retry is not None
    assert execute(retry[1].split()) == 0
