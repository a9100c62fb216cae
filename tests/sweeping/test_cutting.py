"""Tasks: every missing run in exactly one of them, none of them too long."""

from collections import Counter
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from serai.sweeping.cutting import PILOTS, cut_tasks, pilot_tasks
from serai.sweeping.store import Segment

SEGMENTS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(0, 50), st.integers(1, 400)).map(
        lambda drawn: Segment(drawn[0], 1000 * drawn[1], 1000 * drawn[1] + drawn[2])
    ),
    max_size=12,
    unique_by=lambda segment: (segment.cell, segment.first),
)


def runs_of(segments: list[Segment]) -> Counter[tuple[str, int]]:
    return Counter((cell, seed) for cell, first, stop in segments for seed in range(first, stop))


@given(SEGMENTS, st.dictionaries(st.sampled_from("abcde"), st.floats(1e-4, 20), min_size=5), st.integers(1, 64))
def test_every_run_is_in_one_task_and_tasks_are_a_few_seconds(
    missing: list[Segment], costs: dict[str, float], cores: int
) -> None:
    tasks = cut_tasks(missing, costs, cores)
    assert runs_of(list(chain.from_iterable(tasks))) == runs_of(missing)
    for task in tasks:
        runs = runs_of(list(task))
        assert runs
        cost = sum(costs[cell] for cell, _ in runs.elements())
        assert cost <= max(4.0, 0.7) + 2 * max(costs[cell] for cell, _ in runs) or runs.total() == 1


def test_tasks_get_shorter_towards_the_end() -> None:
    tasks = cut_tasks([Segment("a", 0, 3000)], {"a": 0.02}, cores=2)
    lengths = [task[0].stop - task[0].first for task in tasks]
    assert lengths[0] == 200  # 4 s
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[-2] == 35  # 0.7 s


@given(SEGMENTS, st.sets(st.sampled_from("abcde")), st.integers(1, 8))
def test_pilots_are_the_first_runs_of_unknown_cells(missing: list[Segment], known: set[str], cores: int) -> None:
    tasks = pilot_tasks(missing, dict.fromkeys(known, 1.0), cores)
    found = list(chain.from_iterable(tasks))
    assert Counter(segment.cell for segment in found) == Counter({segment.cell for segment in missing} - known)
    for segment in found:
        first = next(other for other in missing if other.cell == segment.cell)
        assert segment == first._replace(stop=min(first.first + PILOTS, first.stop))
    assert all(tasks)
    assert len(tasks) <= 3 * cores
