"""Direct delivery: the source hands a bundle to those who have subscribed to it, and to nobody else.

The floor: what contacts alone give. A subscriber that was handed a bundle hands it on to other subscribers, unless
`consume` is set.
"""

from typing import Any, Literal

from serai.core.rules import rule
from serai.opportunistic.routing import RoutingProtocol
from serai.opportunistic.rules import Offer
from serai.opportunistic.settings import RouterSettings


class Settings(RouterSettings):
    """Direct delivery has only what all routers have."""

    name: Literal["direct"] = "direct"


@rule
def offers(own: Any, offer: Offer) -> bool:
    """Whether a bundle is offered to a neighbour: to those who want it."""
    return offer.wanted


PROTOCOL = RoutingProtocol(
    title="direct delivery",
    paper="Spyropoulos et al. 2004 (single-copy routing), direct transmission",
    settings=Settings,
    offers=offers,
)
