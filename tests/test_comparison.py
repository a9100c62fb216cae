"""Comparing scenarios from Python: differences seed by seed, with intervals."""

import math

import pytest
from scipy import stats

import serai
from tests.sweeping.tiny import SETTINGS

TINY = ["sensors.count=8", *SETTINGS]
SEEDS = range(4)


def loaded(protocol: str) -> serai.Scenario:
    return serai.load_scenario("field", TINY, protocol)


def test_differences_are_those_of_a_plain_loop() -> None:
    found = serai.compare(loaded("dg"), loaded("ced"), seeds=SEEDS)
    assert (found.names, found.seeds) == (("dg", "ced"), (0, 1, 2, 3))
    for metric in ("delivery_ratio", "transmissions", "mean_delay_s"):
        dg, ced = ([_value(name, seed, metric) for seed in SEEDS] for name in ("dg", "ced"))
        difference = found.differences["ced", metric]
        expected = stats.ttest_rel(ced, dg)
        low, high = expected.confidence_interval(0.95)
        assert difference.mean - difference.half_width() == pytest.approx(low)
        assert difference.mean + difference.half_width() == pytest.approx(high)
        assert found.means["dg", metric].mean == pytest.approx(sum(dg) / len(dg))
        assert found.differs("ced", metric) == (expected.pvalue < 0.05)


def _value(protocol: str, seed: int, metric: str) -> float:
    return float(getattr(serai.simulate(loaded(protocol), seed=seed).metrics, metric))


def test_a_scenario_does_not_differ_from_itself() -> None:
    found = serai.compare(loaded("dg"), loaded("dg"), seeds=3)
    assert found.names == ("field 1", "field 2")
    assert all(one.mean == 0 or math.isnan(one.mean) for one in found.differences.values())
    assert not any(found.differs("field 2", metric) for metric in found.definitions)
    assert found.better("field 2", "delivery_ratio") is None


def test_which_is_better_follows_from_the_metric() -> None:
    few = serai.load_scenario("field", [*TINY, "sensors.queue=1"], "dg")
    found = serai.compare(loaded("dg"), few, seeds=8)
    assert found.differs("field 2", "drops_full")
    assert found.better("field 2", "drops_full") is False
    assert found.better("field 2", "events") is None


def test_for_notebooks() -> None:
    shown = serai.compare(loaded("dg"), loaded("ced"), seeds=3)._repr_html_()
    assert shown.count("<tr>") == 1 + len(serai.compare(loaded("dg"), loaded("ced"), seeds=1).definitions)
    assert "ced − dg" in shown
    assert "nan" not in shown.lower()


@pytest.mark.parametrize(
    ("scenarios", "seeds", "problem"),
    [
        (("dg", "tinymq"), 1, "networks of one kind can be compared, not field and overlay"),
        (("dg",), 1, "at least two scenarios"),
        (("dg", "ced"), 0, "one seed"),
        (("dg", "no-such"), 1, "no-such"),
    ],
)
def test_what_cannot_be_compared(scenarios: tuple[str, ...], seeds: int, problem: str) -> None:
    with pytest.raises(serai.BadInput, match=problem):
        serai.compare(*scenarios, seeds=seeds)
