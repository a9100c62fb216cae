"""A node without its clock, disk and sockets: what happens goes in, `Effects` come out.

Memory first, commit, then speak: a method changes the node's memory at once and returns rows to commit in one
transaction, then words to say. Whoever dies in between has told nobody. Whoever calls it hands the effects to
`serai.node.store`, in the order in which they were returned, and says the words when the store has committed the rows.

`now_s` is the node's time in seconds since 2000 (DTN time); it never goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from serai.node.words import Effects, Header, KnownSession, ListMessage, Message, Queue, Refusal, Subscription
from serai.opportunistic.dpsp import Settings as DpspSettings
from serai.opportunistic.rules import RouterSettings

Matches = Callable[[str, str, Callable[[], bytes]], bool]
"""Whether an interest (`t:FILTER`, `c:FILTER?CONDITION`) wants what is on a topic; the payload if it has to look."""


def same_topic(interest: str, topic: str, payload: Callable[[], bytes]) -> bool:
    """Whether an interest names exactly this topic."""
    return interest == f"t:{topic}"


DEFAULT_PROTOCOL = DpspSettings(priorities=("long-delay",), combine="order", order="oldest")


@dataclass(frozen=True)
class NodeSettings:
    """What a core is set to; `serai.node.config` reads it from TOML."""

    name: str  # node id: dtn://NAME/
    protocol: RouterSettings = DEFAULT_PROTOCOL
    store_bytes: int = 1 << 30  # carried for others; as much again may wait for own sessions
    store_bundles: int = 1_000_000
    when_full: str = "oldest"  # serai.opportunistic.rules.WHEN_FULL
    keep_own: int = 1  # neighbours that must have an own publication before it may be evicted
    carries: bool = True
    skew_s: float = 3600.0  # how wrong clocks may be
    window_transfers: int = 64
    window_bytes: int = 256 << 10
    entries_of_peer: int = 20_000
    entries: int = 100_000
    log_rows: int = 1_000_000  # 0: no log is kept


class Node(Protocol):
    """One node: `Node(settings, saved, encode, matches)`, `saved` being what `serai.node.store` found on disk."""

    # -- applications (serai.node.mqtt_server)

    def session_opened(
        self, client: str, now_s: float, *, clean: bool, version: int, lifetime_s: float, will: bytes | None
    ) -> Effects:
        """A client has connected; outcome "resumed" if its session was still there, else "new".

        If the node dies meanwhile, the session lives on for `lifetime_s` after the next start (0: it is over then).
        """

    def session_closed(self, client: str, now_s: float, lifetime_s: float) -> Effects:
        """Its connection is over; the session lives on for a time (0: it ends now, inf: for ever)."""

    def published(self, client: str, message: Message, lifetime_s: float, now_s: float) -> Effects:
        """A client has published; outcome "stored", or "full": there is no room, so never acknowledge it.

        `inbound` rows and the acknowledgement are the caller's to add (`also`, `then`).
        """

    def subscribed(self, wanted: Subscription, now_s: float) -> Effects:
        """A session wants something (its `id` is given here); retained messages are queued as its options say."""

    def unsubscribed(self, client: str, filter: str, now_s: float) -> Effects:
        """It does not any more; outcome "none" if there was no such subscription."""

    def sessions(self) -> Iterable[KnownSession]:
        """All sessions, connected or not; after a start those with a will were cut off by whatever ended the node."""

    def subscriptions(self, session: str) -> Iterable[Subscription]:
        """What a session has asked for."""

    def outbox(self, session: str) -> Iterable[Queue]:
        """What waits for a session, in the order in which it came."""

    def outbox_sent(self, session: str, bundle: int, packet: int, state: int) -> Effects:
        """It is about to be sent under a packet id, or has reached another state of the handshake."""

    def outbox_done(self, session: str, bundle: int) -> Effects:
        """The client has it, or it is not wanted any more."""

    # -- neighbours (serai.node.links)

    def contact_up(self, peer: str, now_s: float, rate_bps: float, *, carries: bool, epoch: bytes) -> Effects:
        """A session with a neighbour that speaks DPSP is open; `epoch`: of its store. An older one is over."""

    def contact_down(self, peer: str, now_s: float, sent_bytes: Mapping[int, int] | None = None) -> Effects:
        """It is over; `sent_bytes`: of each transfer under way, where the link knows."""

    def journal_known(self, peer: str, epoch: bytes, upto: int, now_s: float) -> Effects:
        """The neighbour knows this node's journal up to a number."""

    def list_received(self, peer: str, message: ListMessage, now_s: float) -> Effects:
        """A neighbour's list has arrived."""

    def bundle_received(self, peer: str, transfer: int, header: Header, data: bytes, now_s: float) -> Effects:
        """A bundle has arrived whole, with good CRCs and signature; outcome as in the log: "relayed", "late" ..."""

    def next_transfer(self, peer: str, now_s: float) -> Effects:
        """The next list or bundle for a neighbour, as a word; none if the window is full or there is nothing."""

    def acknowledged(self, peer: str, transfer: int, now_s: float) -> Effects:
        """A neighbour has taken a transfer."""

    def refused(self, peer: str, transfer: int, reason: Refusal, now_s: float) -> Effects:
        """A neighbour has refused a transfer."""

    # -- time

    def tick(self, now_s: float) -> Effects:
        """Time has passed: bundles and entries expire, lists are due."""

    def due_s(self) -> float:
        """When `tick` is to be called next, at the latest."""

    def stop(self, now_s: float) -> Effects:
        """The node ends in an orderly way."""

    def status(self, now_s: float) -> dict[str, Any]:
        """The node in numbers: `name`, `neighbours`, `store`, `sessions`, `entries`, `drops`, `transfers`."""
