"""Columns come back from the text as they were: unpacked here as slowly as one can."""

import base64
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.replay.pack import pack
from serai.replay.sheet import links_of, shortened

FORMATS = {"u1": "B", "u2": "H", "u4": "I", "f4": "f", "f8": "d"}


def unpack(columns: list[list[Any]], text: str) -> dict[str, list[float]]:
    planes = zlib.decompress(base64.b64decode(text), -15)
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


@given(st.lists(st.floats(-1e30, 1e30), max_size=9))
def test_shortened_numbers(values: list[float]) -> None:
    told = shortened(np.array(values))
    assert told.tolist() == pytest.approx(values, rel=1e-5, abs=1e-30)
    assert not (told.view(np.uint32) & 0x7F).any()
