"""Columns of tables made of arrays, and arrays made of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Codes = NDArray[np.int8]  # places in a list of words
Columns = dict[str, Any]

NUMBERS = pa.list_(pa.field("element", pa.float64(), nullable=False))


def words(codes: Codes, all_words: tuple[str, ...]) -> pa.DictionaryArray:
    """Codes as the words they stand for."""
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(all_words))


def texts(numbers: NDArray[np.int32], all_texts: tuple[str, ...]) -> pa.StringArray:
    """The text that each number stands for."""
    return pa.array(all_texts, pa.string()).take(pa.array(numbers))


def lists(rows: NDArray[np.float64]) -> pa.ListArray:
    """A matrix as one list per row."""
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(offsets, rows.ravel(), type=NUMBERS)


def array(table: pa.Table, column: str, kind: type[np.generic]) -> NDArray[Any]:
    """A column as an array of its own: pyarrow's may not be written to, and kernels compile anew for such."""
    return np.array(table[column].to_numpy(), dtype=kind)


def matrix(table: pa.Table, column: str, width: int) -> NDArray[np.float64]:
    """A column of lists as a matrix."""
    numbers = table[column].combine_chunks().flatten().to_numpy()
    return np.array(numbers, dtype=np.float64).reshape(len(table), width)


def codes(table: pa.Table, column: str, all_words: tuple[str, ...]) -> Codes:
    """The place of each word of a column in the list of words; -1: it is not there."""
    return numbers(table, column, all_words).astype(np.int8)


def numbers(table: pa.Table, column: str, all_texts: tuple[str, ...]) -> NDArray[np.int32]:
    """The place of each text of a column in the list of texts; -1: it is not there."""
    places = pc.index_in(table[column].cast(pa.string()), value_set=pa.array(all_texts, pa.string()))
    return np.array(places.fill_null(-1).to_numpy(), dtype=np.int32)
