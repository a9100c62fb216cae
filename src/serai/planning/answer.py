"""The answer of a plan in sentences: what to deploy, how sure that is, and what is not known."""

from __future__ import annotations

import math

from serai.core.statistics import t_quantile
from serai.log.pairs import Count
from serai.planning.deployments import Deployment
from serai.planning.goals import Goal, Value
from serai.planning.race import MOST_RUNS
from serai.planning.search import Found

_SEVERAL = {1: "the goal", 2: "both goals", 3: "all three goals"}


def headline(found: Found) -> str:
    """The answer in one sentence."""
    search, result = found.search, found.result
    if result.named is not None:
        named = search.deployments[result.named]
        return f"{named}: {money(named.cost)}."
    if result.ending == "none":
        return "No deployment you allow meets all goals."
    return f"Not decided after {result.runs:,} runs."


def explanation(found: Found) -> list[str]:
    """What stands behind the answer, a sentence or two each."""
    result = found.result
    if result.named is not None:
        return [_meets(found, found.search.deployments[result.named]), *_cheaper(found)]
    if result.ending == "none":
        return _none(found)
    return _undecided(found)


def _meets(found: Found, named: Deployment) -> str:
    goals = found.search.goals
    sure = f"{100 * found.search.limits.confidence:g} % sure"
    several = _SEVERAL.get(len(goals), f"all {len(goals)} goals")
    return f"It meets {several} ({sure}): {_all_said(found, named)}."


def _all_said(found: Found, deployment: Deployment) -> str:
    pairs = zip(found.search.goals, found.values[deployment.number], strict=True)
    return "; ".join(said_goal(goal, value) for goal, value in pairs)


def _cheaper(found: Found) -> list[str]:
    """What is known of the next cheaper one: that it misses a goal, or that nobody can tell yet."""
    search, result = found.search, found.result
    named = search.deployments[result.named or 0]
    if result.open_cheaper:
        first = search.deployments[result.open_cheaper[0]]
        goal, value = worst_goal(found, first)
        runs = result.standings[first.number].runs
        return [
            f"Perhaps {apart(first, named)} ({money(first.cost)}) is enough: {said_goal(goal, value)}; {runs:,} runs"
            f" cannot tell.{_at_most(goal, value)}"
        ]
    below = [one for one in search.deployments if one.cost < named.cost]
    if not below:
        return ["Nothing that you allow is cheaper."]
    nearest = max(below, key=lambda one: (one.cost, result.standings[one.number].margin))
    goal, value = worst_goal(found, nearest)
    return [
        f"The next cheaper, {apart(nearest, named)} ({money(nearest.cost)}), misses {goal.text}:"
        f" {said_goal(goal, value)}."
    ]


def _at_most(goal: Goal, value: Value) -> str:
    """How far an open one may be from its goal: if it is little, the price may decide."""
    if not goal.of_shares or math.isnan(value.low):
        return ""
    return f" It lacks {100 * max(0.0, goal.wanted - value.low):.1f} points at most: decide by price."


def _none(found: Found) -> list[str]:
    """Which goal fails everywhere, what came nearest, and whether another protocol could help."""
    nearest = found.search.deployments[found.nearest]
    everywhere = [
        goal.text
        for place, goal in enumerate(found.search.goals)
        if all(not _reaches(goal, values[place]) for values in found.values.values())
    ]
    sentences = [f"{' and '.join(everywhere)} {_fail(everywhere)} everywhere."] if everywhere else []
    goal, value = worst_goal(found, nearest)
    sentences.append(
        f"Nearest: {nearest} ({money(nearest.cost)}), but {said_goal(goal, value)} where {goal.text} is asked for."
    )
    return [*sentences, *_no_protocol(found)]


def _fail(goals: list[str]) -> str:
    return "fails" if len(goals) == 1 else "fail"


def _no_protocol(found: Found) -> list[str]:
    """That a goal is beyond what contacts allow, if it is."""
    for goal, bound in zip(found.search.goals, found.bounds, strict=True):
        if bound is not None and bound < goal.bound:
            return [
                f"No protocol could do better than {100 * bound:.1f} % with these paths where {goal.text} is asked"
                " for: more or other paths are needed, not another protocol."
            ]
    return []


