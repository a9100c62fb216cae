"""What routers tell each other, on its way: plain data, frozen, and no larger than what is charged for it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from operator import ne
from typing import Any, Final, NoReturn

from serai.own.mistakes import Mistake

FREE_BYTES: Final = 16
"""So much may travel with a bundle for nothing: its header has room for it."""

_PLAIN: Final = frozenset((bool, int, float, str, bytes, type(None)))


class Told(dict[Any, Any]):
    """A dict on its way: nobody can change it, so it may be told again as it is."""

    __slots__ = ()

    def _refuse(self, *arguments: Any, **named: Any) -> NoReturn:
        raise TypeError("what was told cannot be changed; copy it first: dict(content)")

    def __reduce__(self) -> tuple[type[Told], tuple[dict[Any, Any]]]:
        return Told, (dict(self),)

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


def frozen(content: Any, method: str, of: type | None = None) -> Any:
    """What a method of the author's returned, such that nobody can change it any more; frozen parts stay as they are.

    Why: a router that goes on changing what it has told would let its neighbours see the future. `of`: the class of the
    method, if it is not the protocol itself.
    """
    try:
        return _frozen(content)
    except ValueError as error:
        raise Mistake(method, str(error), of) from None


def _frozen(content: Any) -> Any:
    if type(content) is Told:
        return content
    if isinstance(content, dict):
        return Told(zip(_all_frozen(content), _all_frozen(content.values()), strict=True))
    if isinstance(content, set | frozenset):
        return frozenset(_all_frozen(content))
    if isinstance(content, list | tuple):
        return tuple(_all_frozen(content))
    if type(content) not in _PLAIN:
        raise ValueError(
            f"a {type(content).__name__} cannot be told: only numbers, texts, tuples, lists, dicts and sets of such"
        )
    _refuse_nan((content,))
    return content


def _all_frozen(contents: Iterable[Any]) -> Iterable[Any]:
    """Mostly these are numbers, or tuples of numbers, in which nothing could change: seen fastest of all at once."""
    items = tuple(contents)
    kinds = set(map(type, items))
    inside = tuple(chain.from_iterable(items)) if kinds == {tuple} else items
    if not _PLAIN.issuperset(map(type, inside)):
        return map(_frozen, items)
    _refuse_nan(inside)
    return items


def _refuse_nan(items: tuple[Any, ...]) -> None:
    if any(map(ne, items, items)):
        raise ValueError("NaN cannot be told")


def entries_of(content: Any) -> int:
    """How many entries a list with this content has."""
    if content is None:
        return 0
    return len(content) if isinstance(content, tuple | frozenset | Told) else 1


def encoded_bytes(content: Any) -> int:
    """How many bytes it takes on the wire (CBOR)."""
    import cbor2  # only here: the kit is loaded with the registry of protocols, by nodes that have no need of it

    return 0 if content is None else len(cbor2.dumps(content, default=_encode))


def _encode(encoder: Any, value: Any) -> None:
    encoder.encode(dict(value) if isinstance(value, dict) else sorted(value, key=repr))
