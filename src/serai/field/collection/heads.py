"""CET 3.1: the head of a community, which says where returned events are stored."""

from serai.core.jit import step
from serai.field.engine.control import flood
from serai.field.engine.state import ELECTION, NONE, Field


@step
def elect(field: Field, community: int) -> None:
    """The sensor with most energy becomes head (ties: the lower number); everybody speaks twice."""
    group = field.communities[community]
    best, most = NONE, 0
    for i in range(group.start, group.start + group.sensors):
        left = field.sensors[field.members[i]].left_pj
        if best == NONE or left > most:
            best, most = field.members[i], left
    group.head = best
    flood(field, community, ELECTION)
    flood(field, community, ELECTION)
