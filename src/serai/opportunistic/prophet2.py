"""PRoPHETv2: who is met again soon was hardly away, so that the encounter says little.

Grasic, Davies, Lindgren and Doria, "The evolution of a DTN routing protocol - PRoPHETv2" (2011), which RFC 6693 has
taken up in section 2.1.2: P_encounter grows with the time since the last encounter, up to a typical interval, and
transitivity never adds up. Destinations, lists and kernels are those of `serai.opportunistic.prophet`.
"""

from typing import Literal

from pydantic import Field as setting

from serai.core.units import Seconds
from serai.opportunistic import prophet
from serai.opportunistic.routing import Room, RoutingProtocol, Size
from serai.opportunistic.rules import RouterRules


class Settings(prophet.Parameters):
    """The parameters of the RFC, section 3.3."""

    name: Literal["prophet2"] = "prophet2"
    encounter_max: float = setting(
        0.7, gt=0, lt=1, description="P_encounter_max: how much a contact raises predictability at most."
    )
    interval_s: Seconds = setting(
        1800.0,
        gt=0,
        alias="interval",
        description="I_typ: an encounter counts in full if the last one was this long ago.",
    )
    encounter_first: float = setting(
        0.5, gt=0, lt=1, description="P_encounter_first: the predictability after the first encounter."
    )
    first_threshold: float = setting(
        0.1,
        ge=0,
        le=1,
        description="P_first_threshold: below this predictability, an encounter counts as a first one again.",
    )
    forward: Literal["greater", "at-least"] = setting(
        "greater",
        description="A bundle is offered to a node that is likelier to meet a subscriber (GRTR), or at least as"
        " likely (as in The ONE), so that it floods where no node knows anything.",
    )


def rules_of(settings: Settings) -> RouterRules:
    """The settings as rules and kernels read them."""
    own = prophet.Prophet(
        settings.encounter_max,
        settings.transitivity,
        settings.aging,
        settings.aging_unit_s,
        settings.variant == "the-one",
        interval_s=settings.interval_s,
        first=settings.encounter_first,
        first_below=settings.first_threshold,
        at_least=settings.forward == "at-least",
    )
    return prophet.with_own(settings, own)


def room_for(size: Size) -> Room:
    """How many numbers there are: besides what the first version needs, when each was last met."""
    room, more = prophet.room_for(size), size.nodes + size.channels
    return Room(room.in_list, room.in_memory + more)


PROTOCOL = RoutingProtocol(
    title="PRoPHETv2",
    paper="Grasic et al. 2011, RFC 6693",
    settings=Settings,
    rules_of=rules_of,
    offers=prophet.offers,
    prefers=prophet.prefers,
    worth_of=prophet.worth_of,
    knowledge=prophet.Predictabilities,
    room_for=room_for,
    writes=prophet.writes,
    learns=prophet.learns,
    meets=prophet.meets,
    looks=prophet.looks,
)
