"""Columns come back from the text as they were: unpacked here as slowly as one can."""

import math
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.replay.pack import in_base_85, pack
from serai.replay.sheet import in_steps, links_of

FORMATS = {"u1": "B", "u2": "H", "u4": "I", "f4": "f", "f8": "d"}


def decoded(text: str, length: int) -> bytes:
    """Digit by digit."""
    digits = "()*+,-./0123456789:;=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}"
    assert len(digits) == 85
    found = b""
    for at in range(0, len(text), 5):
        word = 0
        for letter in text[at : at + 5]:
            word = 85 * word + digits.index(letter)
        found += word.to_bytes(4, "big")
    assert 0 <= len(found) - length < 4
    return found[:length]


def unpack(columns: list[list[Any]], length: int, text: str) -> dict[str, list[float]]:
    planes = zlib.decompress(decoded(text, length))
    found, at = {}, 0
    for name, kind, length, differences in columns:
        size = int(kind[1])
        values: list[Any] = []
        for i in range(length):
            raw = bytes(planes[at + byte * length + i] for byte in range(size))
            values.append(struct.unpack("<" + FORMATS[kind], raw)[0])
        at += size * length
        if differences:
            total, summed = 0, []
            for step in values:
                total += -(step + 1) // 2 if step % 2 else step // 2
                summed.append(total)
            values = summed
        found[name] = values
    assert at == len(planes)
    return found


WHOLE = st.lists(st.integers(0, 2**31 - 1) | st.integers(0, 300), max_size=20)


@given(WHOLE, WHOLE, st.lists(st.floats(width=32, allow_nan=False), max_size=9), st.lists(st.booleans(), max_size=9))
def test_there_and_back(plain: list[int], rising: list[int], floats: list[float], flags: list[bool]) -> None:
    columns = {
        "plain": np.array(plain, np.int64),
        "rising": np.array(rising, np.int64),
        "short": np.array(floats, np.float32),
        "long": np.array(floats, np.float64),
        "flags": np.array(flags, np.bool_),
    }
    packed = pack(columns, ("rising",))
    assert unpack(*packed) == {"plain": plain, "rising": rising, "short": floats, "long": floats, "flags": flags}
    assert pack(columns, ("rising",)) == packed


def test_narrow_types() -> None:
    told = pack({"a": np.array([0, 255]), "b": np.array([256]), "c": np.array([65536]), "d": np.array([], np.int32)})
    assert [(name, kind) for name, kind, _, _ in told.columns] == [("a", "u1"), ("b", "u2"), ("c", "u4"), ("d", "u1")]


def test_no_negative_numbers() -> None:
    with pytest.raises(ValueError, match="negative"):
        pack({"a": np.array([1, -1])})


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30))
def test_links_are_numbered_by_their_ends(ends: list[tuple[int, int]]) -> None:
    sender, receiver = np.array(ends, np.int32).reshape(-1, 2).T
    links = links_of(sender, receiver, 7)
    assert list(zip(links.source.tolist(), links.target.tolist(), strict=True)) == sorted(set(ends))
    assert [sorted(set(ends))[link] for link in links.of_row.tolist()] == ends


@given(st.binary(max_size=40))
def test_any_bytes_as_text(told: bytes) -> None:
    assert decoded(in_base_85(told), len(told)) == told


VALUES = st.lists(st.tuples(st.floats(-1e30, 1e30), st.floats(0, 1), st.integers(-9, 9)), max_size=9)


@given(VALUES)
def test_values_are_told_in_steps(values: list[tuple[float, float, float]]) -> None:
    """Half a step from what they are, fifty steps at least from the least to the most; whole numbers as they are."""
    table = np.array(values, float).reshape(-1, 3)
    told, steps = in_steps(table)
    for place, (first, decimals) in enumerate(steps):
        column, numbers = table[:, place], told.reshape(-1, 3)[:, place]
        step = 10.0**-decimals
        assert ((first + numbers) * step).tolist() == pytest.approx(column.tolist(), abs=0.501 * step, rel=1e-9)
        assert min(numbers, default=0) == 0 <= max(numbers, default=0) <= 501
        if len(values) and np.ptp(column):
            assert decimals in (0, 99) or math.log10(np.ptp(column) / step) > 1.69
    assert not values or steps[2][1] == 0
