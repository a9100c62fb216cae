"""Direct delivery: the source hands a bundle to those who have subscribed to it, and to nobody else.

The floor: what contacts alone give. A subscriber that was handed a bundle hands it on to other subscribers, unless
`consume` is set.
"""

from typing import Literal

from serai.core.rules import rule
from serai.opportunistic.rules import DIRECT, RouterSettings, Rules, shared_rules

PAPER = "Spyropoulos et al. 2004 (single-copy routing), direct transmission"


class Settings(RouterSettings):
    """Direct delivery has only what all routers have."""

    name: Literal["direct"] = "direct"


def rules_of(settings: Settings) -> Rules:
    """The settings as the kernels read them."""
    return shared_rules(DIRECT, settings)


@rule
def offers(wanted: bool) -> bool:
    """Whether a bundle is offered to a neighbour."""
    return wanted
