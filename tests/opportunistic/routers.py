"""The product's own `Router` objects in the obvious simulator, as live nodes would be driven."""

from typing import Any

from serai.opportunistic.engine.answers import protocol_of
from serai.opportunistic.engine.state import Medium
from serai.opportunistic.router import Router
from serai.opportunistic.world import ContactWorld
from tests.opportunistic.naive import Network, Result


def run_routers(world: ContactWorld, medium: Medium, settings: Any) -> Result:
    """A run of routers as objects."""

    def router_of(node: int, carries: bool) -> Router:
        return Router(
            node,
            protocol_of(settings),
            protocol_of(settings).rules_of(settings),
            capacity_bytes=medium.capacity_bytes,
            when_full=medium.when_full,
            keep_own=medium.keep_own,
            carries=carries,
            key=medium.key,
        )

    return Network(
        world, medium, {name: getattr(settings, name) for name in type(settings).model_fields}, router_of
    ).run()
