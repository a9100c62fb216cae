"""Sessions of applications: what they have asked for, what waits for them, and retained messages. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from serai.node.matching import TopicMatching
from serai.node.words import Held, KnownSession, Queue, Row, Subscription
from serai.opportunistic.router import Bundle

NO_LOCAL, AS_PUBLISHED = 4, 8  # options of a subscription
RETAINED = 1  # flag of what waits


@dataclass
class Session:
    """A client's session; its queue by the ids of bundles, in the order in which they came."""

    client: str
    version: int
    expires_s: float = math.inf  # while nobody is connected
    will: bytes | None = None
    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    queue: dict[int, Queue] = field(default_factory=dict)


class Outboxes:
    """All sessions of a node."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, Held] = {}
        self.asking: dict[str, dict[int, Subscription]] = defaultdict(dict)
        """By interests, and by their ids."""
        self._turns: dict[tuple[str, str], int] = {}

    def known(self) -> list[KnownSession]:
        """All sessions, connected or not."""
        return [KnownSession(one.client, one.version, one.expires_s, one.will) for one in self.sessions.values()]

    def add(self, session: Session, one: Subscription) -> None:
        """A session has asked for something, perhaps in place of what it had asked for by the same filter."""
        session.subscriptions[one.filter] = one
        self.asking[one.interest][one.id] = one

    def remove(self, session: Session, filter: str) -> Subscription:
        """A session does not ask for it any more."""
        one = session.subscriptions.pop(filter)
        del self.asking[one.interest][one.id]
        return one

    def fitting(self, bundle: Bundle, matching: TopicMatching) -> Iterator[Subscription]:
        """The subscriptions that a bundle meets."""
        if not self.asking:
            return
        for interest in [interest for interest, asking in self.asking.items() if not asking]:
            del self.asking[interest]
        yield from self.asking.get(matching.plain(bundle), {}).values()
        for interest, asking in self.asking.items():
            if not matching.is_plain(interest) and matching.matches(interest, bundle):
                yield from asking.values()

    def expired(self, now_s: float) -> list[str]:
        """Sessions whose time is over."""
        return [session.client for session in self.sessions.values() if session.expires_s <= now_s]

    def next_expiry_s(self) -> float:
        """When the next session is over."""
        return min((session.expires_s for session in self.sessions.values()), default=math.inf)

    def status(self) -> list[dict[str, Any]]:
        """Each session in numbers."""
        return [
            {"client": one.client, "queued": len(one.queue), "subscriptions": len(one.subscriptions)}
            for one in self.sessions.values()
        ]

    def fan_out(self, held: Held, fitting: Iterable[Subscription], publisher: str) -> list[tuple[str, Queue]]:
        """Which sessions get a message once, and how; of those that share a subscription one, in turn."""
        asking: dict[str, list[Subscription]] = {}
        shared: dict[tuple[str, str], list[Subscription]] = {}
        for one in fitting:
            if one.options & NO_LOCAL and one.session == publisher:
                continue
            if one.share:
                shared.setdefault((one.share, one.interest), []).append(one)
            else:
                asking.setdefault(one.session, []).append(one)
        for group, members in shared.items():
            turn = self._turns[group] = self._turns.get(group, -1) + 1
            chosen = members[turn % len(members)]
            asking.setdefault(chosen.session, []).append(chosen)
        return [(session, _queue(held, wishes)) for session, wishes in asking.items()]

    def retain(self, held: Held) -> list[Row]:
        """A retained message has come: the newest creation on its topic wins, and an empty one clears."""
        topic = str(held.channel)
        older = self.retained.get(topic)
        if not held.retain or (older is not None and older.key > held.key):
            return []
        self.retained[topic] = held  # an empty one, too: else an older one that comes later would be shown
        return [("retained", (topic, held.id))]


def _queue(held: Held, wishes: list[Subscription]) -> Queue:
    """How a message waits for a session that has asked for it, perhaps several times."""
    qos = min(held.qos, max(one.options & 3 for one in wishes))
    as_published = any(one.options & AS_PUBLISHED for one in wishes)
    return Queue(held.id, qos, RETAINED if held.retain and as_published else 0, 0, 0)
