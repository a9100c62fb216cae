"""The routers of opportunistic networks: a router added is one line here and one file beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from serai.opportunistic import direct, dpsp, first_contact, flooding, prophet, prophet2, spray
from serai.opportunistic.bubble import BubbleRap
from serai.opportunistic.kit.family import ROUTERS
from serai.opportunistic.maxprop import MaxProp
from serai.opportunistic.settings import RouterSettings
from serai.opportunistic.socialcast import SocialCast
from serai.opportunistic.socioaware import SocioAware
from serai.own.loading import built_in
from serai.scenario.protocol import Protocol, registry

if TYPE_CHECKING:
    from serai.opportunistic.engine.state import Medium, Outcome
    from serai.opportunistic.world import ContactWorld

ROUTING_PROTOCOLS = (
    dpsp.PROTOCOL,
    flooding.PROTOCOL,
    direct.PROTOCOL,
    spray.PROTOCOL,
    prophet.PROTOCOL,
    prophet2.PROTOCOL,
    first_contact.PROTOCOL,
)


def simulate(world: ContactWorld, medium: Medium, settings: RouterSettings) -> Outcome:
    """Run a router over a world of contacts (`serai.opportunistic.engine`)."""
    # Only here, because the loop asks the protocols above, and because it loads numba, which a node can do without.
    from serai.opportunistic.engine import loop

    return loop.simulate(world, medium, settings)


PROTOCOLS = registry(
    *(Protocol(found.name, found.title, found.paper, found.settings, simulate) for found in ROUTING_PROTOCOLS),
    built_in(MaxProp, "maxprop", "Burgess et al. 2006", ROUTERS),
    built_in(BubbleRap, "bubble-rap", "Hui et al. 2008", ROUTERS),
    built_in(SocialCast, "socialcast", "Costa et al. 2008", ROUTERS),
    built_in(SocioAware, "socio-aware", "Yoneki et al. 2007", ROUTERS),
)
