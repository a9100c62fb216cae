"""Counts of things that a user has named in the plural: 1 vehicle, 2 vehicles."""

from __future__ import annotations

from typing import Final

_UNSURE: Final = ("ses", "xes", "ches", "shes", "ies", "ss")
"""Endings that lose more than an s, or nothing: buses and horses, wishes, ferries, moss."""


def counted(count: object, plural: str) -> str:
    """A count with its noun; where English leaves doubt what one of them is called, the plural stays as it is."""
    plain = plural.endswith("s") and not plural.endswith(_UNSURE)
    return f"{count} {plural[:-1] if count == 1 and plain else plural}"
