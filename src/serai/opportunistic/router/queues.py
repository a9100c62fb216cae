"""The order of a neighbour's queue, where it is a total one: then a heap finds the next bundle, else all are compared.

It is total if nothing is drawn at random, no bundle goes before others just because it is wanted, nobody counts
copies, and the protocol's priorities do not vote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from serai.opportunistic.rules import NEWEST, RANDOM, Offer, RouterRules

if TYPE_CHECKING:
    from serai.opportunistic.routing import RoutingProtocol

Place = Callable[[Offer, Any], tuple[Any, ...]]


class Descending:
    """A key of which the greatest goes first."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __lt__(self, other: Descending) -> bool:
        return bool(other.key < self.key)


def place_of(protocol: RoutingProtocol, rules: RouterRules) -> Place | None:
    """Where a bundle stands, from what is offered and the bundle's key: the lowest goes first. None: no total order."""
    worth = protocol.worth_of(rules.own)
    if worth is None or rules.order == RANDOM or rules.wanted_first or rules.copies > 0 or not rules.lists:
        return None
    if rules.order == NEWEST:
        return lambda offer, key: (*worth(offer), Descending(key))
    return lambda offer, key: (*worth(offer), key)
