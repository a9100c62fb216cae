"""Certainty by betting: stakes against a plain loop, and never more false claims than promised."""

import numpy as np
import pytest

from serai.kinds import FIELD
from serai.planning.betting import surely_at_least, surely_below
from serai.planning.goals import parse_goal
from serai.planning.race import Limits, race


def highest_stake(shares, bound):
    """Twelve gamblers, one run after the other."""
    stakes = [1.0] * 12
    highest = 0.0
    for share in shares:
        stakes = [stake * (1 + 0.98 * 0.6**k * (share - bound) / bound) for k, stake in enumerate(stakes)]
        highest = max(highest, sum(stakes) / 12)
    return highest


@pytest.mark.parametrize("seed", range(20))
def test_stakes_as_a_plain_loop_finds_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares, bound = rng.beta(9, 1, 200), float(rng.uniform(0.8, 0.95))
    for level in (0.5, 0.1, 1e-3, 1e-6):
        assert surely_at_least(shares, bound, level) == (highest_stake(shares, bound) >= 1 / level)
        assert surely_below(shares, bound, level) == (highest_stake(1 - shares, 1 - bound) >= 1 / level)


@pytest.mark.parametrize("bad", [0.3, 0.02, 0.002])
def test_on_the_border_claims_are_rarer_than_the_level(bad: float) -> None:
    """All is well but in rare runs in which nothing arrives; looked at after every one of 2,000 runs."""
    runs = np.random.default_rng(7).random((400, 2000)) >= bad
    claims = [surely_at_least(shares.astype(float), 1 - bad, 0.05) for shares in runs]
    thrown_out = [surely_below(shares.astype(float), 1 - bad, 0.05) for shares in runs]
    assert np.mean(claims) <= 0.05
    assert np.mean(thrown_out) <= 0.05


def test_a_race_that_is_certain_finds_the_cheapest_and_takes_longer() -> None:
    goal = parse_goal("delivery_ratio >= 90 %", FIELD)
    rng = np.random.default_rng(3)
    tables = [
        {"delivered_met": rng.binomial(1000, np.clip(rng.normal(mean, 0.03, 2560), 0, 1)).astype(float),
         "delivered_of": np.full(2560, 1000.0)} for mean in (0.8, 0.94, 0.97)
    ]  # fmt: skip
    usual, certain = (
        race([1, 2, 3], [goal], lambda wanted: {number: tables[number] for number in wanted}, Limits(certain=certain))
        for certain in (False, True)
    )
    assert (usual.named, certain.named) == (1, 1)
    assert certain.runs >= usual.runs


def test_runs_in_which_nobody_wants_anything_change_no_stake() -> None:
    goal = parse_goal("delivery_ratio >= 90 %", FIELD)
    rows = {"delivered_met": np.array([9.5, 0.0]), "delivered_of": np.array([10.0, 0.0])}
    shares, bound = goal.shares(rows)
    assert shares.tolist() == [0.95, 0.9]
    assert bound == 0.9
