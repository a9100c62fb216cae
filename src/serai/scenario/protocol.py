"""What the rest of serai needs to know of a protocol; each kind of network keeps a registry of its own."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from pydantic import BaseModel

_SHORT: Final = 4


class Authored(typing.Protocol):
    """A class of the user's."""

    def texts(self) -> dict[str, str]:
        """All that its author wrote, by file; or by package, what tells its version from another one."""


@dataclass(frozen=True)
class Protocol:
    """One line of a registry."""

    name: str
    title: str
    paper: str
    settings: type[BaseModel]
    simulate: Callable[..., Any]
    """Its kernels, over a whole run; what goes in and comes out is the business of the kind of network."""
    copies: Literal["per-reception", "per-event"] | None = None
    """How its paper counts "copies of each event" (see the metric `copies_per_event`)."""
    own: Authored | None = None
    """Of one of the user's own, known since it was asked for: the class."""
    spelling: str = ""
    """How people write its name, where neither capitals nor a capital do."""

    @property
    def label(self) -> str:
        """How people write its name: short ones in capitals, the user's own as they are."""
        short, longer = self.name.upper(), self.name.capitalize()
        return self.name if self.own else self.spelling or (short if len(self.name) <= _SHORT else longer)


Protocols = dict[str, Protocol]


def registry(*protocols: Protocol) -> Protocols:
    """The protocols of one kind of network, by name."""
    return {protocol.name: protocol for protocol in protocols}
