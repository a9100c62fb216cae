"""Flooding (epidemic routing): everybody gets a copy of everything.

The baseline of the DPSP text. Vahdat and Becker, "Epidemic routing for partially-connected ad hoc networks" (2000),
where the list of seen bundles is called summary vector. Whatever the neighbour has not seen is offered: there are no
rules but the shared ones.
"""

from typing import Literal

from serai.opportunistic.routing import RoutingProtocol
from serai.opportunistic.settings import RouterSettings


class Settings(RouterSettings):
    """Flooding has only what all routers have."""

    name: Literal["flooding"] = "flooding"


PROTOCOL = RoutingProtocol(
    title="epidemic routing",
    paper="Vahdat and Becker 2000; baseline of DPSP",
    settings=Settings,
)
