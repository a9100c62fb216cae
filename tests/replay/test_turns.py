"""Rows come back from the turns of their senders: worked out here row by row, with a list of copies for each node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.replay import turns
from serai.replay.sheet import links_of
from serai.replay.turns import BACK, JUMP, ON, STRAY, Log, in_order, in_turns

Row = tuple[int, int, int, int]  # when, from whom, to whom, which event


def told(
    rows: list[Row], births: list[tuple[int, int]], nodes: int = 9
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """The columns of a log whose births are (when, where), and its links."""
    at, sender, receiver, event = np.array(rows, np.int64).reshape(-1, 4).T
    links = links_of(sender, receiver, nodes)
    born_at, birth_node = np.array(births, np.int64).reshape(-1, 2).T
    columns = in_turns(links, Log(links.of_row, event, np.arange(len(rows)), at, birth_node, born_at))
    ends = list(zip(links.source.tolist(), links.target.tolist(), strict=True))
    return {name: values.tolist() for name, values in columns.items()}, ends


def taken(columns: dict[str, Any], ends: list[tuple[int, int]], at: list[int], births: list[tuple[int, int]]) -> Any:
    """Sender, receiver, event and flags of each row, out of the columns."""
    order = list(zip(columns["turnOf"], columns["turnRows"], strict=True))
    by_sender = zip(columns["ownLink"], columns["ownFlags"], columns["ownCopy"], strict=True)
    own = {
        node: [next(by_sender) for of, count in order if of == node for _ in range(count)]
        for node in sorted({of for of, _ in order})
    }
    copies: dict[int, list[int]] = {node: [] for node in range(9)}
    behind, left = dict.fromkeys(range(9), 0), dict.fromkeys(range(9), 0)
    strays, waiting, rows = iter(columns["strayEvent"]), list(enumerate(births)), []
    for node, count in order:
        for _ in range(count):
            while waiting and waiting[0][1][0] <= at[len(rows)]:
                event, (_, where) = waiting.pop(0)
                copies[where].append(event)
            step, flags, how = own[node].pop(0)
            if how == STRAY:
                event = next(strays)
            else:
                place = behind[node]
                if how == BACK:
                    place = left[node]
                elif how >= JUMP:
                    far = how - JUMP + 1
                    place += -(far + 1) // 2 if far % 2 else far // 2
                if how != ON:
                    left[node] = behind[node]
                event, behind[node] = copies[node][place], place + 1
            receiver = [to for of, to in ends if of == node][step]
            copies[receiver].append(event)
            rows.append((node, receiver, event, flags))
    assert next(strays, None) is None
    return rows


NODES, TIMES, EVENTS = st.integers(0, 8), st.integers(0, 30), st.integers(0, 12)
BIRTHS = st.lists(st.tuples(TIMES, NODES), min_size=13, max_size=13)
ROWS = st.lists(st.tuples(TIMES, NODES, NODES, EVENTS), max_size=60).map(
    lambda rows: sorted(rows, key=lambda row: row[0])
)


@given(ROWS, BIRTHS)
def test_any_rows_come_back(rows: list[Row], births: list[tuple[int, int]]) -> None:
    """Also of senders that nothing came to, and of births in any order: each waits for those before it."""
    columns, ends = told(rows, births)
    back = taken(columns, ends, [row[0] for row in rows], births)
    assert back == [(*row[1:], flags) for flags, row in enumerate(rows)]


def test_what_came_is_sent_on() -> None:
    """Node 0 sends its three events to 1, youngest first; 1 sends them on and goes back for one of its own."""
    births = [(0, 0), (0, 1), (1, 0), (2, 0)]
    rows = [(3, 0, 1, 3), (3, 0, 1, 2), (3, 0, 2, 0), (4, 1, 2, 3), (4, 1, 2, 2), (4, 1, 2, 1), (5, 2, 0, 9)]
    columns, _ = told(rows, births)
    assert columns["turnOf"] == [0, 1, 2]
    assert columns["turnRows"] == [3, 3, 1]
    assert columns["ownLink"] == [0, 0, 1, 0, 0, 0, 0]
    assert columns["ownCopy"] == [JUMP + 3, JUMP + 2, JUMP + 2, JUMP + 1, ON, BACK, STRAY]
    assert columns["strayEvent"] == [9]


def test_numbers_too_large_to_be_sorted_are_told_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_MOST_BITS", 6)
    births = [(0, 0), (0, 1)]
    columns, ends = told([(3, 0, 1, 0), (4, 1, 2, 0)], births)
    assert columns["strayEvent"] == [0, 0]
    assert taken(columns, ends, [3, 4], births) == [(0, 1, 0, 0), (1, 2, 0, 1)]
    monkeypatch.setattr(turns, "_MOST_BITS", 7)  # 4 bits for an event and a node, 3 for a copy
    assert told([(3, 0, 1, 0), (4, 1, 2, 0)], births)[0]["strayEvent"] == []


@given(st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 5), max_size=40))
def test_in_order_as_a_stable_sort_has_it(keys: list[int]) -> None:
    assert in_order(np.array(keys, np.int64)).tolist() == sorted(range(len(keys)), key=keys.__getitem__)
