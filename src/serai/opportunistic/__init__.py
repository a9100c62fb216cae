"""Nodes that meet now and then and carry bundles for each other: DPSP and other routers.

`Router`, `Copy`, `Peer` and `setting` are for protocols of your own: docs/opportunistic/own.md.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serai.opportunistic.kit.router import Copy as Copy
    from serai.opportunistic.kit.router import Peer as Peer
    from serai.opportunistic.kit.router import Router as Router
    from serai.own.declaring import setting as setting


def __getattr__(name: str) -> Any:
    if name not in ("Copy", "Peer", "Router", "setting"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from serai.opportunistic.kit import router
    from serai.own import declaring

    return getattr(declaring if name == "setting" else router, name)
