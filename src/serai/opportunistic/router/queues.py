"""The order of a neighbour's queue, where it is a total one: then a heap finds the next bundle, else all are compared.

It is total if nothing is drawn at random, no bundle goes before others just because it is wanted, nobody counts
copies, and the protocol's priorities do not vote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from serai.opportunistic.router.messages import Bundle
from serai.opportunistic.rules import NEWEST, OLDEST, RANDOM, SMALLEST, SOONEST, Offer, RouterRules

if TYPE_CHECKING:
    from serai.opportunistic.routing import Decisions

Place = Callable[[Offer, Bundle], tuple[Any, ...]]


class Descending:
    """A key of which the greatest goes first."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)


def place_of(protocol: Decisions, rules: RouterRules) -> Place | None:
    """Where a bundle stands, from what is offered and the bundle: the lowest goes first. None: no total order."""
    worth = protocol.worth_of(rules.own)
    if worth is None or rules.order == RANDOM or rules.wanted_first or rules.copies > 0 or not rules.lists:
        return None
    among_equals = AMONG_EQUALS[rules.order]
    return lambda offer, bundle: (*worth(offer), among_equals(bundle))


AMONG_EQUALS: Final[dict[int, Callable[[Bundle], Any]]] = {
    OLDEST: lambda bundle: bundle.key,
    NEWEST: lambda bundle: Descending(bundle.key),
    SMALLEST: lambda bundle: (bundle.size_bytes, bundle.key),
    SOONEST: lambda bundle: (bundle.expires_s, bundle.key),
}
"""The rule `tie_rank` for those who know no numbers of bundles."""
