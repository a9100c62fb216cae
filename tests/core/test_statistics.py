import math

import pytest
from scipy import stats

from serai.core.statistics import estimate, t_quantile


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("degrees", [*range(1, 31), 99, 199, 200, 1000, 9999])
def test_t_quantile_is_that_of_scipy(confidence: float, degrees: int) -> None:
    assert t_quantile(confidence, degrees) == pytest.approx(stats.t.ppf((1 + confidence) / 2, degrees), rel=1e-10)


@pytest.mark.parametrize(("confidence", "degrees"), [(0, 5), (1, 5), (math.nan, 5), (0.95, 0)])
def test_t_quantile_refuses_what_has_none(confidence: float, degrees: int) -> None:
    with pytest.raises(ValueError, match="no t quantile"):
        t_quantile(confidence, degrees)


def test_mean_and_interval_by_hand() -> None:
    found = estimate([1.0, 2.0, 3.0, 4.0])
    assert (found.mean, found.count) == (2.5, 4)
    assert found.standard_error == pytest.approx(math.sqrt(5 / 3 / 4))
    assert found.half_width() == pytest.approx(3.182446305 * math.sqrt(5 / 3 / 4))


def test_interval_is_that_of_scipy() -> None:
    values = [230.1, 241.7, 225.0, 219.4, 260.3]
    low, high = stats.t.interval(0.95, len(values) - 1, stats.tmean(values), stats.sem(values))
    found = estimate(values)
    assert found.mean - found.half_width() == pytest.approx(low)
    assert found.mean + found.half_width() == pytest.approx(high)


def test_runs_without_the_metric_are_left_out() -> None:
    assert estimate([2.0, None, math.nan, 4.0]) == estimate([2.0, 4.0])


@pytest.mark.parametrize("values", [[], [None]])
def test_nothing_has_no_mean(values: list[float | None]) -> None:
    found = estimate(values)
    assert math.isnan(found.mean)
    assert math.isnan(found.half_width())


def test_one_run_has_a_mean_but_no_interval() -> None:
    found = estimate([3.5])
    assert found.mean == 3.5
    assert math.isnan(found.half_width())
