"""Random walk, Levy walk and communities: known answers, and the laws that the draws follow."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.world.grid import Grid
from serai.world.mobility import Tracks
from serai.world.walks import Walk, _drawn, walk

FIELD = Grid(300.0, 200.0, 3, 2)
RANDOM = Walk("random-walk", speed=(1.0, 2.0), pause=(0.0, 5.0), leg=(50.0, 400.0))
LEVY = Walk("levy-walk", speed=(1.0, 1.0), pause=(1.0, 60.0), leg=(5.0, 500.0), leg_exponent=1.5)
HOMES = Walk("community", speed=(1.0, 2.0), pause=(0.0, 0.0), home_share=0.8)


def walked(how: Walk, count: int = 20, duration_s: float = 5000.0, seed: int = 1) -> Tracks:
    return walk(FIELD, count, duration_s, how, seed=np.random.SeedSequence([seed, 1]))


def of_node(tracks: Tracks, node: int) -> np.ndarray:
    part = slice(tracks.start[node], tracks.start[node + 1])
    return np.column_stack((tracks.time_s[part], tracks.x_m[part], tracks.y_m[part]))


@pytest.mark.parametrize("how", [RANDOM, LEVY, HOMES])
def test_everybody_stays_in_the_field_at_the_speeds_allowed_until_the_end(how: Walk) -> None:
    tracks = walked(how)
    assert tracks.x_m.min() >= 0
    assert tracks.x_m.max() <= 300
    assert tracks.y_m.min() >= 0
    assert tracks.y_m.max() <= 200
    for node in range(20):
        points = of_node(tracks, node)
        assert points[0, 0] == 0
        assert points[-1, 0] >= 5000 > points[-2, 0] - 1000
        spent = np.diff(points[:, 0])
        moved = np.hypot(*np.diff(points[:, 1:], axis=0).T)
        assert (spent > 0).all()
        speed = (moved / spent)[moved > 1e-6]
        assert speed.min() >= how.speed[0] - 1e-9
        assert speed.max() <= how.speed[1] + 1e-9


@pytest.mark.parametrize("how", [RANDOM, LEVY, HOMES])
def test_neither_more_nodes_nor_a_longer_run_changes_a_walk(how: Walk) -> None:
    short, more = walked(how, 3, 500.0), walked(how, 5, 4000.0)
    for node in range(3):
        ours = of_node(short, node)
        assert np.array_equal(of_node(more, node)[: len(ours)], ours)
    assert not np.array_equal(walked(how, 1, seed=2).x_m[:2], short.x_m[:2])


def test_a_leg_is_thrown_back_at_the_edges() -> None:
    # Unfold the field at its edges: there the same leg is one straight line of the length drawn.
    how = Walk("random-walk", speed=(1.0, 1.0), pause=(1.0, 1.0), leg=(700.0, 700.0))
    points = of_node(walked(how, 1, 20_000.0), 0)
    rests = np.flatnonzero((np.diff(points[:, 1]) == 0) & (np.diff(points[:, 2]) == 0))
    lengths = np.diff(points[rests, 0]) - 1.0
    assert lengths == pytest.approx(700.0)
    edges = (points[:, 1] % 300 == 0) | (points[:, 2] % 200 == 0)
    assert edges.sum() > len(rests)


@settings(max_examples=30)
@given(st.floats(0, 1, exclude_max=True), st.floats(0.1, 100), st.floats(1, 50), st.floats(0.1, 3))
def test_the_power_law_is_the_inverse_of_its_distribution(
    draw: float, lowest: float, times: float, exponent: float
) -> None:
    highest = lowest * times
    number = _drawn(draw, lowest, highest, exponent)
    assert lowest * (1 - 1e-12) <= number <= highest
    if times > 1.001:
        share = (1 - (lowest / number) ** exponent) / (1 - (lowest / highest) ** exponent)
        assert share == pytest.approx(draw, abs=1e-6)


def test_flights_of_a_levy_walk_follow_the_power_law() -> None:
    wide = Grid(1e6, 1e6, 1, 1)
    tracks = walk(wide, 40, 100_000.0, LEVY, seed=np.random.SeedSequence(5))
    moved = np.hypot(np.diff(tracks.x_m), np.diff(tracks.y_m))
    flights = moved[(moved > 0) & (moved <= 500.0 + 1e-6)]
    beyond = [(flights > length).mean() for length in (10.0, 50.0)]
    tail = (5 / 500) ** 1.5
    expected = [((5 / length) ** 1.5 - tail) / (1 - tail) for length in (10.0, 50.0)]
    assert beyond == pytest.approx(expected, abs=4 / math.sqrt(flights.size))


def test_members_of_a_community_are_at_home_most_of_the_time() -> None:
    tracks = walked(HOMES, 12, 20_000.0)
    at_home = []
    for node in range(12):
        points = of_node(tracks, node)[1:]
        cell = FIELD.cell_of(points[:, 1], points[:, 2])
        at_home += (cell == node % 6).tolist()
    # 80 % of the legs lead home, and one in six of those that lead anywhere.
    share = 0.8 + 0.2 / 6
    assert np.mean(at_home) == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / len(at_home)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"model": "brownian"}, {"speed": (0.0, 1.0)}, {"pause": (2.0, 1.0)}, {"leg": (0.0, 1.0)},
        {"home_share": 1.5}, {"leg_exponent": 0.0}, {"model": "levy-walk", "pause": (0.0, 5.0)},
    ],
)  # fmt: skip
def test_a_walk_that_cannot_be_walked_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        walked(RANDOM._replace(**wrong))  # type: ignore[arg-type]
