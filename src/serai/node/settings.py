"""What a core is set to; `serai.node.config` reads it from TOML."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from serai.core.errors import BadInput
from serai.node.words import mark_of, mark_of_node
from serai.opportunistic.dpsp import Settings as DpspSettings
from serai.opportunistic.rules import RouterSettings

DEFAULT_PROTOCOL = DpspSettings(priorities=("long-delay",), combine="order", order="oldest", announce="change")
LIVE_PROTOCOLS = ("dpsp", "flooding", "direct")
"""Those that a node can run: others count copies, which a cut may lose, or tell of likelihoods, which no list has."""


@dataclass(frozen=True)
class NodeSettings:
    """What a core is set to."""

    name: str  # node id: dtn://NAME/
    protocol: RouterSettings = DEFAULT_PROTOCOL
    store_bytes: int = 1 << 30  # of what is carried
    waiting_bytes: int = 1 << 30  # of what is kept for own sessions alone
    store_bundles: int = 1_000_000
    when_full: str = "oldest"  # serai.opportunistic.rules.WHEN_FULL
    keep_own: int = 1  # neighbours that must have an own publication before it may be evicted
    carries: bool = True
    skew_s: float = 3600.0  # how wrong clocks may be
    clock_ms: int = 2000  # how far a bundle's time and its age may disagree before the age alone counts
    longest_s: float = math.inf  # no bundle lives longer
    window_transfers: int = 64
    window_bytes: int = 256 << 10
    entries_of_peer: int = 20_000
    entries: int = 100_000
    log_rows: int = 1_000_000  # 0: no log is kept

    # what an emulation sets, to be comparable with a simulation
    key: int = 0  # of random orders
    fixed_rate: bool = False  # the rate of a contact is what it was said to be
    each_interest: bool = False  # every subscription is told of, even if there is another to the same
    mark_of_bundle: Callable[[str, int, int, int], int] = mark_of
    mark_of_node: Callable[[str], int] = mark_of_node

    def __post_init__(self) -> None:
        name = str(getattr(self.protocol, "name", ""))
        if name not in LIVE_PROTOCOLS:
            raise BadInput(f"protocol {name}: a live node runs one of: {', '.join(LIVE_PROTOCOLS)}")
        if self.protocol.seen == "live":
            raise BadInput('protocol.seen = "live": no real neighbour answers for nothing; one of: vector, bloom')
