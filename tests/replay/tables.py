"""What a run's tables tell of a moment, worked out without any code of the replay: rows are counted, nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import serai
from serai.log.run import SimulatedRun


def rows_of(run: SimulatedRun, table: str) -> list[dict[str, Any]]:
    return run.tables[table].to_pylist()


class Told:
    """The copies that lie at each node at a time."""

    def __init__(self, run: SimulatedRun) -> None:
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
        self.size = np.ones(len(events)) if self.field else events.size_bytes.to_numpy()
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
