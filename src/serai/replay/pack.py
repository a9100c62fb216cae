"""Columns of numbers as one short text: byte planes, one after the other, deflated together, in base 85.

The low bytes of neighbouring rows resemble each other more than the bytes of one row do, so they stand together;
numbers that rise, or return to what was, are written as differences. Base 85 takes a sixteenth less than base 64; its
85 characters are those from "(" on but "<", which could end the element that the text stands in. `page/data.js` is the
other end; the checksum of zlib tells it whether the text was damaged.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

_DIGITS: Final = np.array([code for code in range(ord("("), ord("~")) if code != ord("<")], np.uint8)
_UNSIGNED: Final = (np.uint8, np.uint16, np.uint32)
_LEVEL: Final = 5  # of deflate: 6 takes a fifth longer, 9 four times as long, for one and two per cent


class Packed(NamedTuple):
    """What a page needs to have columns back: a row [name, type, length, differences] for each; bytes, as a text."""

    columns: list[list[Any]]
    bytes: int
    text: str


def differences(values: Numbers) -> Numbers:
    """Steps from one number to the next, the first from 0."""
    steps: NDArray[np.int64] = values.astype(np.int64)
    steps[1:] -= values[:-1]
    return zigzag(steps)


def zigzag(steps: Numbers) -> Numbers:
    """Whole numbers with their signs in the lowest bit: 0, -1, 1, -2, ... are 0, 1, 2, 3, ..."""
    return np.where(steps < 0, -2 * steps - 1, 2 * steps)


def pack(columns: Mapping[str, Numbers], rising: Sequence[str] = ()) -> Packed:
    """The columns as a text; `rising`: those that are written as differences. Floats keep their type."""
    rows, planes = [], []
    for name, values in columns.items():
        told = _narrow(differences(values) if name in rising else values)
        rows.append([name, f"{told.dtype.kind}{told.dtype.itemsize}", len(told), int(name in rising)])
        planes.append(np.ascontiguousarray(told.view(np.uint8).reshape(len(told), told.dtype.itemsize).T).tobytes())
    packed = zlib.compress(b"".join(planes), _LEVEL)
    return Packed(rows, len(packed), in_base_85(packed))


def in_base_85(packed: bytes) -> str:
    """Each four bytes, the first the highest, as five digits; what is missing of the last four is 0."""
    words = np.frombuffer(packed + bytes(-len(packed) % 4), ">u4").astype(np.uint32)
    digits = np.empty((len(words), 5), np.uint8)
    for place in range(4, -1, -1):
        words, digit = np.divmod(words, np.uint32(85))
        digits[:, place] = digit
    return _DIGITS[digits].tobytes().decode("ascii")


def _narrow(values: Numbers) -> Numbers:
    """The same numbers in the narrowest type that holds them."""
    if values.dtype.kind == "f":
        return values.astype(values.dtype.newbyteorder("<"))
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    if len(values) and values.min() < 0:
        raise ValueError("a column of whole numbers has a negative one; write it as differences")
    most = values.max(initial=0)
    kind = next(one for one in _UNSIGNED if most <= np.iinfo(one).max)
    return values.astype(np.dtype(kind).newbyteorder("<"))
