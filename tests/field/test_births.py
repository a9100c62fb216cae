"""What happens in a field: a Poisson process at each sensor, which knows nothing of the other sensors."""

import math
from collections.abc import Iterator

import numpy as np
import pytest

from serai.core.content import Attribute
from serai.core.streams import BIRTHS, CONTENT, stream
from serai.field.births import draw_events
from serai.lab import load_scenario, simulate
from tests.effort import THOROUGH

REAL, WHOLE = Attribute("A1", "real", -2.0, 8.0), Attribute("A2", "integer", 0, 3)
SEEDS = 200 if THOROUGH else 5
Story = list[tuple[float, tuple[float, ...]]]


def stories(interval_s: list[float], busy_s: float, seed: int, attributes: tuple[Attribute, ...]) -> list[Story]:
    """The events of each sensor, in order of birth: time and values."""
    sensor, time_s, values = draw_events(np.array(interval_s, float), busy_s, attributes, seed)
    assert (np.diff(time_s) >= 0).all()
    told: list[Story] = [[] for _ in interval_s]
    for who, when, what in zip(sensor, time_s, values, strict=True):
        told[who].append((float(when), tuple(map(float, what))))
    return told


# ---- the obvious version: one word after the other


def scrambled(number: int) -> int:
    """The mix of core/order, in whole numbers that never overflow."""
    for factor, shift in ((0x21F0AAAD, 16), (0x735A2D97, 15)):
        number = (number ^ (number >> shift)) * factor % 2**32
    return number ^ (number >> 15)


def words(key: int, sensor: int) -> Iterator[int]:
    low, high = key % 2**32, key // 2**32
    one, two = scrambled(low ^ scrambled(sensor + 1)), scrambled(high ^ scrambled(sensor + 1))
    n = 0
    while True:
        yield scrambled(scrambled(n ^ one) ^ two)
        n += 1


def gap(source: Iterator[int]) -> float:
    """Von Neumann: the first word of the first falling run of odd length, and 1 for each run before it."""
    whole = 0
    while True:
        run = [next(source)]
        while (following := next(source)) < run[-1]:
            run.append(following)
        if len(run) % 2:
            return whole + run[0] / 2**32
        whole += 1


def slow_story(sensor: int, interval_s: float, busy_s: float, seed: int, attributes: tuple[Attribute, ...]) -> Story:
    source, passed, times = words(int(stream(seed, BIRTHS).integers(2**62)), sensor), 0.0, []
    while (passed := passed + gap(source)) * interval_s < busy_s:
        times.append(passed * interval_s)
    columns = []
    for number, attribute in enumerate(attributes):
        source = words(int(stream(seed, CONTENT, number).integers(2**62)), sensor)
        fractions = [((next(source) >> 5) * 2**26 + (next(source) >> 6)) / 2**53 for _ in times]
        if attribute.kind == "integer":
            columns.append([attribute.low + math.floor(f * (attribute.high - attribute.low + 1)) for f in fractions])
        else:
            columns.append([attribute.low + f * (attribute.high - attribute.low) for f in fractions])
    return list(zip(times, zip(*columns, strict=True), strict=True)) if times else []


@pytest.mark.parametrize("seed", range(SEEDS))
def test_as_the_obvious_version_draws_them(seed: int) -> None:
    interval_s = [100.0, 3.0, 1e6, 41.5, 100.0]
    expected = [slow_story(sensor, mean, 500.0, seed, (REAL, WHOLE)) for sensor, mean in enumerate(interval_s)]
    assert stories(interval_s, 500.0, seed, (REAL, WHOLE)) == expected


# ---- nobody depends on anybody else


def test_one_sensor_more_leaves_the_events_of_the_others_alone() -> None:
    few = stories([100.0] * 5, 2000.0, 7, (REAL, WHOLE))
    assert stories([100.0] * 6, 2000.0, 7, (REAL, WHOLE))[:5] == few
    busier = stories([100.0, 100.0, 5.0, 100.0, 100.0], 2000.0, 7, (REAL, WHOLE))
    assert [busier[i] for i in (0, 1, 3, 4)] == [few[i] for i in (0, 1, 3, 4)]


