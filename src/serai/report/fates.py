"""What becomes of all that is wanted: a bar for each protocol, and in words why the rest is lost, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from serai.field.log import FieldRun
from serai.field.losses import losses_of
from serai.kinds import protocol_label
from serai.log.losses import LOST
from serai.log.run import SimulatedRun
from serai.report.figures import Picture, stacked

WORDS: Final = dict(
    zip(
        LOST, ("never met", "met, not sent", "stranded", "too old on the way", "full queue", "dead sensor"), strict=True
    )
)
_EXPLAINED: Final = {
    "never_met": "Never met: while the event lived, the subscriber never came near a copy of it.",
    "not_sent": "Met, not sent: the subscriber came near a copy, but other events were sent first.",
    "stranded": "Stranded: a copy was on its way, but the subscriber had left before it arrived.",
    "expired": "Too old on the way: a copy was on its way, but expired before it arrived.",
    "full": "Full queue: there was no room for it.",
    "dead": "Dead sensor: it was lost with a sensor whose battery was empty.",
}
_IN_SHORT: Final = {
    "never_met": "because no subscriber that wants it comes by in time",
    "not_sent": "because other events are sent first",
    "stranded": "because the subscriber leaves while it is on its way",
    "expired": "because it grows too old on its way",
    "full": "for lack of room",
    "dead": "with a dead sensor",
}
_COLOURS: Final = ("soft", "line", "c1", "c5", "c3", "c4", "c2", "c7")
"""Not those of protocols, whose bars these are."""
_WORTH_SAYING: Final = 0.02  # of all that is lost
_UNEVEN: Final = 0.55
_ENOUGH: Final = 20
"""So many losses, at least, say where most of them are."""


def fates_of(run: SimulatedRun) -> dict[str, int] | None:
    """How many wanted pairs were delivered, waited at the end, or were lost for each reason; None: nobody knows."""
    if math.isnan(run.metrics.lost_never_met):
        return None
    lost = {WORDS[name]: int(getattr(run.metrics, f"lost_{name}")) for name in LOST}
    delivered = run.metrics.delivered_pairs
    waiting = run.metrics.wanted_pairs - delivered - sum(lost.values())
    return {"delivered": delivered, "waiting at the end": waiting} | lost


def fates(runs: Sequence[SimulatedRun]) -> Picture | None:
    """A bar for each run: what became of every pair of an event and a subscriber that wants it, in per cent."""
    found = [(run, known) for run in runs if (known := fates_of(run)) and run.metrics.wanted_pairs]
    if not found:
        return None
    parts = {name: [100 * known[name] / run.metrics.wanted_pairs for run, known in found] for name in found[0][1]}
    seeds = {run.seed for run, _ in found}
    of_seed = f" in the runs of seed {seeds.pop()}" if len(found) > 1 and len(seeds) == 1 else ""
    caption = f"What becomes of all wanted pairs{of_seed}; waiting at the end: neither delivered nor lost by then."
    labels = [protocol_label(run.protocol) for run, _ in found]
    return stacked("fates", labels, parts, "% of pairs of an event and a subscriber that wants it", caption, _COLOURS)


def why_lost(runs: Sequence[SimulatedRun]) -> Iterator[str]:
    """The main reasons of each run, and what these words mean."""
    named: set[str] = set()
    said = []
    for run in runs:
        known = fates_of(run)
        total = sum(known[WORDS[name]] for name in LOST) if known else 0
        if not known or not total:
            continue
        shares = {name: known[WORDS[name]] / total for name in LOST}
        ordered = sorted((name for name in LOST if shares[name] >= _WORTH_SAYING), key=lambda name: -shares[name])
        named |= set(ordered)
        reasons = ", ".join(f"{100 * shares[name]:.0f} % {WORDS[name]}" for name in ordered)
        said.append(f"{protocol_label(run.protocol)}: {reasons}")
    if said:
        yield f"Why pairs are lost: {'; '.join(said)}."
        yield " ".join(_EXPLAINED[name] for name in LOST if name in named)


def in_short(runs: Sequence[SimulatedRun]) -> str:
    """Why most of what is lost is lost, and whether it is lost at the edge of the field, in one sentence."""
    names: dict[str, list[str]] = {}
    for run in runs:
        known = fates_of(run) or {}
        if total := sum(known.get(WORDS[name], 0) for name in LOST):
            main = max(LOST, key=lambda name: known[WORDS[name]])
            if known[WORDS[main]] > total / 2:
                names.setdefault(main, []).append(protocol_label(run.protocol))
    if not names:
        return ""
    reasons = ", ".join(f"under {' and '.join(who)} mostly {_IN_SHORT[why]}" for why, who in names.items())
    shares = [edge_share(run) for run in runs]
    edge = all(share is not None and share >= _UNEVEN for share in shares)
    return f"What is lost: {reasons}{'; most of it at the edge of the field' if edge else ''}."


def where_lost(runs: Sequence[SimulatedRun]) -> str:
    """Whether the edge of the field loses more than its middle; nothing where it is about even."""
    parts = {protocol_label(run.protocol): share for run in runs if (share := edge_share(run)) is not None}
    told = ", ".join(f"{100 * share:.0f} % under {name}" for name, share in parts.items() if share >= _UNEVEN)
    if not told:
        return "" if not parts else "The edge of the field loses about as much as its middle."
    return f"Most losses occur at the edge of the field: the outer half of the sensors accounts for {told}."


def edge_share(run: SimulatedRun) -> float | None:
    """Which part of all lost pairs was born at the half of the sensors that stand nearest to the field's edge."""
    if not isinstance(run, FieldRun) or (lost := losses_of(run)) is None or len(lost.event) < _ENOUGH:
        return None
    place, x, y = run.scenario.field, run.world.sensor_x, run.world.sensor_y
    inside = np.minimum.reduce([x, place.width_m - x, y, place.height_m - y])
    outer = np.zeros(len(x), np.bool_)
    outer[np.argsort(inside, kind="stable")[: (len(x) + 1) // 2]] = True
    return float(outer[run.world.event_sensor[lost.event]].mean())
