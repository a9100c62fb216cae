"""What a run's tables tell of a moment, worked out without any code of the replay: rows are counted, nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import serai
from serai.field.metrics import aggregate_full_log
from serai.log.run import SimulatedRun


def rows_of(run: SimulatedRun, table: str) -> list[dict[str, Any]]:
    return run.tables[table].to_pylist()


class Told:
    """The copies that lie at each node at a time, and what each has spent by then."""

    def __init__(self, run: SimulatedRun) -> None:
        self.run = run
        self.field = isinstance(run, serai.FieldRun)
        self.nodes = len(run.tables["nodes"])
        events, transfers, drops = (run.tables[name].to_pandas() for name in ("events", "transfers", "drops"))
        born = np.ceil(events.time_s) if self.field else events.time_s
        at_birth = (drops.node == events.node[drops.event].values) & (drops.time_s == born[drops.event].values)
        refused = drops.event[at_birth & ~drops.held & (drops.addressee < 0)]
        lived = ~events.event.isin(refused) & (born < run.scenario.duration_s)
        if self.field:  # sensors that are dead have no events any more
            died_s = run.tables["sensors"].to_pandas().died_s
            lived &= ~(born > died_s[events.node].to_numpy())
            for nap in rows_of(run, "naps") if "naps" in run.tables else ():
                lived &= ~((events.node == nap["node"]) & (born > nap["since_s"]) & (born <= nap["until_s"]))
        self.size = np.ones(len(events)) if self.field else events.size_bytes.to_numpy()
        self.begun = transfers[["end_s", "sender"]]
        self.changes = [
            (born[lived], events.node[lived], events.event[lived], 1),
            *((transfers.end_s[on], transfers[end][on], transfers.event[on], change)
              for end, on, change in (("receiver", transfers.stored, 1), ("sender", transfers.moved, -1))),
            (drops.time_s[drops.held], drops.node[drops.held], drops.event[drops.held], -1),
        ]  # fmt: skip

    def held(self, t: float) -> NDArray[np.int64]:
        """How many copies of each event lie at each node: [node, event]."""
        copies = np.zeros((self.nodes, len(self.size)), np.int64)
        for time_s, node, event, change in self.changes:
            on = (time_s <= t).to_numpy()
            np.add.at(copies, (node.to_numpy()[on], event.to_numpy()[on]), change)
        assert copies.min() >= 0
        return copies

    def held_at(self, node: int, t: float) -> dict[int, int]:
        """How many copies of which event lie at a node."""
        row = self.held(t)[node]
        return {int(event): int(row[event]) for event in np.flatnonzero(row)}

    def levels(self, t: float) -> list[float]:
        """Copies in each queue of a field, bytes in each store of an opportunistic network."""
        levels: list[float] = (self.held(t) @ self.size).tolist()
        return levels

    def spent(self, t: float) -> list[float]:
        """Picojoules of each sensor of a field; transfers that each node of an opportunistic network has begun."""
        if not isinstance(self.run, serai.FieldRun):
            senders = self.begun.sender[self.begun.end_s <= t]
            return np.bincount(senders, minlength=self.nodes).tolist()
        full = self.run.full
        assert full is not None
        so_far = full.transfers.time_s <= t
        part = full._replace(transfers=type(full.transfers)(*(column[so_far] for column in full.transfers)))
        joules = aggregate_full_log(part, self.run).event_pj.tolist()
        return [*joules, *[0] * (self.nodes - len(joules))]


class ToldOverlay:
    """Queries stored at each node of an overlay, and messages that it has sent, after so many hops.

    Queries go out together; when the last has come to rest, all events do, and each notification begins where its event
    has met the query.
    """

    def __init__(self, run: SimulatedRun) -> None:
        self.nodes = len(run.tables["nodes"])
        queries = rows_of(run, "query_messages")
        self.published = max(row["hops"] for row in queries) + 1
        self.stored = [(row["hops"], row["node"]) for row in queries if row["stays"]]
        self.sent = [(row["hops"], queries[row["back"]]["node"]) for row in queries if row["back"] >= 0]
        self.ways: dict[int, list[tuple[int, int, int]]] = {}
        hops = iter([*rows_of(run, "transfers"), None])
        row = next(hops)
        for arrival in rows_of(run, "arrivals"):  # by event and tree, as the hops are
            step = 0
            for _ in range(arrival["hops"]):
                step += 1
                self._note(row, step)
                row = next(hops)
            while row and row["event"] == arrival["event"] and row["kind"] == "notification":
                step = arrival["hops"] + 1 if row["sender"] == arrival["node"] else step + 1
                self._note(row, step)
                row = next(hops)
        assert row is None

    def _note(self, row: Any, step: int) -> None:
        at = self.published + step
        self.sent.append((at, row["sender"]))
        self.ways.setdefault(row["event"], []).append((at, row["sender"], row["receiver"]))

    def levels(self, t: float) -> list[float]:
        return np.bincount([node for at, node in self.stored if at <= t], minlength=self.nodes).tolist()

    def spent(self, t: float) -> list[float]:
        return np.bincount([node for at, node in self.sent if at <= t], minlength=self.nodes).tolist()
