"""PRoPHET: bundles go to neighbours that are more likely to meet a subscriber.

Lindgren, Doria, Davies, Grasic, RFC 6693, section 2.1: delivery predictabilities, raised by encounters, aged with time,
passed on by transitivity. The RFC has nodes as destinations. Here a channel is a destination, too: at its subscribers
its predictability is 1, and a node that meets one of them has met the channel. With one subscriber a channel, as for
unicast messages, both are the same.
"""

from typing import Literal

from pydantic import Field as setting

from serai.core.rules import rule
from serai.core.units import Seconds
from serai.opportunistic.rules import PROPHET, RouterSettings, Rules, shared_rules

PAPER = "Lindgren et al., RFC 6693"
HERE = 1.0  # the predictability of a channel at its subscriber


class Settings(RouterSettings):
    """The parameters of the RFC, section 3.3."""

    name: Literal["prophet"] = "prophet"
    encounter: float = setting(0.7, gt=0, lt=1, description="P_encounter: how much a contact raises predictability.")
    transitivity: float = setting(0.9, ge=0, le=1, description="Beta: how much of a neighbour's predictability counts.")
    aging: float = setting(0.999, gt=0, le=1, description="Gamma: what is left of a predictability after `aging_unit`.")
    aging_unit_s: Seconds = setting(30.0, gt=0, alias="aging_unit", description="The time unit of `aging`.")


def rules_of(settings: Settings) -> Rules:
    """The settings as the kernels read them. Predictabilities are always exchanged, so there are always lists."""
    return shared_rules(PROPHET, settings, lists=True)._replace(
        encounter=settings.encounter,
        transitivity=settings.transitivity,
        aging=settings.aging,
        aging_unit_s=settings.aging_unit_s,
    )


@rule
def aging_factor(rules: Rules, elapsed_s: float) -> float:
    """What is left of every predictability after a time (RFC 6693 2.1.2, equation 2)."""
    factor: float = rules.aging ** (elapsed_s / rules.aging_unit_s)
    return factor


@rule
def after_encounter(rules: Rules, predictability: float) -> float:
    """The predictability of somebody who was just met (equation 1, without its delta)."""
    return predictability + (1.0 - predictability) * rules.encounter


@rule
def by_way_of(rules: Rules, predictability: float, of_neighbour: float, neighbours: float) -> float:
    """The predictability of somebody whom a neighbour meets: `of_neighbour` to get there, then `neighbours` (3)."""
    return max(predictability, of_neighbour * neighbours * rules.transitivity)


@rule
def offers(wanted: bool, neighbours: float, mine: float) -> bool:
    """Whether a bundle is offered: the neighbour wants it, or is more likely to meet who does (GRTR, 3.6)."""
    return wanted or neighbours > mine
