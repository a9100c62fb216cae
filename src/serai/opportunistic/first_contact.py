"""First contact: a single copy of a bundle is handed on to whoever is met.

Jain, Fall and Patra, "Routing in a delay tolerant network" (2004), where it is the protocol that knows nothing; The ONE
has it as FirstContactRouter. Both are about one destination. Here a bundle may have many: a subscriber is handed the
bundle as in direct delivery, and the single copy goes on its way. What a subscriber was handed it hands to other
subscribers, but it is not the copy that travels. `at_subscriber` chooses otherwise.
"""

from typing import Literal, NamedTuple

from pydantic import Field as setting

from serai.core.rules import rule
from serai.opportunistic.routing import RoutingProtocol
from serai.opportunistic.rules import Offer, RouterRules, shared_rules
from serai.opportunistic.settings import RouterSettings


class Settings(RouterSettings):
    """What becomes of the copy when a subscriber is met."""

    name: Literal["first-contact"] = "first-contact"
    at_subscriber: Literal["goes-on", "ends"] = setting(
        "goes-on",
        description="A subscriber receives the bundle and the copy travels on; or the subscriber gets the copy and"
        " the sender has none left (as in The ONE, where a message has one destination).",
    )


class FirstContact(NamedTuple):
    """The settings as the rules below read them."""

    goes_on: bool


def rules_of(settings: Settings) -> RouterRules:
    """The settings as rules and kernels read them: one copy, which is counted."""
    return shared_rules(settings)._replace(copies=1, own=FirstContact(settings.at_subscriber == "goes-on"))


@rule
def offers(own: FirstContact, offer: Offer) -> bool:
    """Whether a bundle is offered: to anybody by who has the copy that travels, to subscribers by all who hold it."""
    return offer.copies > 0 or offer.wanted


@rule
def splits(own: FirstContact, offer: Offer) -> tuple[int, int]:
    """Who takes the bundle for others gets the copy. If it goes on, a subscriber gets none and the sender keeps it."""
    return (0, offer.copies) if own.goes_on and offer.wanted else (offer.copies, 0)


PROTOCOL = RoutingProtocol(
    title="first contact",
    paper="Jain, Fall and Patra 2004",
    settings=Settings,
    rules_of=rules_of,
    offers=offers,
    splits=splits,
)
