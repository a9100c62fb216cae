"""Why bundles never reached who wanted them: the reasons of `serai.log.losses`, in an opportunistic network.

Towards the subscriber is what was sent to the subscriber itself: `stranded` means that the contact broke, `expired`
that the bundle's time ran out while it was sent, `full` that the subscriber had no room. They met if the subscriber was
in contact with a node in whose store a copy lay, or would have lain, had a full store not refused or evicted it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.log.losses import EXPIRED, FULL, NEVER_MET, NOT_SENT, STRANDED, Losses
from serai.opportunistic.engine.state import DROPS, TRANSFERS
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.pairs import delivered_pairs, wanted_pairs

_OF_TRANSFER: Final = {"broken": STRANDED, "unfinished": STRANDED, "late": EXPIRED, "refused": FULL}
_MOST_AT_ONCE: Final = 2_000_000  # contacts looked at

Numbers = NDArray[Any]


class Stays(NamedTuple):
    """Copies in stores, by bundle, node and time; `over_s`: until when each would lie there, had there been room."""

    bundle: Numbers
    node: Numbers
    begin_s: Numbers
    end_s: Numbers
    over_s: Numbers


def losses_of(run: OpportunisticRun) -> Losses | None:
    """Why each lost pair was lost; None without a full log."""
    if not run.full_log:
        return None
    bundles, stays = run.world.bundles, stays_of(run)
    event, subscriber = lost_pairs(run)
    found = Losses(
        event,
        subscriber,
        np.full(len(event), NEVER_MET),
        bundles.source[event].astype(np.int64),
        (bundles.created_s + bundles.lifetime_s)[event],
    )
    for pairs in _parts(run, subscriber):
        _met(run, stays, Losses._make(column[pairs] for column in found))
    _sent(run, found)
    return found


def lost_pairs(run: OpportunisticRun) -> tuple[Numbers, Numbers]:
    """Bundle and node of each pair that was wanted and not delivered before the bundle's time was over."""
    bundles, nodes = run.world.bundles, run.world.nodes
    wanted, got = wanted_pairs(run), delivered_pairs(run)
    over = bundles.created_s + bundles.lifetime_s <= run.scenario.duration_s
    pair = wanted.bundle[over[wanted.bundle]].astype(np.int64) * nodes + wanted.node[over[wanted.bundle]]
    pair = np.setdiff1d(pair, got.bundle.astype(np.int64) * nodes + got.node)
    return pair // nodes, pair % nodes


# --- Where copies lay


