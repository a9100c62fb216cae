"""How far the clock of each node is off: by contacts of which a good clock tells too.

Logs keep the times that nodes said. Where a node and somebody with a good clock both tell of their contacts, the
beginnings differ by what the node's clock is off. Contacts may come home after the events, in any order; so the answer
is no column of events: it stands in a table of its own, worked out of all contacts that came, and is joined when
somebody reads (`with_clocks`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from serai.pipeline.columns import TIME

APART_S: Final = 60.0
"""Clocks less apart are good: so much lies between the moments at which two nodes notice each other."""
_LATEST: Final = 200  # contacts of two nodes that are compared
_AGREEING: Final = 0.5  # of the contacts that both could have told
_AGREEING_IN_ALL: Final = 0.9  # where contacts do not say of which of several epochs they are

Key = tuple[str, str]  # node and epoch
Pair = tuple[str, str]
Times = NDArray[np.float64]
CLOCKS: Final = pa.schema(
    [("node", pa.string()), ("epoch", pa.string()), ("clock", pa.string()), ("offset_s", pa.float64()),
     ("contacts", pa.int64()), ("batch", pa.int64())]
)  # fmt: skip


@dataclass(frozen=True)
class Clock:
    """The clock of a node in one epoch: its time minus the right one, and on how many contacts that rests."""

    node: str
    epoch: str
    clock: str  # good, corrected or unknown
    offset_s: float | None
    contacts: int


class Views:
    """When contacts began, by who tells of them."""

    def __init__(self, contacts: pa.Table) -> None:
        """Contacts have the columns a, b, heard_by, start_s, and epoch, that of the teller, if they say it."""
        self.told: dict[Pair, dict[Key, list[float]]] = defaultdict(dict)
        self.of_node: dict[Pair, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.peers: dict[str, set[str]] = defaultdict(set)
        if "epoch" not in contacts.column_names:
            contacts = contacts.append_column("epoch", pa.nulls(len(contacts), pa.string()))
        by_teller = contacts.group_by(["a", "b", "heard_by", "epoch"], use_threads=False)
        for row in by_teller.aggregate([("start_s", "list")]).to_pylist():
            a, b, teller, epoch = (row[name] for name in ("a", "b", "heard_by", "epoch"))
            if teller in (a, b):
                self.told[_pair(a, b)].setdefault((teller, epoch or ""), []).extend(row["start_s_list"])
                self.of_node[_pair(a, b)][teller].extend(row["start_s_list"])
                self.peers[a].add(b)
                self.peers[b].add(a)

    def differences(self, node: str, epoch: str | None, others: Collection[str]) -> tuple[list[Times], int]:
        """Between what a node and each of the others tell: of each two contacts; and how many they could both tell.

        Without an epoch: all that the node tells.
        """
        found, both = [], 0
        for other in sorted(self.peers[node] & set(others)):
            pair = _pair(node, other)
            mine = self.of_node[pair].get(node) if epoch is None else self.told[pair].get((node, epoch))
            theirs = self.of_node[pair].get(other)
            if mine and theirs:
                here, there = (np.sort(np.array(each))[-_LATEST:] for each in (mine, theirs))
                found.append((here[:, None] - there[None, :]).ravel())
                both += min(len(here), len(there))
        return found, both

    def tell(self, node: str, epoch: str) -> bool:
        """Whether the node's contacts say that they are of this epoch."""
        return any((node, epoch) in self.told[_pair(node, peer)] for peer in self.peers[node])

    def apart(self, node: str, others: Collection[str]) -> float | None:
        """How many seconds a node's clock is ahead of those of others; None if nobody can say."""
        found = _offset(*self.differences(node, None, others), _AGREEING)
        return None if found is None else found[0]


def _pair(one: str, other: str) -> Pair:
    return (min(one, other), max(one, other))


def clocks_of(
    views: Views, keys: Collection[Key], carriers: Collection[str], named: Collection[str] = ()
) -> list[Clock]:
    """The clock of each node and epoch; good are those `named`, or else carriers that agree with each other."""
    good = set(named) or {each for each in carriers if abs(views.apart(each, carriers) or 0.0) <= APART_S}
    epochs = Counter(node for node, _ in keys)
    return [_clock_of(views, *key, good, epochs[key[0]] == 1) for key in sorted(keys)]


def _clock_of(views: Views, node: str, epoch: str, good: Collection[str], only_epoch: bool) -> Clock:
    if node in good:
        return Clock(node, epoch, "good", 0.0, 0)
    if views.tell(node, epoch):
        found = _offset(*views.differences(node, epoch, good), _AGREEING)
    else:  # contacts that do not say of which epoch they are
        found = _offset(*views.differences(node, "", good), _AGREEING if only_epoch else _AGREEING_IN_ALL)
    if found is None:
        return Clock(node, epoch, "unknown", None, 0)
    return Clock(node, epoch, "good" if abs(found[0]) <= APART_S else "corrected", *found)


def _offset(differences: list[Times], both: int, share: float) -> tuple[float, int] | None:
    """The difference that most contacts have in common, and how many have; None if too few, or others as often.

    Of contacts that only one of the two tells, any may be missing: so each is compared with each. A clock that may be
    right is taken for right.
    """
    if not differences:
        return None
    apart = np.sort(np.concatenate(differences))
    count = np.searchsorted(apart, apart + APART_S, side="right") - np.arange(len(apart))
    best = np.flatnonzero(count == count.max())
    middles = np.array([np.median(apart[place : place + count[place]]) for place in best])
    if min(int(count.max()), both) < share * both:
        return None
    nearest = int(np.argmin(np.abs(middles)))
    if np.ptp(middles) > APART_S and abs(middles[nearest]) > APART_S:
        return None
    return round(float(middles[nearest]), 3), min(int(count.max()), both)


def clocks_table(clocks: Iterable[Clock], batch: int) -> pa.Table:
    """Clocks as their table has them."""
    return pa.Table.from_pylist([asdict(clock) | {"batch": batch} for clock in clocks], CLOCKS)


def with_clocks(events: pa.Table, clocks: pa.Table) -> pa.Table:
    """Events with the columns `clock`, and `corrected`: the time without what the clock was off; null if not known.

    The time that the node said stays as it is.
    """
    names = [_joined(table) for table in (events, clocks)]
    place = pc.index_in(names[0], names[1])
    clock = pc.fill_null(clocks["clock"].combine_chunks().take(place), "unknown")
    offset_us = pc.multiply(clocks["offset_s"].combine_chunks().take(place), 1e6)
    shift = pc.if_else(pc.equal(clock, "corrected"), pc.round(offset_us).cast(pa.int64()), pa.scalar(0))
    time_us = events["time"].combine_chunks().cast(pa.int64())
    known = pc.if_else(pc.equal(clock, "unknown"), pa.scalar(None, pa.int64()), pc.subtract(time_us, shift))
    return events.append_column("clock", clock).append_column("corrected", known.cast(TIME))


def _joined(table: pa.Table) -> pa.Array:
    node, epoch = (table[name].combine_chunks().cast(pa.string()).fill_null("") for name in ("node", "epoch"))
    return pc.binary_join_element_wise(node, epoch, "\0")
