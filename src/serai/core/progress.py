"""How far a run is, for whoever wants to show it.

A kernel keeps its clock in an array, so another thread can read it while the kernel runs. Nothing is done for that in
the kernel itself, and nothing at all unless somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_running: list[Callable[[], float]] = []


@contextmanager
def measured_by(share: Callable[[], float]) -> Iterator[None]:
    """While something runs that `share` tells how much of it is done, from 0 to 1."""
    _running.append(share)
    try:
        yield
    finally:
        _running.remove(share)


def share_done() -> float | None:
    """How much is done of what was begun last; None if that cannot be told."""
    return _running[-1]() if _running else None
