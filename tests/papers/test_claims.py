"""Claims judged on curves whose answer is known."""

import math

import numpy as np
import pytest

from serai.core.statistics import Estimate, estimate, t_quantile
from serai.papers.claims import FAILS, HOLDS, OPEN, Measured, Order, Trend, difference


def curve(*means, error=0.1, count=100):
    return [Measured(float(at), Estimate(mean, error, count)) for at, mean in enumerate(means)]


def judged(claim, **curves):
    return claim.judge(lambda protocol, metric: curves.get(protocol, []) if metric == "m" else [])


def trend(direction=None, at_most=None):
    return Trend("figure", "1", "words", "a", "m", direction, at_most)


def test_a_sentence_against_the_axis_is_read_as_it_runs():
    """With longer range, which is fewer cells: the axis has cells."""
    claim = Trend("figure", "1", "words", "a", "m", "rises", backwards=True)
    found = judged(claim, a=curve(3, 2, 1))
    assert found.verdict == HOLDS
    assert [point.estimate.mean for point in found.curves["a"]] == [1, 2, 3]
    assert judged(claim, a=curve(1, 2, 3)).verdict == FAILS
    assert judged(claim, a=curve(3, 5, 1)).reason == "turns after 1"


@pytest.mark.parametrize(
    ("means", "rises", "falls"),
    [
        ((1, 2, 3), HOLDS, FAILS),
        ((3, 2, 1), FAILS, HOLDS),
        ((1, 1.05, 1.1), OPEN, OPEN),  # 0.1 apart, each known to about 0.2
        ((1, 5, 3), FAILS, FAILS),  # up as a whole, but it clearly turns
        ((1, 9, 8.5, 20), HOLDS, FAILS),  # one step back of less than a tenth of the whole
        ((1, 20, 17, 20), FAILS, FAILS),  # one of more than a tenth
        ((1, 9, 8.9, 20), HOLDS, FAILS),  # a step back that may be chance
    ],
)
def test_direction(means, rises, falls):
    assert judged(trend("rises"), a=curve(*means)).verdict == rises
    assert judged(trend("falls"), a=curve(*means)).verdict == falls


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        ((10, 10.1, 10.2), HOLDS),
        ((10, 10.9, 10.5), OPEN),  # 8.6 % +- 2.7
        ((10, 12, 11), FAILS),
        ((-10, -10.1, -10), HOLDS),
    ],
)
def test_small_change(means, verdict):
    assert judged(trend(at_most=0.1), a=curve(*means)).verdict == verdict


def test_a_slight_rise_is_both():
    claim = trend("rises", 0.1)
    assert judged(claim, a=curve(10, 10.3, 10.6)).verdict == HOLDS
    assert judged(claim, a=curve(10.6, 10.3, 10)).verdict == FAILS
    assert judged(claim, a=curve(10, 15, 20)).verdict == FAILS
    assert judged(claim, a=curve(10, 10.05, 10.1)).verdict == OPEN


@pytest.mark.parametrize(
    ("above", "below", "verdict"),
    [
        ((5, 6, 7), (1, 2, 3), HOLDS),
        ((5, 6, 7), (1, 2, 8), FAILS),
        ((5, 6, 7), (1, 2, 6.9), OPEN),
        ((5, 6, 7.1), (1, 6.05, 8), FAILS),  # what is clear decides, whatever is not
    ],
)
def test_order(above, below, verdict):
    claim = Order("figure", "1", "words", "m", "a", "b")
    assert judged(claim, a=curve(*above), b=curve(*below)).verdict == verdict


def test_reasons_name_the_place():
    assert judged(trend("rises"), a=curve(1, 5, 3)).reason == "turns after 1"
    claim = Order("figure", "1", "words", "m", "a", "b")
    assert judged(claim, a=curve(5, 6), b=curve(9, 2)).reason == "the other way round at 0"
    assert judged(trend(at_most=0.1), a=curve(10, 12, 11)).reason == "differs by 18 %"


def test_what_was_not_measured_cannot_be_told():
    order = Order("figure", "1", "words", "m", "a", "b")
    assert judged(trend("rises")).verdict == OPEN
    assert judged(trend("rises"), a=curve(1, math.nan)).verdict == OPEN
    assert judged(order, a=curve(1, 2)).verdict == OPEN


def test_one_seed_tells_nothing():
    single = curve(1, 2, 3, error=math.nan, count=1)
    assert judged(trend("rises"), a=single).verdict == OPEN
    assert judged(trend(at_most=0.9), a=single).verdict == OPEN
    assert judged(Order("f", "1", "w", "m", "a", "b"), a=single, b=curve(9, 9, 9)).verdict == OPEN


def test_difference_of_independent_means():
    gap = difference(Estimate(5.0, 0.3, 11), Estimate(3.0, 0.4, 31))
    assert gap.mean == 2.0
    assert gap.half_width == pytest.approx(0.5 * t_quantile(0.95, 10))
    assert (gap.low, gap.high) == (2.0 - gap.half_width, 2.0 + gap.half_width)


def verdicts(truth, trials=300, seeds=20, spread=1.0):
    """What is said of "it rises", over and over, where the truth is known."""
    rng = np.random.default_rng(7)
    found = []
    for _ in range(trials):
        samples = rng.normal(truth, spread, (seeds, len(truth)))
        points = [Measured(float(at), estimate(samples[:, at])) for at in range(len(truth))]
        found.append(judged(trend("rises"), a=points).verdict)
    return {verdict: found.count(verdict) / trials for verdict in (HOLDS, FAILS, OPEN)}


def test_a_rise_is_seen_and_none_is_invented():
    rise = verdicts([0, 1, 2, 3, 4])
    assert rise[HOLDS] > 0.98
    gentle = verdicts([0, 0.1, 0.2, 0.3, 0.4])
    assert gentle[FAILS] < 0.06  # four steps, each of which may look like a step back by chance
    flat = verdicts([0, 0, 0, 0, 0])
    assert flat[HOLDS] < 0.05
    assert verdicts([4, 3, 2, 1, 0])[FAILS] == 1
