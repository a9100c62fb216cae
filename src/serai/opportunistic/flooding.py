"""Flooding (epidemic routing): everybody gets a copy of everything.

The baseline of the DPSP text. Vahdat and Becker, "Epidemic routing for partially-connected ad hoc networks" (2000),
where the list of seen bundles is called summary vector. There is no rule but the shared ones
(`serai.opportunistic.rules`): whatever the neighbour has not seen is offered.
"""

from typing import Literal

from serai.opportunistic.rules import FLOODING, RouterSettings, Rules, shared_rules

PAPER = "Vahdat and Becker 2000; baseline of DPSP"


class Settings(RouterSettings):
    """Flooding has only what all routers have."""

    name: Literal["flooding"] = "flooding"


def rules_of(settings: Settings) -> Rules:
    """The settings as the kernels read them."""
    return shared_rules(FLOODING, settings)
