"""The registry of protocols: a protocol added is one line here and one file beside it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from serai.protocols import (
    ced,
    cet,
    dg,
    direct,
    dpsp,
    flooding,
    overlay,
    prophet,
    pub2sub,
    replication,
    spray,
    tinymq,
)


@dataclass(frozen=True)
class Protocol:
    """What the rest of serai needs to know of a protocol."""

    name: str
    network: Literal["field", "overlay", "contacts"]
    """The kind of network it runs on; each kind has its own engine, scenario and metrics."""
    title: str
    paper: str
    settings: type[BaseModel]
    simulate: Callable[..., Any]
    """Its kernels, over a whole run; what goes in and comes out is the business of the kind of network."""
    copies: Literal["per-reception", "per-event"] | None = None
    """How its paper counts "copies of each event" (see the metric `copies_per_event`)."""


PROTOCOLS: dict[str, Protocol] = {
    protocol.name: protocol
    for protocol in (
        Protocol("dg", "field", "direct gathering", dg.PAPER, dg.Settings, dg.simulate, "per-event"),
        Protocol(
            "ced", "field", "community-based event delivery", ced.PAPER, ced.Settings, ced.simulate, "per-reception"
        ),
        Protocol(
            "cet", "field", "community-based event transmitting", cet.PAPER, cet.Settings, cet.simulate, "per-reception"
        ),
        Protocol(
            "dpsp", "contacts", "publish/subscribe for bundle routers", dpsp.PAPER, dpsp.Settings, replication.simulate
        ),
        Protocol("flooding", "contacts", "epidemic routing", flooding.PAPER, flooding.Settings, replication.simulate),
        Protocol("direct", "contacts", "direct delivery", direct.PAPER, direct.Settings, replication.simulate),
        Protocol("spray", "contacts", "spray and wait", spray.PAPER, spray.Settings, replication.simulate),
        Protocol("prophet", "contacts", "PRoPHET", prophet.PAPER, prophet.Settings, replication.simulate),
        Protocol("tinymq", "overlay", "trees of keys, shared", tinymq.PAPER, tinymq.Settings, overlay.simulate),
        Protocol(
            "pub2sub", "overlay", "trees of keys, each spanning", pub2sub.PAPER, pub2sub.Settings, overlay.simulate
        ),
    )
}


def protocols_of(network: str) -> list[str]:
    """The names of the protocols that run on one kind of network."""
    return [protocol.name for protocol in PROTOCOLS.values() if protocol.network == network]
