"""Columns of numbers as one short text: byte planes, one after the other, deflated together, in base64.

The low bytes of neighbouring rows resemble each other more than the bytes of one row do, so they stand together;
numbers that rise, or return to what was, are written as differences. `page/data.js` is the other end.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]

_UNSIGNED: Final = (np.uint8, np.uint16, np.uint32)
_LEVEL: Final = 5  # of deflate: 6 takes a fifth longer, 9 four times as long, for one and two per cent


class Packed(NamedTuple):
    """What a page needs to have columns back: a row [name, type, length, differences] for each, and the text."""

    columns: list[list[Any]]
    text: str


def differences(values: Numbers) -> Numbers:
    """Steps from one number to the next, the sign in the lowest bit: 0, -1, 1, -2, ... are 0, 1, 2, 3, ..."""
    steps: NDArray[np.int64] = values.astype(np.int64)
    steps[1:] -= values[:-1]
    signed: Numbers = (steps << 1) ^ (steps >> 63)
    return signed


def pack(columns: Mapping[str, Numbers], rising: Sequence[str] = ()) -> Packed:
    """The columns as a text; `rising`: those that are written as differences. Floats keep their type."""
    rows, planes = [], []
    for name, values in columns.items():
        told = _narrow(differences(values) if name in rising else values)
        rows.append([name, f"{told.dtype.kind}{told.dtype.itemsize}", len(told), int(name in rising)])
        planes.append(np.ascontiguousarray(told.view(np.uint8).reshape(len(told), told.dtype.itemsize).T).tobytes())
    deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = deflate.compress(b"".join(planes)) + deflate.flush()
    return Packed(rows, base64.b64encode(packed).decode("ascii"))


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
