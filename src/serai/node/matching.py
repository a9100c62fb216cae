"""Interests of nodes and sessions, as routers ask them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from serai.opportunistic.router import Bundle

Matches = Callable[[str, str, Callable[[], bytes]], bool]
"""Whether an interest (`t:FILTER`, `c:FILTER?CONDITION`) wants what is on a topic; the payload if it has to look."""


def same_topic(interest: str, topic: str, payload: Callable[[], bytes]) -> bool:
    """Whether an interest names exactly this topic."""
    return interest == f"t:{topic}"


class TopicMatching:
    """Texts of interests against bundles, whose channels are topics."""

    def __init__(self, matches: Matches, payload: Callable[[Bundle], bytes]) -> None:
        self._matches, self._payload = matches, payload

    def plain(self, bundle: Bundle) -> str:
        """The interest in exactly the bundle's topic."""
        return f"t:{bundle.channel}"

    def is_plain(self, interest: Any) -> bool:
        """Whether it is an interest in exactly one topic."""
        return interest[:2] == "t:" and "+" not in interest and "#" not in interest

    def by_channel(self, interest: Any) -> bool:
        """Whether the topic alone decides."""
        return bool(interest[:2] == "t:")

    def matches(self, interest: Any, bundle: Bundle) -> bool:
        """Whether an interest wants the bundle."""
        return self._matches(interest, str(bundle.channel), lambda: self._payload(bundle))

    def meets(self, interest: str, bundle: Bundle) -> bool:
        """Whether any interest, plain or not, wants the bundle."""
        return interest == self.plain(bundle) if self.is_plain(interest) else self.matches(interest, bundle)
