"""The one definition of every metric: a run in, numbers out. Each kind of network has its own file."""

from __future__ import annotations

from typing import Any

from serai.log import ContactsRun, OverlayRun, Run
from serai.metrics import contacts, field, overlay
from serai.metrics.field import DEFINITIONS, Metrics, aggregate_full_log, by_community, delay_cdf, jain

__all__ = ["DEFINITIONS", "Metrics", "aggregate_full_log", "by_community", "delay_cdf", "delays", "jain", "measure"]


def measure(run: Any, **options: Any) -> Any:
    """Every metric of a run; in a field, `ceiling=True` adds what its contacts alone would allow (takes longer)."""
    return _MEASURE[type(run)](run, **options)


def delays(run: Any) -> Any:
    """The delay of each delivered pair (an array), and how many pairs were wanted; None where nobody waits."""
    answer = _DELAYS.get(type(run))
    return answer(run) if answer else None


_MEASURE: dict[type, Any] = {
    Run: field.measure_field,
    OverlayRun: overlay.measure_overlay,
    ContactsRun: contacts.measure_contacts,
}
_DELAYS: dict[type, Any] = {Run: field.delays_field, ContactsRun: contacts.delays_contacts}