def stays_of(run: OpportunisticRun) -> Stays:
    """When copies lay where, as the full log tells."""
    bundles, nodes = run.world.bundles, np.int64(run.world.nodes)  # keys need 64 bits
    rows, drops = run.outcome.transfer_log, run.outcome.drop_log
    came, went, left = rows[rows.stored], rows[rows.moved], drops[drops.held]
    refused = _refused_at_birth(run)
    born = np.flatnonzero(~refused)
    begin_s = np.concatenate([bundles.created_s[born], came.end_s])
    begin = np.concatenate([born * nodes + bundles.source[born], came.bundle * nodes + came.receiver])
    end_s = np.concatenate([went.end_s, left.time_s])
    end = np.concatenate([went.bundle * nodes + went.sender, left.bundle * nodes + left.node])
    driven_out = np.append(np.zeros(len(went), np.bool_), left.reason == DROPS.index("evicted"))
    first, last = np.lexsort((begin_s, begin)), np.lexsort((end_s, end))
    begin, begin_s, end, end_s, driven_out = begin[first], begin_s[first], end[last], end_s[last], driven_out[last]
    # The n-th copy that came is the n-th that left; what never leaves stays to the end.
    place = np.searchsorted(end, begin) + np.arange(len(begin)) - np.searchsorted(begin, begin)
    known = place < np.searchsorted(end, begin, side="right")
    until_s = np.full(len(begin), float(run.scenario.duration_s))
    until_s[known] = end_s[place[known]]
    over_s = until_s.copy()
    early = np.flatnonzero(known)[driven_out[place[known]]]
    over_s[early] = (bundles.created_s + bundles.lifetime_s)[begin[early] // nodes]
    never = np.flatnonzero(refused)
    columns = (
        np.append(begin // nodes, never),
        np.append(begin % nodes, bundles.source[never]),
        np.append(begin_s, bundles.created_s[never]),
        np.append(until_s, bundles.created_s[never]),
        np.append(over_s, (bundles.created_s + bundles.lifetime_s)[never]),
    )
    order = np.lexsort((columns[2], columns[1], columns[0]))
    return Stays._make(column[order] for column in columns)


def _refused_at_birth(run: OpportunisticRun) -> NDArray[np.bool_]:
    """Which bundles were born into a store without room."""
    bundles, drops = run.world.bundles, run.outcome.drop_log
    refused = np.zeros(len(bundles.source), np.bool_)
    at_source = ~drops.held & (drops.node == bundles.source[drops.bundle])
    refused[drops.bundle[at_source & (drops.time_s == bundles.created_s[drops.bundle])]] = True
    return refused


# --- Who met, and who was sent something


def _parts(run: OpportunisticRun, subscriber: Numbers) -> Iterator[slice]:
    """The pairs in parts, each with about as many contacts as may be looked at together."""
    contacts = np.bincount(np.concatenate([run.world.contacts.a, run.world.contacts.b]), minlength=run.world.nodes)
    part = np.cumsum(contacts[subscriber]) // _MOST_AT_ONCE
    edges = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(subscriber)]
    return (slice(first, end) for first, end in pairwise(edges))


def _met(run: OpportunisticRun, stays: Stays, found: Losses) -> None:
    """Pairs whose subscriber met a node that had the bundle, or that had had no room for it: the last time."""
    nodes, contacts = np.int64(run.world.nodes), run.world.contacts
    who, other = np.concatenate([contacts.a, contacts.b]), np.concatenate([contacts.b, contacts.a])
    up_s, down_s = np.tile(contacts.up_s, 2), np.tile(contacts.down_s, 2)
    by_who = np.argsort(who, kind="stable")
    pair, place = _ranges(who[by_who], found.subscriber)
    contact = by_who[place]
    which, stay = _ranges(stays.bundle * nodes + stays.node, found.event[pair] * nodes + other[contact])
    pair, contact = pair[which], contact[which]
    begin_s = np.maximum(up_s[contact], stays.begin_s[stay])
    for why, end_s in ((FULL, stays.over_s[stay]), (NOT_SENT, stays.end_s[stay])):  # what is told of last holds
        parted_s = np.minimum(down_s[contact], end_s)
        met = np.flatnonzero(begin_s < parted_s)
        met = met[np.argsort(parted_s[met], kind="stable")]
        found.why[pair[met]] = why
        found.node[pair[met]], found.time_s[pair[met]] = other[contact[met]], parted_s[met]


def _ranges(ascending: Numbers, wanted: Numbers) -> tuple[Numbers, Numbers]:
    """For each wanted number the places where it stands: which of the wanted, and the place."""
    first, end = (np.searchsorted(ascending, wanted, side) for side in ("left", "right"))
    which = np.repeat(np.arange(len(wanted)), end - first)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(end - first) - (end - first), end - first) + first[which]


def _sent(run: OpportunisticRun, found: Losses) -> None:
    """Pairs whose subscriber was sent the bundle and did not get it: the last time."""
    rows, nodes = run.outcome.transfer_log, np.int64(run.world.nodes)
    reason = np.array([_OF_TRANSFER.get(name, -1) for name in TRANSFERS])[rows.outcome]
    failed = np.flatnonzero(reason >= 0)
    key, pair = rows.bundle[failed] * nodes + rows.receiver[failed], found.event * nodes + found.subscriber
    order = np.argsort(key, kind="stable")  # rows stand in the order in which they ended
    place = np.searchsorted(key[order], pair, side="right") - 1
    those = np.flatnonzero(place >= 0)
    those = those[key[order][place[those]] == pair[those]]
    last = failed[order][place[those]]
    found.why[those], found.node[those], found.time_s[those] = reason[last], rows.sender[last], rows.end_s[last]
