"""docs/log.md describes every table, column and key, as it is."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from serai.lab import write_run
from serai.log.schemas import FULL_LOG_TABLES, LOG_VERSION, RUN_TABLES
from tests.log import hand_made

PAGE = (Path(__file__).parents[2] / "docs" / "log.md").read_text(encoding="utf-8")
CHAPTERS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
TABLES = RUN_TABLES | FULL_LOG_TABLES
PLAIN = {pa.float64(): "float64", pa.bool_(): "boolean", pa.string(): "text"}
UNITS = ("_s", "_m", "_pj")


def type_in_words(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list of {type_in_words(kind.value_type)}"
    return "word" if pa.types.is_dictionary(kind) else PLAIN.get(kind, str(kind))


def rows(chapter: str) -> list[tuple[str, ...]]:
    """The cells of each row of the chapter's table whose first cell is a name."""
    lines = re.findall(r"^\| `\w+` \|.*$", CHAPTERS[chapter], re.MULTILINE)
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]


@pytest.mark.parametrize("name", TABLES)
def test_columns(name):
    assert name in CHAPTERS, f"docs/log.md lacks a chapter on the table {name}"
    assert rows(name) == [
        (f"`{column.name}`", type_in_words(column.type), column.metadata[b"meaning"].decode())
        for column in TABLES[name]
    ]


def test_keys_of_run_json(tmp_path):
    said = json.loads((write_run(hand_made.lively(), tmp_path / "run") / "run.json").read_text())
    assert [name for name, _ in rows("run.json")] == [f"`{key}`" for key in said]


def test_files(tmp_path):
    listed = re.findall(r"^\| `([\w.]+\.(?:json|parquet))` \|", PAGE, re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in write_run(hand_made.lively(), tmp_path / "run").iterdir())


def test_version():
    assert f"`log_version` (now {LOG_VERSION})" in PAGE


@pytest.mark.parametrize("name", TABLES)
def test_floats_have_a_unit_in_their_name(name):
    for column in TABLES[name]:
        assert column.type != pa.float64() or column.name.endswith(UNITS), column.name
