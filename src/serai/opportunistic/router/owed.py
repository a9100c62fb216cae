"""Own bundles that stay in the store until enough neighbours have them."""

from __future__ import annotations

from collections.abc import Hashable


class Owed:
    """How many neighbours still have to take each own bundle; one counts once, however often it says that it has it."""

    def __init__(self, neighbours: int) -> None:
        self.neighbours = neighbours  # that must have a new one
        self._left: dict[int, int] = {}
        self._holders: dict[int, set[Hashable]] = {}

    def __contains__(self, mark: int) -> bool:
        return mark in self._left

    def __len__(self) -> int:
        return len(self._left)

    def left(self, mark: int) -> int:
        """How many still have to take it."""
        return self._left.get(mark, 0)

    def begin(self, mark: int, left: int) -> None:
        """So many have to take it; after a restart perhaps fewer than of a new one."""
        self._left[mark] = left
        if left >= self.neighbours:  # else some have it, and the restart has forgotten who
            self._holders[mark] = set()

    def held_by(self, peer: Hashable, mark: int, accepted: bool) -> bool:
        """Whether a neighbour counts that has taken a bundle, or had it already."""
        holders = self._holders.get(mark)
        if peer in holders if holders is not None else not accepted:
            return False
        if holders is not None:
            holders.add(peer)
        self._left[mark] -= 1
        if not self._left[mark]:
            self.forget(mark)
        return True

    def forget(self, mark: int) -> None:
        """It has expired, or enough have it."""
        self._left.pop(mark, None)
        self._holders.pop(mark, None)
