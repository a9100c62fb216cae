"""Spray and wait: a bundle starts with L copies to give away; who has one left waits for a subscriber.

Spyropoulos, Psounis, Raghavendra, "Spray and wait" (2005): source spray and binary spray. The paper is about one
destination. Here a bundle may have many: a holder in the wait phase hands the bundle to every subscriber it meets and
keeps its own; each of them has one copy, so it waits for further subscribers, too.
"""

from typing import Literal

from pydantic import Field as setting

from serai.core.rules import rule
from serai.opportunistic.rules import SPRAY, RouterSettings, Rules, shared_rules

PAPER = "Spyropoulos, Psounis and Raghavendra 2005"


class Settings(RouterSettings):
    """How many copies, and how they are split."""

    name: Literal["spray"] = "spray"
    copies: int = setting(
        8, ge=1, le=30_000, description="Copies of a bundle that its source may give away, its own included."
    )
    spray: Literal["binary", "source"] = setting(
        "binary", description="A holder of several copies gives half of them, or the source gives single ones."
    )


def rules_of(settings: Settings) -> Rules:
    """The settings as the kernels read them."""
    return shared_rules(SPRAY, settings)._replace(copies=settings.copies, binary=settings.spray == "binary")


@rule
def offers(copies: int, wanted: bool) -> bool:
    """Whether a holder of so many copies offers the bundle: to anybody while spraying, to subscribers while waiting."""
    return copies > 1 or wanted


@rule
def given(rules: Rules, copies: int) -> int:
    """How many of its copies a holder gives away ; one that waits gives a subscriber one that it does not miss."""
    return copies // 2 if rules.binary and copies > 1 else 1


@rule
def left(copies: int, gave: int) -> int:
    """How many copies the giver has left; its own is never given away."""
    return max(copies - gave, 1)
