"""How a core begins again with what the store has: sessions, what they asked for, what waits. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from serai.node.contacts import Draft, read_entry
from serai.node.outboxes import Session
from serai.node.words import ListEntry, Queue, Saved, Subscription

if TYPE_CHECKING:
    from serai.node.core import Node


def restore(node: Node, saved: Saved, now_s: float) -> None:
    """Make a new core what it was when the rows were written; bundles are there already (`serai.node.holdings`)."""
    nothing = Draft()  # what is restored is on disk
    _restore_sessions(node, saved, now_s)
    for bundle in node.router.seen.values():
        if node.router.wants(bundle):
            node.router.delivered.add(bundle.mark)
    for topic, id in saved.retained:
        node.outboxes.retained[topic] = node.holdings.by_id[id]
        node.holdings.use(id, 1, nothing)
    for client, id, qos, flags, packet, state in saved.outbox:
        node.outboxes.sessions[client].queue[id] = Queue(id, qos, flags, packet, state)
        node.holdings.use(id, 1, nothing)
    for id in node.holdings.parts.incomplete():
        held = node.holdings.by_id[id]
        if held.mark in node.router.delivered:
            node.holdings.wait_for_others(held, nothing)
    node.router.knowledge.restore([read_entry(ListEntry(*row)) for row in saved.entry])


def _restore_sessions(node: Node, saved: Saved, now_s: float) -> None:
    for client, version, expires_ms, will in saved.session:
        # below 0: it was connected when the node ended, and lives on for so long
        lives_s = math.inf if expires_ms is None else expires_ms / 1000
        expires_s = now_s - lives_s if lives_s <= 0 else lives_s
        node.outboxes.sessions[client] = Session(client, version, expires_s, will)
    for row in saved.interest:
        one = Subscription(*row)
        node.outboxes.add(node.outboxes.sessions[one.session], one)
        if node.settings.each_interest or one.interest not in node.spread:
            node.spread[one.interest] = one.id
            node.router.subscriptions.begin(one.id, one.interest, one.since_ms / 1000)
