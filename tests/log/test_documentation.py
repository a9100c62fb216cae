"""docs/log.md describes every table of every kind of network, every column and every key, as it is."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from serai.field.engine.state import DROPS as FIELD_DROPS
from serai.field.engine.state import TRANSFERS as FIELD_TRANSFERS
from serai.field.equipment_tables import EQUIPPED_FIELD_TABLES, HARVESTING_FIELD_TABLES
from serai.field.log import OUTCOMES as FIELD_OUTCOMES
from serai.field.tables import GROUPED_FIELD_TABLES, ROLES
from serai.kinds import KINDS
from serai.lab import write_run
from serai.log.folder import LOG_VERSION
from serai.log.tables import CORE_TABLES, FULL_LOG_TABLES
from serai.node.log import MARKS
from serai.opportunistic.engine.state import DROPS as OPPORTUNISTIC_DROPS
from serai.opportunistic.tables import OUTCOMES as OPPORTUNISTIC_OUTCOMES
from serai.overlay.engine.run import KINDS as OVERLAY_MESSAGES
from tests.log import hand_made

PAGE = (Path(__file__).parents[2] / "docs" / "log.md").read_text(encoding="utf-8")
CHAPTERS = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
OWN = {kind.name: kind.run.form().own | dict(kind.run.form().optional) for kind in KINDS.values()}
TABLES = CORE_TABLES | FULL_LOG_TABLES | {name: schema for own in OWN.values() for name, schema in own.items()}
PLAIN = {pa.float64(): "float64", pa.bool_(): "boolean", pa.string(): "text"}
UNITS = ("_s", "_m", "_j", "_w", "_pj", "_bytes", "bytes")


def type_in_words(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list of {type_in_words(kind.value_type)}"
    return "word" if pa.types.is_dictionary(kind) else PLAIN.get(kind, str(kind))


def rows(chapter: str) -> list[tuple[str, ...]]:
    """The cells of each row of the chapter's table whose first cell is a name."""
    lines = re.findall(r"^\| `\w+` \|.*$", CHAPTERS[chapter], re.MULTILINE)
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]


@pytest.mark.parametrize("name", TABLES)
def test_columns(name: str) -> None:
    assert name in CHAPTERS, f"docs/log.md lacks a chapter on the table {name}"
    assert rows(name) == [
        (
            f"`{column.name}`",
            type_in_words(column.type) + (" or null" if column.nullable else ""),
            column.metadata[b"meaning"].decode(),
        )
        for column in TABLES[name]
    ]


def test_no_kind_has_a_table_of_anothers_name() -> None:
    assert len(TABLES) == len(CORE_TABLES) + len(FULL_LOG_TABLES) + sum(map(len, OWN.values()))


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ("nodes", "role", (*ROLES, "node")),
        ("transfers", "kind", (*FIELD_TRANSFERS, "copy", "event", "notification")),
        ("transfers", "outcome", (*OPPORTUNISTIC_OUTCOMES, "lost")),
        ("drops", "reason", (*FIELD_DROPS, *OPPORTUNISTIC_DROPS, "lost")),
        ("load", "kind", OVERLAY_MESSAGES),
    ],
)
def test_words(table: str, column: str, words: tuple[str, ...]) -> None:
    """Every word that a column may hold is named where the column is described, and no other."""
    meaning = TABLES[table].field(column).metadata[b"meaning"].decode()
    assert set(re.findall(r"`(\w+)`", meaning)) == set(words)
    explained = set(re.findall(r"`(\w+)`", CHAPTERS[table].split(f"| `{column}` |")[1]))
    assert set(words) <= explained


def test_outcomes_mean_the_same_everywhere() -> None:
    """Only in a field an event can be lost on the air."""
    assert set(FIELD_OUTCOMES) - {"lost"} <= set(OPPORTUNISTIC_OUTCOMES)


def test_keys_of_run_json(tmp_path: Path) -> None:
    said = json.loads((write_run(hand_made.lively(), tmp_path / "run") / "run.json").read_text())
    assert [name for name, _ in rows("run.json")] == [f"`{key}`" for key in said]


def test_counts() -> None:
    found = {name.strip("`"): set(kinds.split(", ")) for name, kinds, _ in rows("counts")}
    counted = {name for kind in KINDS.values() for name in kind.run.COUNTED}
    assert found == {
        name: {kind.name for kind in KINDS.values() if name in kind.run.COUNTED} for name in sorted(counted)
    }


def test_files() -> None:
    listed = dict(re.findall(r"^\| `([\w.]+)\.(?:json|parquet)` \| .* \| (.+) \|$", PAGE, re.MULTILINE))
    assert listed == {
        "run": "always",
        **dict.fromkeys(CORE_TABLES, "always"),
        **dict.fromkeys(FULL_LOG_TABLES, "with `--full-log`"),
        **{name: kind for kind, own in OWN.items() for name in own},
        **{name: f"{kind}, `--full-log`" for kind, one in KINDS.items() for name in one.run.form().optional},
        **dict.fromkeys(GROUPED_FIELD_TABLES, "field, if there are groups"),
        **dict.fromkeys(EQUIPPED_FIELD_TABLES, "field, if sensors differ, listen at a cost or harvest"),
        **dict.fromkeys(HARVESTING_FIELD_TABLES, "field, if sensors harvest"),
        MARKS: "`serai node log`",
    }


def test_version() -> None:
    assert f"`log_version` (now {LOG_VERSION})" in PAGE


@pytest.mark.parametrize("name", TABLES)
def test_floats_have_a_unit_in_their_name(name: str) -> None:
    for column in TABLES[name]:
        assert column.type != pa.float64() or column.name.endswith(UNITS), column.name
