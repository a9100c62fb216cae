"""The registry of protocols: a protocol added is one line here and one file beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from serai.engine.state import Field, Limits
from serai.protocols import ced, cet, dg
from serai.world import World


@dataclass(frozen=True)
class Protocol:
    """What the rest of serai needs to know of a protocol."""

    name: str
    title: str
    paper: str
    settings: type[BaseModel]
    simulate: Callable[[World, Limits, Any], Field]
    copies: Literal["per-reception", "per-event"]
    """How its paper counts "copies of each event" (see the metric `copies_per_event`)."""


PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        Protocol("dg", "direct gathering", dg.PAPER, dg.Settings, dg.simulate, "per-event"),
        Protocol("ced", "community-based event delivery", ced.PAPER, ced.Settings, ced.simulate, "per-reception"),
        Protocol("cet", "community-based event transmitting", cet.PAPER, cet.Settings, cet.simulate, "per-reception"),
    )
}
