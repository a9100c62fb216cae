"""Spray and wait: a bundle starts with L copies to give away; who has one left waits for a subscriber.

Spyropoulos, Psounis, Raghavendra, "Spray and wait" (2005): source spray and binary spray. The paper is about one
destination. Here a bundle may have many: a holder in the wait phase hands the bundle to every subscriber it meets and
keeps its own; each of them has one copy, so it waits for further subscribers, too.
"""

from typing import Literal, NamedTuple

from pydantic import Field as setting

from serai.core.rules import rule
from serai.opportunistic.routing import RoutingProtocol
from serai.opportunistic.rules import Offer, RouterRules, shared_rules
from serai.opportunistic.settings import RouterSettings


class Settings(RouterSettings):
    """How many copies, and how they are split."""

    name: Literal["spray"] = "spray"
    copies: int = setting(
        8, ge=1, le=30_000, description="Copies of a bundle that its source may give away, its own included."
    )
    spray: Literal["binary", "source"] = setting(
        "binary",
        description="A holder of several copies hands over half of them, or only the source hands over single ones.",
    )


class Spray(NamedTuple):
    """The settings as the rules below read them."""

    binary: bool


def rules_of(settings: Settings) -> RouterRules:
    """The settings as rules and kernels read them."""
    return shared_rules(settings)._replace(copies=settings.copies, own=Spray(settings.spray == "binary"))


@rule
def offers(own: Spray, offer: Offer) -> bool:
    """Whether a holder of so many copies offers the bundle: to anybody while spraying, to subscribers while waiting."""
    return offer.copies > 1 or offer.wanted


@rule
def splits(own: Spray, offer: Offer) -> tuple[int, int]:
    """How many copies a holder gives, and how many it has left: its own is never given away.

    One that waits gives a subscriber one that it does not miss.
    """
    given = offer.copies // 2 if own.binary and offer.copies > 1 else 1
    return given, max(offer.copies - given, 1)


PROTOCOL = RoutingProtocol(
    title="spray and wait",
    paper="Spyropoulos, Psounis and Raghavendra 2005",
    settings=Settings,
    rules_of=rules_of,
    offers=offers,
    splits=splits,
)
