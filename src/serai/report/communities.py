"""Who is served: the delivery ratio of events by the size of the community they were born in.

The rows of a sweep have Jain's index alone. What is behind it is worked out here from a few runs of the main cases,
which are simulated once more: the same scenario and seed give the same run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from serai.report.results import Served
from serai.scenario.section import Scenario

SEEDS: Final = 10
SIZES: Final = {"1 sensor": (1, 1), "2 to 10": (2, 10), "11 to 30": (11, 30), "more than 30": (31, 10**9)}
"""Classes of communities by the number of their sensors."""


def served_by_size(scenario: Scenario, seeds: Iterable[int]) -> dict[str, Served]:
    """How the events of communities of each size fared, over a few seeds; only in a field."""
    from serai.field.metrics import by_community
    from serai.lab import simulate

    totals: dict[str, Counter[str]] = {name: Counter() for name in SIZES}
    for seed in seeds:
        found: Any = by_community(simulate(scenario, seed=seed))
        for name, (least, most) in SIZES.items():
            chosen = (found.sensors >= least) & (found.sensors <= most)
            for column in Served._fields:
                totals[name][column] += int(getattr(found, column)[chosen].sum())
    return {name: Served(**{column: total[column] for column in Served._fields}) for name, total in totals.items()}
