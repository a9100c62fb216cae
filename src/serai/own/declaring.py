"""What the author of a protocol declares and is given: settings, objects that only the engine changes, draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from serai.core.order import LOW_32_BITS, mix


class Setting(NamedTuple):
    """A setting of a protocol, as its class declares it."""

    default: Any
    ge: float | None = None
    le: float | None = None
    choices: tuple[Any, ...] | None = None
    time: bool = False
    doc: str = ""


def setting(
    default: Any,
    *,
    ge: float | None = None,
    le: float | None = None,
    choices: Sequence[Any] | None = None,
    time: bool = False,
    doc: str = "",
) -> Any:
    """Declare a setting: `copies: int = setting(8, ge=1, doc="...")`, read as `self.copies`.

    `choices` are the values it may have; if the default is a tuple, any combination of them. `time=True`: it is written
    with a unit, such as "30 s", and read in seconds.
    """
    return Setting(default, ge, le, None if choices is None else tuple(choices), time, doc)


class Guarded:
    """Its slots are the engine's, but for those named in `OWN`: an author who sets another one is told so."""

    __slots__ = ()
    OWN: ClassVar[tuple[str, ...]] = ("note",)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.OWN:
            raise AttributeError(f"{type(self).__name__.lower()}.{name} cannot be changed; use .note for your own")
        object.__setattr__(self, name, value)


def put(guarded: Guarded, **values: Any) -> None:
    """Set what only the engine may set."""
    for name, value in values.items():
        object.__setattr__(guarded, name, value)


def drawn(key: int, node: int, now: float, what: tuple[int, ...]) -> float:
    """A number in [0, 1) that depends on the run, the node, the time and `what`: ask again, get it again."""
    number = mix(mix(key & LOW_32_BITS) ^ (key >> 32) ^ mix(node + 1))
    for part in (int(now * 1e6), *what):
        number = mix(number ^ mix(part & LOW_32_BITS) ^ (int(part) >> 32 & LOW_32_BITS))
    return math.ldexp(number, -32)