def test_a_longer_run_goes_on_from_the_shorter_one() -> None:
    longer = stories([100.0] * 5, 4000.0, 7, (REAL,))
    shorter = [[event for event in story if event[0] < 2000.0] for story in longer]
    assert stories([100.0] * 5, 2000.0, 7, (REAL,)) == shorter


def test_one_attribute_more_leaves_the_values_of_the_others_alone() -> None:
    both = stories([100.0] * 3, 2000.0, 7, (REAL, WHOLE))
    assert stories([100.0] * 3, 2000.0, 7, (REAL,)) == [[(t, values[:1]) for t, values in story] for story in both]


def test_a_sensor_more_in_a_whole_scenario() -> None:
    def told(sensors: int) -> list[tuple[int, float, tuple[float, ...]]]:
        world = simulate(load_scenario("field", ["duration=10 min", f"sensors.count={sensors}"], "dg"), seed=3).world
        rows = zip(world.event_sensor, world.event_time_s, map(tuple, world.event_values), strict=True)
        return [(int(sensor), float(time_s), values) for sensor, time_s, values in rows if sensor < 20]

    assert told(20) == told(21)


# ---- what is drawn has the right shape


def test_births_are_poisson_processes() -> None:
    sensors, busy_s = 4000, 50.0  # of one a second
    sensor, time_s, _ = draw_events(np.ones(sensors), busy_s, (), seed=11)
    counts = np.bincount(sensor, minlength=sensors)
    assert abs(counts.mean() - busy_s) < 4 * math.sqrt(busy_s / sensors)
    assert abs(counts.var() / busy_s - 1) < 4 * math.sqrt(2 / sensors)
    assert abs(np.corrcoef(counts[:-1], counts[1:])[0, 1]) < 4 / math.sqrt(sensors)  # neighbours in number
    by_sensor = np.split(time_s[np.argsort(sensor, kind="stable")], np.cumsum(counts)[:-1])
    gaps = np.diff(np.array([times[:20] for times in by_sensor]))
    assert farthest_from(1 - np.exp(-np.sort(gaps.ravel()))) < 2 / math.sqrt(gaps.size)
    for one, other in ((gaps[:, :-1], gaps[:, 1:]), (gaps[:-1], gaps[1:])):  # in time, and in number
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4 / math.sqrt(one.size)
    assert farthest_from(time_s / busy_s) < 2 / math.sqrt(len(time_s))  # no hour is busier than another


def test_values_are_even_over_their_domains() -> None:
    sensor, _, values = draw_events(np.ones(2000), 50.0, (REAL, WHOLE), seed=12)
    assert farthest_from(np.sort((values[:, 0] + 2) / 10)) < 2 / math.sqrt(len(values))
    found, counts = np.unique(values[:, 1], return_counts=True)
    assert list(found) == [0, 1, 2, 3]
    assert abs(counts - len(values) / 4).max() < 4 * math.sqrt(len(values) * 3 / 16)
    for one, other in (values.T, (values[:-1, 0], values[1:, 0]), (values[:, 0], sensor % 7)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 4 / math.sqrt(len(values))


def farthest_from(fractions: np.ndarray) -> float:
    """How far sorted numbers are from evenly spread ones, at most (Kolmogorov and Smirnov)."""
    return float(abs(fractions - (np.arange(len(fractions)) + 0.5) / len(fractions)).max())


def test_nothing_happens_where_there_is_no_time_for_it() -> None:
    for busy_s in (0.0, -5.0):
        sensor, time_s, values = draw_events(np.ones(3), busy_s, (REAL,), seed=0)
        assert len(sensor) == len(time_s) == 0
        assert values.shape == (0, 1)


def test_domains_as_wide_as_numbers_go() -> None:
    widest = (Attribute("A", "integer", -(2**53), 2**53), Attribute("B", "real", -1e300, 1e300))
    _, _, values = draw_events(np.ones(50), 50.0, widest, seed=1)
    assert (values[:, 0] == np.floor(values[:, 0])).all()
    assert (abs(values) <= [2**53, 1e300]).all()
