"""What the plain engine writes down, and the outcome that is made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from serai.opportunistic.engine.setup import records
from serai.opportunistic.engine.state import DELIVERY, DROP, DROPS, LISTING, TRANSFER, TRANSFERS, Medium, Outcome
from serai.opportunistic.kit.nodes import Link, Node
from serai.opportunistic.kit.router import Copy
from serai.opportunistic.world import ContactWorld


class Log:
    """Deliveries, transfers and drops in the order of happening; without a full log only their numbers."""

    def __init__(self, world: ContactWorld, medium: Medium) -> None:
        self.medium = medium
        self.deliveries: list[tuple[float, int, int, int]] = []
        self.transfers: list[tuple[Any, ...]] = []
        self.drops: list[tuple[Any, ...]] = []
        self.listings: list[tuple[Any, ...]] = []
        self.outcomes, self.reasons = Counter[str](), Counter[str]()
        self.relays = [0] * len(world.bundles.source)
        self.payload_bytes = self.control_bytes = self.wasted_bytes = self.lists = 0

    def deliver(self, now_s: float, node: Node, copy: Copy) -> None:
        """A subscriber has got a bundle, unless it had it before or is its source."""
        if not node.given >> copy.id & 1 and copy.source != node.number:
            node.given |= 1 << copy.id
            self.deliveries.append((now_s, copy.id, node.number, copy.hops))

    def drop(self, now_s: float, id: int, node: int, reason: str, held: bool) -> None:
        """A node has lost a bundle, which it held or never took in."""
        self.reasons[reason] += 1
        if self.medium.full_log:
            after = self.outcomes.total()
            self.drops.append((now_s, after, id, node, DROPS.index(reason), held))

    def transfer(
        self, link: Link, id: int, now_s: float, sent: int, outcome: str, *, stored: bool, moved: bool
    ) -> None:
        """How the transfer of a bundle went, how many bytes were sent, and who has it since."""
        self.outcomes[outcome] += 1
        self.payload_bytes += sent
        if outcome == "relayed":
            self.relays[id] += 1
        elif outcome != "unfinished":
            self.wasted_bytes += sent
        if self.medium.full_log:
            ends = (link.sender.number, link.receiver.number)
            self.transfers.append((link.start_s, now_s, sent, id, *ends, TRANSFERS.index(outcome), stored, moved))

    def listing(self, link: Link, entries: int, now_s: float, sent: int, outcome: str) -> None:
        """How the transfer of a list went, and how many bytes of it were sent."""
        self.control_bytes += sent
        self.lists += outcome == "relayed"
        if self.medium.full_log:
            ends = (link.sender.number, link.receiver.number)
            self.listings.append((link.start_s, now_s, sent, *ends, entries, TRANSFERS.index(outcome)))

    def outcome(self, nodes: Sequence[Node], contacts: int) -> Outcome:
        """What a finished run gave, as the compiled loop gives it."""
        deliveries = _rows(self.deliveries, DELIVERY)
        duration_s = self.medium.duration_s
        return Outcome(
            delivery_bundle=deliveries.bundle.copy(),
            delivery_node=deliveries.node.copy(),
            delivery_s=deliveries.time_s.copy(),
            delivery_hops=deliveries.hops.copy(),
            payload_bytes=self.payload_bytes,
            control_bytes=self.control_bytes,
            wasted_bytes=self.wasted_bytes,
            lists=self.lists,
            contacts=contacts,
            transfers={name: self.outcomes[name] for name in TRANSFERS},
            drops={name: self.reasons[name] for name in DROPS},
            relays=np.array(self.relays, np.int64),
            stored_byte_s=np.array([node.byte_s + node.used_bytes * (duration_s - node.since_s) for node in nodes]),
            peak_bytes=np.array([node.peak_bytes for node in nodes], np.int64),
            transfer_log=_rows(self.transfers, TRANSFER),
            drop_log=_rows(self.drops, DROP),
            list_log=_rows(self.listings, LISTING) if self.medium.full_log else None,
        )


def _rows(rows: Sequence[tuple[Any, ...]], dtype: np.dtype[np.void]) -> Any:
    made = records(len(rows), dtype)
    if rows:
        made[:] = np.array(rows, dtype=[(name, dtype[name]) for name in dtype.names or ()])
    return made
