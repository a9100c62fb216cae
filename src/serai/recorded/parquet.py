"""Readings and subscriptions in Parquet: columns by their type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from serai.core.conditions import microseconds
from serai.core.errors import BadInput
from serai.recorded.columns import LARGEST_INTEGER, US_PER_S, Column, Table
from serai.world.grid import Floats


def read_parquet(path: Path) -> Table:
    """The columns of a Parquet file."""
    try:
        found = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None
    if not found.num_rows:
        raise BadInput(f"{path}: no rows in it")
    problems: list[str] = []
    columns = {name: _from_arrow(name, found[name].combine_chunks(), problems) for name in found.column_names}
    return Table(path, columns, tuple(range(1, found.num_rows + 1)), "row", tuple(problems))


def _from_arrow(name: str, column: pa.Array, problems: list[str]) -> Column:
    """A column of Parquet; a value that no event can have is a problem."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    values = column.to_pylist()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Column("text", np.empty(0), tuple(values))
    if pa.types.is_boolean(kind):
        return Column("boolean", _floats(values))
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return Column("time", _floats([_epoch_s(value) for value in values]))
    if pa.types.is_integer(kind):
        problems += [
            f"row {row}: {name}: {value} is beyond ±2**53, where simulations tell whole numbers apart"
            for row, value in enumerate(values, 1)
            if value is not None and abs(value) > LARGEST_INTEGER
        ]
        return Column("integer", _floats(values))
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        problems += [
            f"row {row}: {name}: {value} is no finite number; leave out what is missing (null)"
            for row, value in enumerate(values, 1)
            if value is not None and not math.isfinite(value)
        ]
        return Column("real", _floats(values))
    problems.append(f"column {name} holds {kind}; expected numbers, whole numbers, times, texts or booleans")
    return Column("real", np.empty(0))


def _floats(values: Sequence[object]) -> Floats:
    return np.array([math.nan if value is None else float(value) for value in values], np.float64)  # type: ignore[arg-type]


def _epoch_s(value: date | None) -> float | None:
    return None if value is None else microseconds(value) / US_PER_S
