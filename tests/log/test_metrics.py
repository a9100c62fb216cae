"""Each metric is declared once: documentation, tables of many runs, and what is better follow from the declaration."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from serai.field.metrics import FieldMetrics
from serai.kinds import FIELD, KINDS, AnyKind
from serai.lab import measure
from serai.log.metrics import Metrics, arrow_schema, declared
from tests.log import hand_made

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"field": "metrics.md", "overlay": "overlay/index.md", "opportunistic": "opportunistic/results.md"}
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
UNIT_OF_SUFFIX = {"_s": "s", "_days": "d", "_j": "J", "_bits": "bit"}
ARROW_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
METRICS = [(kind, name) for kind in KINDS.values() for name in kind.definitions]
each_metric = pytest.mark.parametrize(("kind", "name"), METRICS, ids=[f"{kind.name}-{name}" for kind, name in METRICS])
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def documented(kind: AnyKind) -> dict[str, list[str]]:
    """The rows of the tables of metrics on the page of a kind of network."""
    text = (DOCS / PAGES[kind.name]).read_text(encoding="utf-8")
    text = text.split("\n## Metrics\n")[-1].split("\n## Run folder\n")[0]
    return {name: rest for name, *rest in ROW.findall(text)}


@each_metric
def test_documented_as_declared(kind: AnyKind, name: str) -> None:
    one, rows = kind.definitions[name], documented(kind)
    assert name in rows, f"add `{name}` to docs/{PAGES[kind.name]}"
    assert rows[name][:2] == [one.unit or "-", one.meaning]


@pytest.mark.parametrize("name", [name for name in FIELD.definitions if name not in ("protocol", "seed")])
def test_documented_with_a_formula(name: str) -> None:
    assert documented(FIELD)[name][2] != "-"


@each_kind
def test_nothing_documented_that_does_not_exist(kind: AnyKind) -> None:
    assert documented(kind).keys() == kind.definitions.keys()


@each_kind
@pytest.mark.parametrize(("suffix", "unit"), UNIT_OF_SUFFIX.items())
def test_units_are_in_the_names(kind: AnyKind, suffix: str, unit: str) -> None:
    named = {name for name in kind.definitions if name.endswith(suffix)}
    assert named == {one.name for one in kind.definitions.values() if one.unit == unit}


@each_kind
def test_what_all_kinds_have_means_the_same(kind: AnyKind) -> None:
    shared = declared(Metrics)
    assert {name: kind.definitions[name] for name in shared} == shared
    assert list(kind.definitions)[: len(shared)] == list(shared)


@each_kind
def test_table_of_runs_has_a_column_for_every_metric(kind: AnyKind) -> None:
    found = {column.name: (column.type, column.nullable) for column in arrow_schema(kind.metrics)}
    expected = {one.name: (ARROW_TYPES[one.type], one.type is float) for one in kind.definitions.values()}
    assert found == expected


@each_kind
def test_headlines_can_be_better_or_worse(kind: AnyKind) -> None:
    assert all(kind.definitions[name].better for name in kind.headlines)


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("delivery_ratio", 1),
        ("lifetime_days", 1),
        ("lifetime_with_control_days", 1),
        ("control_energy_j", -1),
        ("mean_delay_s", -1),
        ("fairness_communities", 1),
        ("drops_full", -1),
        ("events", 0),
        ("upper_bound_direct", 0),
        ("upper_bound_direct_delay_s", 0),
    ],
)
def test_which_end_is_the_better_one(name: str, better: int) -> None:
    assert FIELD.definitions[name].better == better


def test_a_ratio_that_is_a_delay_is_better_when_small() -> None:
    assert KINDS["overlay"].definitions["notification_delay_ratio"].better == -1


@each_metric
def test_drops_stand_in_their_chapter(kind: AnyKind, name: str) -> None:
    assert (kind.definitions[name].chapter == "drops") == name.startswith("drops_")


def test_rows_fit_the_table_of_runs() -> None:
    rows = [measure(hand_made.lively()).as_dict(), measure(_empty()).as_dict()]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(FieldMetrics))
    table.validate(full=True)
    assert table.to_pylist() == rows
    for column in table.schema:
        assert column.nullable or not table[column.name].null_count, f"{column.name} must be nullable"


def _empty():
    world = hand_made.world([], [], sensors=[])
    return hand_made.run(world, hand_made.ledger(world))


def test_a_metric_without_a_value_cannot_be_left_out() -> None:
    with pytest.raises(TypeError, match="delivered_pairs"):
        Metrics(protocol="ced", seed=0, delivery_ratio=0.5, wanted_pairs=2)


def test_measuring_does_not_wait_for_pyarrow() -> None:
    code = "import sys, serai.field.metrics; sys.exit('pyarrow' in sys.modules)"
    search = os.pathsep.join([str(DOCS.parent / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": search}, check=False)
    assert done.returncode == 0
