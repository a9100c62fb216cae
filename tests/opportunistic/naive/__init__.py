"""Opportunistic networks, the obvious way: one object per node, one loop per sentence of docs/opportunistic/dpsp.md.

Written from the texts: Vahdat and Becker 2000 (flooding), Spyropoulos, Psounis and Raghavendra 2005 (spray), RFC 6693
(PRoPHET), Greifenberg and Kutscher 2008 (DPSP), Jain, Fall and Patra 2004 (first contact). Nothing here is shared with
`serai`, not even the mix behind random orders, so that two readings of the same page meet in test_twins.py.
"""

from typing import Any

from tests.opportunistic.naive.network import Network, Result
from tests.opportunistic.naive.node import Node

__all__ = ["Network", "Result", "run_slowly"]


def run_slowly(world: Any, medium: Any, settings: Any) -> Result:
    """A run of the obvious simulator with the obvious nodes."""
    chosen = {name: getattr(settings, name) for name in type(settings).model_fields}
    return Network(world, medium, chosen, lambda node, carries: Node(node, chosen, medium, carries)).run()
