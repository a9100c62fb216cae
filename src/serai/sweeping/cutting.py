"""How the missing runs of a sweep are cut into tasks: few and long while there is much to do, short at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from serai.sweeping.store import Segment
from serai.sweeping.tasks import Task

PILOTS: Final = 2
"""Runs of a cell whose cost is unknown that are tried first; one alone would be judged by its start-up."""

# A task costs Spark some 70 ms. Long ones waste the least of it; short ones leave no core idle while the last one runs.
_SHORTEST_S: Final = 0.7
_LONGEST_S: Final = 4.0
_TASKS_PER_CORE: Final = 3


def pilot_tasks(missing: Iterable[Segment], costs: Mapping[str, float], cores: int) -> list[Task]:
    """The first runs of every cell whose cost is unknown, spread over the cores."""
    first = {
        segment.cell: Segment(segment.cell, segment.first, min(segment.first + PILOTS, segment.stop))
        for segment in reversed(list(missing))
        if segment.cell not in costs
    }
    pilots = list(reversed(first.values()))
    tasks = min(len(pilots), _TASKS_PER_CORE * cores)
    return [tuple(pilots[place::tasks]) for place in range(tasks)]


def cut_tasks(missing: Sequence[Segment], costs: Mapping[str, float], cores: int) -> list[Task]:
    """All missing runs in tasks of a few seconds, by what a run of each cell costs.

    Each task takes a fixed share of what is left (guided self-scheduling: Polychronopoulos and Kuck, 1987).
    """
    left_s = sum(costs[cell] * (stop - first) for cell, first, stop in missing)
    tasks: list[Task] = []
    task: list[Segment] = []
    room_s = wanted_s = _task_s(left_s, cores)
    for cell, first, stop in missing:
        while first < stop:
            runs = min(stop - first, max(1, round(room_s / costs[cell])))
            task.append(Segment(cell, first, first + runs))
            first += runs
            room_s -= runs * costs[cell]
            if room_s < 0.5 * costs[cell] or room_s < 0.05 * wanted_s:
                tasks.append(tuple(task))
                left_s -= wanted_s - room_s
                task, room_s = [], _task_s(left_s, cores)
                wanted_s = room_s
    return [*tasks, tuple(task)] if task else tasks


def _task_s(left_s: float, cores: int) -> float:
    return min(_LONGEST_S, max(_SHORTEST_S, left_s / (_TASKS_PER_CORE * cores)))
