"""Protocols of the user's for opportunistic networks: classes derived from `Router`, run by the plain engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from serai.opportunistic.kit.router import Router
from serai.opportunistic.rules import shared_rules
from serai.opportunistic.settings import RouterSettings
from serai.own.loading import Family

if TYPE_CHECKING:
    from serai.opportunistic.engine.state import Medium
    from serai.opportunistic.kit.engine import Network
    from serai.opportunistic.world import ContactWorld


def _engine(
    router: type[Router], chosen: dict[str, Any], world: ContactWorld, medium: Medium, settings: RouterSettings
) -> Network:
    from serai.opportunistic.kit.engine import Network

    return Network(world, medium, router, chosen, shared_rules(settings, lists=router.lists or None))


ROUTERS = Family(Router, "serai.opportunistic.Router", RouterSettings, _engine)
