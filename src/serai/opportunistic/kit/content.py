"""What routers tell each other, on its way: plain data, frozen, and no larger than what is charged for it."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any, Final

import cbor2

from serai.core.errors import BadInput

FREE_BYTES: Final = 16
"""So much may travel with a bundle for nothing: its header has room for it."""

_PLAIN: Final = (bool, int, float, str, bytes, type(None))


class NotPlain(BadInput):
    """Something that cannot be sent: an object, or a number that is none."""


def frozen(content: Any) -> Any:
    """The same content, such that nobody can change it any more; parts that are frozen already are taken as they are.

    Why: a router that goes on changing what it has told would let its neighbours see the future.
    """
    kind = type(content)
    if kind in _PLAIN:
        if kind is float and math.isnan(content):
            raise NotPlain("NaN cannot be told")
        return content
    if isinstance(content, dict | MappingProxyType):
        return MappingProxyType({frozen(key): frozen(value) for key, value in content.items()})
    if isinstance(content, set | frozenset):
        return frozenset(frozen(item) for item in content)
    if isinstance(content, list | tuple):
        return tuple(frozen(item) for item in content)
    raise NotPlain(f"a {kind.__name__} cannot be told: only numbers, texts, tuples, lists, dicts and sets of such")


def entries_of(content: Any) -> int:
    """How many entries a list with this content has."""
    if content is None:
        return 0
    return len(content) if isinstance(content, tuple | frozenset | MappingProxyType) else 1


def encoded_bytes(content: Any) -> int:
    """How many bytes it takes on the wire (CBOR)."""
    return 0 if content is None else len(cbor2.dumps(content, default=_encode))


def _encode(encoder: Any, value: Any) -> None:
    encoder.encode(dict(value) if isinstance(value, MappingProxyType) else sorted(value, key=repr))
