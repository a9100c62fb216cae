"""Each metric is defined once and documented, and the table of many runs has a column for it."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import get_args, get_type_hints

import pyarrow as pa
import pytest

from serai.field.metrics import DEFINITIONS, Metrics
from serai.lab import measure
from serai.log.metric_schemas import METRICS
from tests.log import hand_made

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)
DOCUMENTED = {name: rest for name, *rest in ROW.findall(PAGE.read_text(encoding="utf-8"))}
UNIT_OF_SUFFIX = {"_s": "s", "_days": "d", "_j": "J", "_bits": "bit"}
ARROW_KINDS = {str: pa.string(), int: pa.int64(), float: pa.float64()}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_documented_as_defined(name):
    unit, meaning = DEFINITIONS[name]
    assert name in DOCUMENTED, f"add `{name}` to docs/metrics.md"
    assert DOCUMENTED[name][:2] == [unit or "-", meaning]


def test_nothing_documented_that_does_not_exist():
    assert DOCUMENTED.keys() == DEFINITIONS.keys()


@pytest.mark.parametrize("name", [name for name in DEFINITIONS if name not in ("protocol", "seed")])
def test_documented_with_a_formula(name):
    assert DOCUMENTED[name][2] != "-"


@pytest.mark.parametrize(("suffix", "unit"), UNIT_OF_SUFFIX.items())
def test_units_are_in_the_names(suffix, unit):
    named = {name for name in DEFINITIONS if name.endswith(suffix)}
    assert named == {name for name, definition in DEFINITIONS.items() if definition.unit == unit}


def test_table_of_runs_has_a_column_for_every_metric():
    kinds = get_type_hints(Metrics)
    assert METRICS.names == [metric.name for metric in fields(Metrics)]
    assert {column.name: column.type for column in METRICS} == {name: ARROW_KINDS[kinds[name]] for name in kinds}
    assert not any(NoneType in get_args(kind) for kind in kinds.values())


def test_rows_fit_the_table_of_runs():
    rows = [measure(hand_made.lively()).as_dict(), measure(_empty()).as_dict()]
    table = pa.Table.from_pylist(rows, schema=METRICS)
    table.validate(full=True)
    assert table.to_pylist() == rows
    for column in METRICS:
        assert column.nullable or not table[column.name].null_count, f"{column.name} must be nullable"


def _empty():
    world = hand_made.world([], [], sensors=[])
    return hand_made.run(world, hand_made.ledger(world))


def test_measuring_does_not_wait_for_pyarrow():
    code = "import sys, serai.field.metrics; sys.exit('pyarrow' in sys.modules)"
    search = os.pathsep.join([str(PAGE.parents[1] / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": search}, check=False)
    assert done.returncode == 0
