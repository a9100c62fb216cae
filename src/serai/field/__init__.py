"""A field of sensors in communities, and subscribers who walk by: DG, CED and CET."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serai.field.kit.sensor import Copy as Copy
    from serai.field.kit.sensor import Peer as Peer
    from serai.field.kit.sensor import Sensor as Sensor
    from serai.field.kit.sensor import Session as Session
    from serai.field.kit.sensor import Visitor as Visitor
    from serai.own.declaring import setting as setting


def __getattr__(name: str) -> Any:
    if name not in ("Copy", "Peer", "Sensor", "Session", "Visitor", "setting"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from serai.field.kit import sensor
    from serai.own import declaring

    return getattr(declaring if name == "setting" else sensor, name)
