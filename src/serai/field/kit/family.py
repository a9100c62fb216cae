"""Protocols of the user's for fields: classes derived from `Sensor`, run by the plain engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from serai.field.kit.sensor import Sensor, Visitor
from serai.field.kit.settings import OwnSettings
from serai.own.loading import Engine, Family

if TYPE_CHECKING:
    from serai.field.engine.state import Limits
    from serai.field.world import World


def _engine(
    sensor: type[Sensor], chosen: dict[str, Any], world: World, limits: Limits, settings: OwnSettings
) -> Engine:
    from serai.field.kit.engine import Network

    return Network(sensor, chosen, world, limits, settings)


SENSORS = Family(Sensor, "serai.field.Sensor", OwnSettings, _engine, (("visitor", Visitor),))
