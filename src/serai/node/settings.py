"""What a core is set to; `serai.node.config` reads it from TOML."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from serai.node.words import mark_of, mark_of_node
from serai.opportunistic.entries import DECISIONS, FAR, LONG_DELAY, Dpsp
from serai.opportunistic.routing import Decisions
from serai.opportunistic.rules import OLDEST, VECTOR, RouterRules

RULES = RouterRules(
    seen=VECTOR, lists=True, order=OLDEST, wanted_first=False, consume=False, skip_late=False, repeat_s=60.0,
    header_bytes=32, entry_bytes=40, id_bytes=8, bloom_bits=10, announce=True, if_wanted=0.0, if_unknown=FAR,
    own=Dpsp(known_filter=False, hop_filter=False, hop_tolerance=0, missing_is_far=False,
             priorities=(LONG_DELAY, 0, 0, 0), vote=False, lifetime_s=86_400.0, renewal_s=77_760.0),
)  # fmt: skip
"""`serai.node.routing.LIVE` in the numbers that rules read: DPSP, the oldest first, news of interests told at once."""


@dataclass(frozen=True)
class NodeSettings:
    """What a core is set to."""

    name: str  # node id: dtn://NAME/
    decisions: Decisions = DECISIONS
    rules: RouterRules = RULES
    store_bytes: int = 1 << 30  # of what is carried
    waiting_bytes: int = 1 << 30  # of what is kept for own sessions alone
    store_bundles: int = 1_000_000
    when_full: str = "oldest"  # serai.opportunistic.rules.WHEN_FULL
    keep_own: int = 1  # neighbours that must have an own publication before it may be evicted
    carries: bool = True
    skew_s: float = 3600.0  # how wrong clocks may be
    clock_ms: int = 2000  # how far a bundle's time and its age may disagree before the age alone counts
    longest_s: float = math.inf  # no bundle lives longer
    window_transfers: int = 256
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
