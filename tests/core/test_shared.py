"""States passed by reference: compiled code reads and writes them as plain Python does."""

import os
from typing import Any, NamedTuple

import numpy as np
import pytest

from serai.core.jit import engine, kernel, shared, step

ITEM = np.dtype([("narrow", "i4"), ("flag", "u1"), ("wide", "i8"), ("metres", "f8")], align=True)
CHECKED = os.environ.get("NUMBA_BOUNDSCHECK") == "1"


class Inner(NamedTuple):
    few: np.ndarray[Any, Any]
    scale: float


class State(NamedTuple):
    items: Any
    table: np.ndarray[Any, Any]
    bytes_: np.ndarray[Any, Any]
    inner: Inner
    limit: int
    careful: bool


def a_state() -> State:
    """Four records, a table of 2 x 3, and a state within the state."""
    items = np.zeros(4, ITEM).view(np.recarray)
    table = np.arange(6, dtype=np.int32).reshape(2, 3)
    return State(items, table, np.array([200, 7], np.uint8), Inner(np.array([1.5, 2.5]), 3.0), -7, True)


@step
def work(state: State, n: int) -> int:
    """Read and write everything that a state can hold."""
    item = state.items[n]
    item.narrow, item.wide, item.flag = -n, state.limit, 255
    item.metres += state.inner.few[1] * state.inner.scale
    state.items[n - 1] = item
    row = state.table[1]
    row[2] += 10
    state.table[0, n] = row[2] + len(state.table) + len(row)
    state.bytes_[1] += state.bytes_[0]
    return int(item.narrow + item.wide + state.items[n - 1].flag) if state.careful else 0


@engine
def compiled(state: State, n: int) -> int:
    """`work` on a state passed by reference."""
    state = shared(state)
    return work(state, n)


def test_a_shared_state_is_read_and_written_in_place() -> None:
    state = a_state()
    assert compiled(state, 2) == -2 - 7 + 255
    assert state.items[1].tolist() == state.items[2].tolist() == (-2, 255, -7, 7.5)
    assert state.items[0].tolist() == state.items[3].tolist() == (0, 0, 0, 0.0)
    assert state.table.tolist() == [[0, 1, 20], [3, 4, 15]]
    assert state.bytes_.tolist() == [200, 207]


def test_the_same_in_plain_python() -> None:
    one, other = a_state(), a_state()
    assert compiled(one, 1) == work(other, 1)
    assert one.items.tolist() == other.items.tolist()
    assert one.table.tolist() == other.table.tolist()


@kernel
def entry(state: State, n: int) -> int:
    """One entry of a state's table."""
    return int(shared(state).table[1, n])


@pytest.mark.skipif(not CHECKED, reason="needs NUMBA_BOUNDSCHECK=1")
@pytest.mark.parametrize("n", [-1, 3])
def test_an_index_out_of_range_is_found(n: int) -> None:
    assert entry(a_state(), 2) == 5
    with pytest.raises(IndexError):
        entry(a_state(), n)