def _undecided(found: Found) -> list[str]:
    search, result = found.search, found.result
    if result.guess is None:
        nearest = search.deployments[found.nearest]
        goal, value = worst_goal(found, nearest)
        said = f"None looks good enough so far. Nearest: {nearest} ({money(nearest.cost)}): {said_goal(goal, value)}."
        return [said, f"To go on: --at-most {2 * search.limits.budget}."]
    guess = search.deployments[result.guess]
    return [f"Best guess: {guess} ({money(guess.cost)}): {_all_said(found, guess)}.", _more_runs(found, guess)]


def _more_runs(found: Found, guess: Deployment) -> str:
    """How many runs would decide, if runs go on as they do: n is about (t sd / margin)^2."""
    limits, standing = found.search.limits, found.result.standings[guess.number]
    look = standing.look + 1
    level = (1 - limits.confidence) / 2 / (look * (look + 1)) / len(found.search.deployments)
    needed = math.inf
    if standing.margin > 0:
        needed = (t_quantile(1 - 2 * level, max(standing.runs, 2) - 1) / standing.margin) ** 2
    if needed > MOST_RUNS:
        return f"It is closer to a goal than {MOST_RUNS:,} runs of it could tell: decide by price, or ask for less."
    rivals = [number for number in found.result.open_cheaper if found.search.deployments[number].cost <= guess.cost]
    more = math.ceil(max(needed - standing.runs, standing.runs) * max(len(rivals), 1) / 100) * 100
    budget = max(limits.budget, found.result.runs) + more
    return f"To decide, about {more:,} runs more: --at-most {math.ceil(budget / 1000) * 1000}."


def worst_goal(found: Found, deployment: Deployment) -> tuple[Goal, Value]:
    """The goal that a deployment is farthest from, for its size, and what its runs say about it."""
    goals, values = found.search.goals, found.values[deployment.number]
    return min(zip(goals, values, strict=True), key=lambda pair: _distance(*pair))


def _distance(goal: Goal, value: Value) -> float:
    if math.isnan(value.mean):
        return 0.0
    above = value.mean - goal.wanted
    return (above if goal.more_is_better else -above) / abs(goal.wanted or 1)


def _reaches(goal: Goal, value: Value) -> bool:
    return math.isnan(value.mean) or _distance(goal, value) >= 0


def apart(one: Deployment, other: Deployment) -> str:
    """What distinguishes a deployment from another, in words."""
    differs = {key: value for key, value in one.settings.items() if other.settings.get(key) != value}
    return str(Deployment(one.number, differs, one.scenario, one.cost)) if differs else str(one)


def said_value(goal: Goal, value: Value) -> str:
    """What the runs say about a goal: "96.8 % (95.9 to 97.6)"."""
    if math.isnan(value.mean):
        return "nothing to count"
    if goal.of_shares:
        return f"{100 * value.mean:.1f} % ({100 * value.low:.1f} to {100 * value.high:.1f})"
    return f"{value.mean:.4g} ({value.low:.4g} to {value.high:.4g})"


def said_goal(goal: Goal, value: Value) -> str:
    """The same in a sentence: "96.8 % (95.9 to 97.6) of the readings arrive within 1 h"."""
    number = said_value(goal, value)
    if goal.share is not None:
        return f"{_condition(goal)} in {number} of the runs"
    if isinstance(goal.measure, Count):
        return f"{number} {_WHAT[goal.measure.what]}{_within(goal)}"
    return f"{goal.measure} is {number} on average"


_WHAT = {
    "delivered": "of what is wanted arrives",
    "on_time": "of what is wanted arrives",
    "reached": "of the readings reach a subscriber",
}


def _within(goal: Goal) -> str:
    """The time that a goal asks for, as it is written there."""
    _, bracket, rest = goal.text.partition("(")
    return f" within {rest.partition(')')[0]}" if bracket else ""


def _condition(goal: Goal) -> str:
    """What has to hold in a run."""
    if isinstance(goal.measure, Count):
        return f"at least {100 * goal.bound:g} % {_WHAT[goal.measure.what]}{_within(goal)}"
    if goal.measure == "lifetime_days" and goal.at_least:
        return f"no sensor dies before day {goal.bound:g}"
    return f"{goal.measure} {'>=' if goal.at_least else '<='} {goal.bound:g}"


def money(cost: float) -> str:
    """A cost, without decimals where it has none."""
    return f"cost {cost:,.0f}" if cost == round(cost) else f"cost {cost:,.2f}"
