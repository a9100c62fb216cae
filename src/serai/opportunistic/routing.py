"""What a routing protocol is: the questions that the router object and the compiled loop ask it.

A protocol is one file with a `RoutingProtocol` in it, and one line in `serai.opportunistic.protocols`. Each question
has an answer that is right for flooding; a protocol gives those in which it differs. The first argument of every answer
is the protocol's own numbers, `RouterRules.own`, which only its file knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from serai.core.rules import rule
from serai.opportunistic.router.knowledge import Knowledge
from serai.opportunistic.rules import Offer, RouterRules, shared_rules
from serai.opportunistic.wanted import WantedChannels, learn_wanted, write_wanted

if TYPE_CHECKING:
    from serai.opportunistic.engine.state import Net
    from serai.opportunistic.settings import RouterSettings


class Room(NamedTuple):
    """How many numbers the compiled loop keeps for a protocol."""

    in_list: int
    in_memory: int = 0  # of each node, from one contact to the next
    at_first: float = 0.0  # what all of memory is when a run begins


class Size(NamedTuple):
    """How large a world is."""

    nodes: int
    channels: int
    subscriptions: int


@rule
def offer_all(own: Any, offer: Offer) -> bool:
    """Whether a bundle is offered at all: any is."""
    return True


@rule
def prefer_none(own: Any, one: Offer, other: Offer) -> int:
    """Above 0 if one bundle goes before another, below 0 if after: they are all equal."""
    return 0


@rule
def keep_copies(own: Any, offer: Offer) -> tuple[int, int]:
    """How many copies go with a bundle, and how many the sender has left: nothing is counted."""
    return 0, offer.copies


@rule
def change_nothing(own: Any, net: Any, link: int) -> bool:
    """What a node makes of a neighbour whom it meets: nothing."""
    return False


@rule
def know_nothing(own: Any, net: Any, link: int, channel: int) -> tuple[float, float]:
    """What can be had for nothing about a channel: nothing."""
    return 0.0, 0.0


def worth_nothing(own: Any) -> Callable[[Offer], tuple[float, ...]] | None:
    """What sorts bundles before their age does, the lowest first: nothing. None: it is no order, see `prefers`."""
    return lambda offer: ()


def room_for_channels(size: Size) -> Room:
    """A list has a number for each channel; nothing is remembered."""
    return Room(in_list=size.channels)


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What the router object asks a protocol: all of it that a node in the field needs."""

    # the same functions for the router object and for the compiled loop
    offers: Callable[[Any, Offer], bool] = offer_all
    prefers: Callable[[Any, Offer, Offer], int] = prefer_none
    worth_of: Callable[[Any], Callable[[Offer], tuple[float, ...]] | None] = worth_nothing
    """The same order as `prefers` gives, for the router object alone: a heap needs something to sort by."""
    splits: Callable[[Any, Offer], tuple[int, int]] = keep_copies
    """Asked where copies are counted (`RouterRules.copies`). Whoever gives away its last copy keeps none: the bundle
    leaves its store when it has arrived."""

    knowledge: type[Knowledge] = WantedChannels
    """Lists: what a node tells a neighbour about itself, and what that one makes of it."""

    def __post_init__(self) -> None:
        if self.prefers is not prefer_none and self.worth_of is worth_nothing:
            object.__setattr__(self, "worth_of", lambda own: None)


@dataclass(frozen=True, kw_only=True)
class RoutingProtocol(Decisions):
    """One protocol: how it is called, its settings, and its answers."""

    title: str
    paper: str
    settings: type[RouterSettings]
    rules_of: Callable[[Any], RouterRules] = shared_rules
    """The settings as rules and kernels read them."""

    # lists, in the compiled loop
    room_for: Callable[[Size], Room] = room_for_channels
    writes: Callable[[Any, Net, int], int] = write_wanted
    learns: Callable[[Any, Net, int], None] = learn_wanted

    # the same for nothing, where a simulation may do without lists; only the compiled loop asks
    meets: Callable[[Any, Net, int], bool] = change_nothing
    """The sender of a link meets its receiver; whether that changes what either is offered."""
    looks: Callable[[Any, Net, int, int], tuple[float, float]] = know_nothing
    """What `Offer.theirs` and `Offer.mine` are at this moment."""

    @property
    def name(self) -> str:
        """How a scenario calls it."""
        return str(self.settings.model_fields["name"].default)
