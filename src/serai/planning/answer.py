"""The answer of a plan in sentences: what to deploy, how sure that is, and what is not known."""

from __future__ import annotations

import math

from serai.log.pairs import Count
from serai.planning.deployments import Deployment
from serai.planning.goals import Goal, Value
from serai.planning.search import Found


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
    goals, values = found.search.goals, found.values[named.number]
    sure = f"{100 * found.search.limits.confidence:g} % sure"
    several = {1: "the goal", 2: "both goals"}.get(len(goals), f"all {len(goals)} goals")
    parts = [f"{goal.text}: {said_value(goal, value)}" for goal, value in zip(goals, values, strict=True)]
    return f"It meets {several} ({sure}). {'; '.join(parts)}."


def _cheaper(found: Found) -> list[str]:
    """What is known of the next cheaper one: that it misses a goal, or that nobody can tell yet."""
    search, result = found.search, found.result
    if result.open_cheaper:
        first = search.deployments[result.open_cheaper[0]]
        goal, value = worst_goal(found, first)
        runs = result.standings[first.number].runs
        return [
            f"Perhaps {first} ({money(first.cost)}) is enough: {said_value(goal, value)} where {goal.text} is asked"
            f" for; {runs:,} runs cannot tell."
        ]
    named = search.deployments[result.named or 0]
    below = [one for one in search.deployments if one.cost < named.cost]
    if not below:
        return ["Nothing that you allow is cheaper."]
    nearest = max(below, key=lambda one: (one.cost, result.standings[one.number].margin))
    goal, value = worst_goal(found, nearest)
    return [f"The next cheaper, {nearest} ({money(nearest.cost)}), misses {goal.text}: {said_value(goal, value)}."]


def _none(found: Found) -> list[str]:
    nearest = found.search.deployments[found.nearest]
    goal, value = worst_goal(found, nearest)
    sentences = [
        f"Nearest: {nearest} ({money(nearest.cost)}), but {said_value(goal, value)} where {goal.text} is asked for."
    ]
    everywhere = [
        goal.text
        for place, goal in enumerate(found.search.goals)
        if all(not _reaches(goal, values[place]) for values in found.values.values())
    ]
    if everywhere:
        sentences.append(f"{' and '.join(everywhere)}: no deployment comes up to that.")
    return sentences


def _undecided(found: Found) -> list[str]:
    search, result = found.search, found.result
    if result.guess is None:
        return [f"None looks good enough so far; nearest: {search.deployments[found.nearest]}.", _more_runs(found)]
    guess = search.deployments[result.guess]
    parts = [said_value(goal, value) for goal, value in zip(search.goals, found.values[guess.number], strict=True)]
    return [f"Best guess: {guess} ({money(guess.cost)}): {'; '.join(parts)}.", _more_runs(found)]


def _more_runs(found: Found) -> str:
    budget = found.search.limits.budget
    return f"More runs would tell: --at-most {2 * budget}, or a goal that is not so close to what is possible."


def worst_goal(found: Found, deployment: Deployment) -> tuple[Goal, Value]:
    """The goal that a deployment is farthest from, for its size, and what its runs say about it."""
    goals, values = found.search.goals, found.values[deployment.number]
    return min(zip(goals, values, strict=True), key=lambda pair: _distance(*pair))


def _distance(goal: Goal, value: Value) -> float:
    wanted = goal.bound if goal.share is None else goal.share
    if math.isnan(value.mean):
        return 0.0
    return (value.mean - wanted if goal.at_least or goal.share is not None else wanted - value.mean) / abs(wanted or 1)


def _reaches(goal: Goal, value: Value) -> bool:
    return math.isnan(value.mean) or _distance(goal, value) >= 0


def said_value(goal: Goal, value: Value) -> str:
    """What the runs say about a goal: "96.8 % (95.9 to 97.6)"."""
    if math.isnan(value.mean):
        return "nothing to count"
    if goal.share is not None or isinstance(goal.measure, Count):
        of = " of runs" if goal.share is not None else ""
        return f"{100 * value.mean:.1f} % ({100 * value.low:.1f} to {100 * value.high:.1f}{of})"
    return f"{value.mean:.4g} ({value.low:.4g} to {value.high:.4g})"


def money(cost: float) -> str:
    """A cost, without decimals where it has none."""
    return f"cost {cost:,.0f}" if cost == round(cost) else f"cost {cost:,.2f}"
