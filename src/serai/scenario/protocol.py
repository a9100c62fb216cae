"""What the rest of serai needs to know of a protocol; each kind of network keeps a registry of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel


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
    adopted: bool = False
    """Whether it is one of the user's own, known since its file was read."""


Protocols = dict[str, Protocol]


def registry(*protocols: Protocol) -> Protocols:
    """The protocols of one kind of network, by name."""
    return {protocol.name: protocol for protocol in protocols}
