"""The pools of SERAI: copies, want maps, bags, loads and sessions, grown between slots, each half as large again."""

from typing import Any, NamedTuple

import numpy as np

from serai.core.jit import step
from serai.field.engine.setup import grown, table_size
from serai.field.engine.state import NONE, Field, Limits
from serai.field.serai_parts.sessions_table import place_of_session
from serai.field.serai_parts.state import FREE, Serai


class TooLittleRoomError(Exception):
    """A slot needed more than its pools had to spare: the run is to begin again with more."""


class Room(NamedTuple):
    """How many records each pool has to spare at the start of a slot, at least."""

    copies: int
    maps: int
    carried: int
    loads: int

    def doubled(self) -> "Room":
        """Twice as many of each."""
        return Room(*(2 * count for count in self))


def usual_room(limits: Limits) -> Room:
    """More than slots usually need; nobody can be given more in one than a budget allows."""
    given = limits.most_received
    return Room(copies=4096 + limits.most_born + given, maps=1024 + given, carried=given, loads=given)


@step
def is_short(net: Serai) -> bool:
    """Whether some pool has less to spare than a slot is to begin with."""
    tally = net.tally[0]
    return bool(
        tally.free_copies < tally.room_copies
        or tally.free_maps < tally.room_maps
        or tally.free_carried < tally.room_carried
        or tally.free_loads < tally.room_loads
        or tally.sessions + net.rules.in_reach * net.rules.subscribers > len(net.sessions)
        or tally.assigned + tally.room_copies > len(net.assigned)
    )


@step
def place_sessions(net: Serai) -> None:
    """Enter all sessions into a table that is new."""
    if net.tally[0].unplaced:
        for session in range(net.tally[0].sessions):
            at = net.sessions[session]
            net.session_table[place_of_session(net, at.subscriber, at.community)] = session
        net.tally[0].unplaced = False


def with_room(net: Serai, field: Field, room: Room) -> Serai:
    """The state with a field that may have grown, and with that much room in every pool."""
    net = with_sessions(net._replace(field=field))
    tally, groups = net.tally[0], len(field.communities)
    for name, least in room._asdict().items():
        pool, free = getattr(net, name), int(tally[f"free_{name}"])
        tally[f"room_{name}"] = least
        if free < least:
            net = with_larger(net, name, len(pool) + least - free)
    return net._replace(
        assigned=grown(net.assigned, int(tally.assigned) + room.copies),
        groups=grown_groups(net, groups),
        subscribed=grown(net.subscribed, groups),
    )


def grown_groups(net: Serai, least: int) -> Any:
    """Records for that many communities."""
    groups = grown(net.groups, least)
    groups.sessions[len(net.groups) :] = NONE
    return groups


def with_larger(net: Serai, name: str, least: int) -> Serai:
    """The state with a pool of at least so many records; the new ones are the first to be taken."""
    tally, old = net.tally[0], len(getattr(net, name))
    beside = {"copies": ("wanted", "settled", "fresh"), "maps": ("next_map",), "carried": ("served",)}.get(name, ())
    size = max(least, old + old // 2)
    net = net._replace(**{one: grown(getattr(net, one), size) for one in (name, *beside)})
    chain = net.next_map if name == "maps" else getattr(net, name).next
    chain[old:] = np.arange(old + 1, size + 1)
    chain[size - 1] = tally[name]
    tally[name] = old
    tally[f"free_{name}"] += size - old
    if name == "copies":
        net.copies.kind[old:] = FREE
    return net


def with_sessions(net: Serai) -> Serai:
    """The state with room for the sessions of one more slot, and for those of parts of communities."""
    tally, field = net.tally[0], net.field
    least = int(tally.sessions) + net.rules.in_reach * net.rules.subscribers
    if field.tally[0].unburied:
        dying = field.sensors[field.exhausted[: field.tally[0].exhausted]]
        parts = (dying.end_edge - dying.first_edge).astype(np.int64)
        least += int((parts * net.groups.met[dying.community]).sum())
    if least > len(net.sessions) or not len(net.session_table):
        sessions = grown(net.sessions, max(least, 1))
        tally.unplaced = True
        net = net._replace(sessions=sessions, session_table=np.full(table_size(len(sessions)), NONE, np.int32))
    return net
