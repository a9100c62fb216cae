"""The race: few runs for every deployment, more for those that are not decided, until the cheapest is known.

What a deployment costs is known, so nothing is compared with anything but the goals: who meets them, cheapest first?
At look j a deployment has 10 * 2**(j-1) runs, seeds 0, 1, 2, ... With probability `confidence` the deployment that is
named meets every goal, and the cheapest that does is the named one or is listed as open. The levels of the tests add
up to that over any number of looks; docs/plan.md has the proof.

Decisions are a function of the first rows of each deployment, and of nothing else: there is no state to be kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from serai.core.statistics import binomial_tail, estimate, t_quantile
from serai.planning.betting import surely_at_least, surely_below
from serai.planning.goals import Columns, Floats, Goal, margin_of

FIRST_LOOK: Final = 10
MOST_RUNS: Final = 2560
"""Of one deployment."""

Verdict = Literal["open", "meets", "misses", "dearer"]
Ending = Literal["found", "found, cheaper ones open", "none", "undecided"]


@dataclass
class Standing:
    """How far a deployment has come."""

    number: int
    cost: float
    verdict: Verdict = "open"
    look: int = 0
    decided_in: int | None = None
    """The round in which it left the race, or was found to meet the goals."""
    margin: float = -math.inf
    """The least distance of a mean score from 0, in standard deviations of a run: below 0 some mean misses a goal."""

    @property
    def runs(self) -> int:
        """How many runs it has been judged by."""
        return runs_at(self.look)


@dataclass(frozen=True)
class Round:
    """The state of the race after a round."""

    number: int
    runs: int
    meeting: int
    missing: int
    dearer: int
    still_open: int

    @property
    def deployments(self) -> int:
        """How many there are, in the race or not."""
        return self.meeting + self.missing + self.dearer + self.still_open


@dataclass(frozen=True)
class Limits:
    """How sure the answer must be, and how much it may cost to get it."""

    confidence: float = 0.95
    most_runs: int = MOST_RUNS
    budget: int = 10**9
    """Runs of all deployments together."""
    certain: bool = False
    """Whether the levels must hold whatever runs are like, and not only where their means are nearly normal."""


@dataclass(frozen=True)
class Result:
    """How the race ended."""

    ending: Ending
    named: int | None
    """The cheapest that surely meets all goals."""
    guess: int | None
    """The cheapest not thrown out whose means meet all goals: a guess."""
    open_cheaper: tuple[int, ...]
    """Undecided ones that would be cheaper than the named one, cheapest first."""
    standings: tuple[Standing, ...]
    rounds: tuple[Round, ...] = field(default=())

    @property
    def runs(self) -> int:
        """Runs of all deployments together."""
        return sum(standing.runs for standing in self.standings)


Sample = Callable[[Mapping[int, int]], Mapping[int, Columns]]
"""The rows of seeds 0 .. n-1 of each deployment that is asked for, by its number."""


def runs_at(look: int) -> int:
    """How many runs a deployment has at a look."""
    return FIRST_LOOK << (look - 1) if look else 0


def race(
    costs: Sequence[float],
    goals: Sequence[Goal],
    sample: Sample,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    on_round: Callable[[Round], None] = lambda _: None,
) -> Result:
    """Find the cheapest deployment that meets all goals."""
    standings = [Standing(number, cost) for number, cost in enumerate(costs)]
    rounds: list[Round] = []
    looked_at = standings
    spent = len(standings) * FIRST_LOOK
    while looked_at:
        for standing in looked_at:
            standing.look += 1
        rows = sample({standing.number: standing.runs for standing in looked_at})
        for standing in looked_at:
            _look_at(standing, rows[standing.number], goals, len(costs), limits, len(rounds) + 1)
        _send_home_the_dearer(standings, len(rounds) + 1)
        rounds.append(_round(len(rounds) + 1, standings))
        on_round(rounds[-1])
        looked_at = _next_looks(standings, limits)
        spent += sum(standing.runs for standing in looked_at)  # the runs double
        if spent > limits.budget:
            break
    return _result(standings, rounds)


def _look_at(
    standing: Standing, rows: Columns, goals: Sequence[Goal], deployments: int, limits: Limits, number: int
) -> None:
    """Judge a deployment by its first rows."""
    first = {name: rows[name][: standing.runs] for goal in goals for name in goal.columns()}
    standing.margin = min(margin_of(goal.score(first)) for goal in goals)
    test = _bets if limits.certain else _intervals
    meets, misses = test(goals, first, deployments, 1 - limits.confidence, standing.look)
    if meets or misses:
        standing.verdict, standing.decided_in = "misses" if misses else "meets", number


def _bets(goals: Sequence[Goal], rows: Columns, deployments: int, alpha: float, _look: int) -> tuple[bool, bool]:
    """Whether all goals are surely met, or one is surely missed, by betting: one may look as often as one likes."""
    shares = [goal.shares(rows) for goal in goals]
    meets = all(surely_at_least(*share, alpha / 2 / deployments) for share in shares)
    return meets, any(surely_below(*share, alpha / 2 / len(goals)) for share in shares)


def _intervals(goals: Sequence[Goal], rows: Columns, deployments: int, alpha: float, look: int) -> tuple[bool, bool]:
    """The same by t intervals and binomial tails, whose levels get smaller from look to look."""
    each_look = alpha / 2 / (look * (look + 1))  # 1/2 + 1/6 + 1/12 + ... = 1
    scores = [goal.score(rows) for goal in goals]
    meets = all(
        _meets(goal, score, goal.worst(rows), each_look / deployments, alpha / 2)
        for goal, score in zip(goals, scores, strict=True)
    )
    return meets, any(_misses(goal, score, each_look / len(goals)) for goal, score in zip(goals, scores, strict=True))


def _meets(goal: Goal, score: Floats, worst: float | None, level: float, unseen: float) -> bool:
    """Whether the mean score is surely at least 0."""
    if goal.share is not None:
        return binomial_tail(_hits(score), len(score), goal.share) <= level
    found = estimate(score.tolist())
    if found.mean - t_quantile(1 - 2 * level, found.count - 1) * found.standard_error < 0:
        return False
    if worst is None or worst == 0:  # no run is the worst possible, or nobody wants anything
        return True
    # The guard: how often could a run be a disaster for the mean to sink to 0? So often that one would have been seen.
    share = found.mean / (found.mean - worst)
    return (1 - share) ** found.count <= unseen


def _misses(goal: Goal, score: Floats, level: float) -> bool:
    """Whether the mean score is surely below 0."""
    if goal.share is not None:
        runs, hits = len(score), _hits(score)
        return binomial_tail(runs - hits, runs, 1 - goal.share) <= level
    found = estimate(score.tolist())
    return found.mean + t_quantile(1 - 2 * level, found.count - 1) * found.standard_error < 0


def _hits(score: Floats) -> int:
    return int((score > 0).sum())


def _send_home_the_dearer(standings: Sequence[Standing], number: int) -> None:
    """Whoever is not decided and not cheaper than the cheapest that meets the goals leaves."""
    best = min((standing.cost for standing in standings if standing.verdict == "meets"), default=math.inf)
    for standing in standings:
        if standing.verdict == "open" and standing.cost >= best:
            standing.verdict, standing.decided_in = "dearer", number


def _next_looks(standings: Sequence[Standing], limits: Limits) -> list[Standing]:
    """Who gets more runs: the undecided up to the cheapest of them whose means meet all goals."""
    going = [one for one in standings if one.verdict == "open" and runs_at(one.look + 1) <= limits.most_runs]
    promising = [one.cost for one in going if one.margin >= 0]
    return [one for one in going if one.cost <= min(promising, default=math.inf)]


def _round(number: int, standings: Sequence[Standing]) -> Round:
    verdicts = [standing.verdict for standing in standings]
    return Round(
        number,
        sum(standing.runs for standing in standings),
        verdicts.count("meets"),
        verdicts.count("misses"),
        verdicts.count("dearer"),
        verdicts.count("open"),
    )


def _result(standings: Sequence[Standing], rounds: Sequence[Round]) -> Result:
    meeting = [one for one in standings if one.verdict == "meets"]
    # Of those that cost the same, the one with the widest margin.
    named = min(meeting, key=lambda one: (one.cost, -one.margin, one.number), default=None)
    still_open = sorted((one for one in standings if one.verdict == "open"), key=lambda one: (one.cost, one.number))
    if named is None:
        ending: Ending = "undecided" if still_open else "none"
    else:
        ending = "found, cheaper ones open" if still_open else "found"
    guesses = [one for one in [*meeting, *still_open] if one.margin >= 0]
    guess = min(guesses, key=lambda one: (one.cost, -one.margin, one.number), default=None)
    return Result(
        ending,
        named.number if named else None,
        guess.number if guess else None,
        tuple(one.number for one in still_open),
        tuple(standings),
        tuple(rounds),
    )
