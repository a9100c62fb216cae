"""What CED and CET leave to be set: one name for each point that the papers leave open."""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict
from pydantic import Field as setting


class CommunitySettings(BaseModel):
    """What CED and CET share: the queue's limit, and one name for each point that the papers leave open."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    alpha: int = setting(20, ge=0, description="A stored copy is dropped once it has been sent more times than this.")
    resend: Literal["once", "each-contact"] = setting(
        "once", description="A source sends an event towards a subscriber only once, or again at each new contact."
    )
    zone: Literal["path", "announced", "pruned", "in-range"] = setting(
        "path",
        description="The set Z: sensors along the rest of the leg, redrawn at each new cell; along the leg as"
        " announced; the same without those the subscriber has left behind and the routes to them; or only those in"
        " range now.",
    )
    relays: Literal["addressed", "open"] = setting(
        "addressed",
        description="A relayed copy is for one subscriber only; or, once that one has left, for another who is there.",
    )
    stranded: Literal["deleted", "kept"] = setting(
        "deleted", description="Relayed copies whose subscriber has left are deleted, or kept until it comes back."
    )
    hops: Literal["many", "one"] = setting(
        "many", description="A relayed copy may cross several hops in one second, or only one."
    )
    match: Literal["subscriber", "sensor"] = setting(
        "subscriber", description="Events are matched by the subscriber on receipt, or before they are sent."
    )
    floods: Literal["whole", "pruned"] = setting(
        "whole",
        description="In a flood every sensor transmits; or only those that reach new ones do, and layers are worked"
        " out from a map.",
    )
    silent_while_pausing: bool = setting(
        False, description="A pausing subscriber is silent: no Hello, no session, and nothing is sent towards it."
    )


class CollectionRules(NamedTuple):
    """The settings as the kernels read them."""

    alpha: int
    once: bool
    zone_moves: bool
    zone_pruned: bool
    zone_in_range: bool
    open_relays: bool
    keep_stranded: bool
    one_hop: bool
    match_at_sensor: bool
    silent_while_pausing: bool
    returns: bool


def collection_rules(settings: CommunitySettings, returns: bool = False) -> CollectionRules:
    """The settings as the kernels read them; `returns`: communities have heads, subscribers leave events behind and
    may only carry."""
    return CollectionRules(
        alpha=settings.alpha,
        once=settings.resend == "once",
        zone_moves=settings.zone in ("path", "in-range"),
        zone_pruned=settings.zone == "pruned",
        zone_in_range=settings.zone == "in-range",
        open_relays=settings.relays == "open",
        keep_stranded=settings.stranded == "kept",
        one_hop=settings.hops == "one",
        match_at_sensor=settings.match == "sensor",
        silent_while_pausing=settings.silent_while_pausing,
        returns=returns,
    )
