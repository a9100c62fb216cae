"""The answer that opens a report: who delivers most, and who of those that deliver about as much does best otherwise.

Nobody is called the best whose difference from the next is not certain: `level_with` decides that for every sentence.
A protocol that gives up on the slow ones looks quick, and one that carries nothing lives long: delay, cost and lifetime
are never praised without what was delivered, nor where much less was delivered than could be.
"""

from __future__ import annotations

import math
from typing import Final

from serai.core.statistics import with_interval
from serai.kinds import protocol_label
from serai.report.results import Case, Difference, Results
from serai.report.wording import in_words, three_digits

DELIVERY: Final = "delivery_ratio"
ALMOST: Final = 0.9
"""Who delivers at least this part of the most that anybody delivers is compared in other metrics, too."""
LIFETIME: Final = "lifetime_days"
_SIGNIFICANT: Final = 0.05
_MOST_RANKED: Final = 4


def opening(results: Results) -> str:
    """What each delivers; then who is best in what else, of those that deliver almost as much as the first."""
    swept = len(results.numbers) > 1
    order = ranked(results, DELIVERY, list(results.distinct))
    if not order:
        return "What was delivered is not known, so nothing is called the best."
    first = _span(results, DELIVERY, order) if swept else _order(results, order)
    others = [fair_metric(results, metric) for metric in results.headlines if metric != DELIVERY]
    others = [metric for metric in dict.fromkeys(others) if results.definitions[metric].better]
    return " ".join(filter(None, [first, _otherwise(results, order, others, swept)]))


def headline(results: Results) -> str:
    """Who delivers most and what that costs, in one sentence or two; of a sweep how far apart its ends are."""
    order = ranked(results, DELIVERY, list(results.distinct))
    if len(order) < 2:
        return ""
    if len(results.numbers) > 1:
        ends = [f"{100 * results.estimate(case, DELIVERY).mean:.0f} % ({results.name(case)})" for case in order]
        return f"Between {ends[-1]} and {ends[0]} of what subscribers want is delivered.{_by_point(results)}"
    if len({results.estimate(case, DELIVERY).mean for case in order}) == 1:
        return _all_alike(results, order)
    best, *others = order[:_MOST_RANKED]
    alike = level_with(results, DELIVERY, order[:_MOST_RANKED])
    behind = [case for case in others if case not in alike]
    share = {case: f"{100 * results.estimate(case, DELIVERY).mean:.0f} %" for case in order}
    if alike:
        who = _listed([f"{results.name(case)} ({share[case]})" for case in (best, *alike)])
        first = f"{who} deliver most, with no certain difference between them"
    else:
        first = f"{results.name(best)} delivers most, {share[best]} of what subscribers want"
    ahead = f", ahead of {_listed([f'{results.name(case)} ({share[case]})' for case in behind])}" if behind else ""
    return f"{first}{ahead}.{_life(results, comparable(results, order))}"


def _by_point(results: Results) -> str:
    """Of a sweep of several protocols: who delivers most at which points, as far as that is certain."""
    where: dict[tuple[str, ...], list[int]] = {}
    tested = True
    for point in results.numbers:
        order = ranked(results, DELIVERY, results.at(point))
        if len(order) > 1:
            first = sorted((order[0], *level_with(results, DELIVERY, order)), key=results.cases.index)
            tested &= all(_tested(results, order[0], other, DELIVERY) for other in order[1:])
            where.setdefault(tuple(protocol_label(case.protocol) for case in first), []).append(point)
    said = ""
    for who, points in where.items():
        ahead = f"{who[0]} delivers most" if len(who) == 1 else f"{_listed(list(who))} deliver most"
        certain = "" if len(who) == 1 else ", with no certain difference between them"
        said += f" {ahead} at {_points(results, points)}{certain}."
    return f"{said[:-1]} (paired tests under common seeds)." if said and tested else said


def _points(results: Results, points: list[int]) -> str:
    """Some of the points of a sweep, in words."""
    if len(points) == len(results.numbers):
        return "every point"
    if len(points) > _MOST_RANKED:
        return f"{len(points)} of {len(results.numbers)} points"
    if shared := _settings_of(results, points):
        return f"{shared}, whatever else is set"
    return _listed([results.points[point].short(results.varied) for point in points], "; ")


def _settings_of(results: Results, points: list[int]) -> str:
    """The settings that these points have in common and no other point has; nothing where there are none."""
    if len(results.varied) < 2 or len(points) < 2:
        return ""
    first = results.points[points[0]]
    common = {key: value for key, value in first.settings.items()
              if all(results.points[point].settings.get(key) == value for point in points)}  # fmt: skip
    alike = [n for n in results.numbers if common.items() <= results.points[n].settings.items()]
    return first.short(list(common)) if common and alike == sorted(points) else ""


def comparable(results: Results, order: list[Case]) -> list[Case]:
    """Those that deliver almost as much as the first: what else they do is compared with it."""
    least = ALMOST * results.estimate(order[0], DELIVERY).mean
    return [case for case in order if results.estimate(case, DELIVERY).mean >= least]


def _all_alike(results: Results, order: list[Case]) -> str:
    """That all deliver the same, and in what they certainly differ first."""
    share = f"{100 * results.estimate(order[0], DELIVERY).mean:.0f} %"
    who = f"{_listed([results.name(case) for case in order])} {'both' if len(order) == 2 else 'all'}"
    first = f"{who} deliver {share} of what subscribers want."
    for metric in results.headlines:
        found = ranked(results, metric, order) if fair_metric(results, metric) == metric != DELIVERY else []
        if len(found) > 1 and differ(results, found[0], found[-1], metric):
            scale = results.scale(metric)
            ends = _listed([_named(results, case, metric) for case in (found[0], found[-1])])
            return f"{first} They differ in {scale.name}: {ends}."
    return first


def _named(results: Results, case: Case, metric: str) -> str:
    scale = results.scale(metric)
    value = three_digits(scale.factor * results.estimate(case, metric).mean)
    return f"{results.name(case)} {value} {scale.unit}".rstrip()


def _life(results: Results, fair: list[Case]) -> str:
    """How long the first one's batteries last, and with whom that is certain to differ most."""
    if LIFETIME not in results.headlines:
        return ""
    best, *others = fair
    days = {case: results.estimate(case, LIFETIME).mean for case in (best, *others)}
    apart = [case for case in others if math.isfinite(days[case]) and differ(results, best, case, LIFETIME)]
    first = f" {results.name(best)}'s first battery is empty after {days[best]:.1f} days"
    if not math.isfinite(days[best]) or not apart:
        return f"{first}." if math.isfinite(days[best]) else ""
    other = max(apart, key=lambda case: abs(days[case] - days[best]))
    return f"{first}; with {results.name(other)} that takes {days[other]:.1f}."


def _otherwise(results: Results, order: list[Case], metrics: list[str], swept: bool) -> str:
    """Who is best in other metrics, of those that deliver almost as much as the first."""
    fair = comparable(results, order)
    known = [metric for metric in metrics if ranked(results, metric, fair)]
    if len(order) < 2 or not known:
        return ""
    best = results.name(order[0])
    if len(fair) < 2:
        names = _listed([results.scale(metric).name for metric in known])
        return f"No other delivers nine tenths as much as {best}; {names} of such different services are not compared."
    if swept:
        among = "" if len(fair) == len(order) else f"Of those that deliver at least nine tenths as much as {best}"
        spans = " ".join(_span(results, metric, ranked(results, metric, fair)) for metric in known)
        return f"{among}: {spans}" if among else spans
    bests = "; ".join(_best_of(results, metric, ranked(results, metric, fair)) for metric in known)
    if len(fair) == len(order):
        return f"{bests[0].upper()}{bests[1:]}."
    who = _listed([results.name(case) for case in fair[:_MOST_RANKED]])
    among = f"Of {who}" if len(fair) <= _MOST_RANKED else "Of those"
    return f"{among}, which deliver at least nine tenths of the highest share, {bests}."


def fair_metric(results: Results, metric: str) -> str:
    """The metric to compare these cases by: another one where protocols do not count this one alike."""
    other = results.definitions[metric].compare_by
    return other if other in results.definitions and len(results.protocols) > 1 else metric


def _span(results: Results, metric: str, order: list[Case]) -> str:
    """How far the points of a sweep are apart in a metric, from worst to best."""
    name = results.scale(metric).name.capitalize()
    scale, (first, last) = results.scale(metric), (order[0], order[-1])
    values = {with_interval(results.estimate(case, metric), scale.factor) for case in (first, last)}
    if len(order) == 1:
        return f"{name}: {_said(results, first, metric)}."
    if len(values) == 1:
        return f"{name}: {' '.join([*values, scale.unit]).rstrip()}, the same for all."
    certain = "" if differ(results, first, last, metric) else ", with no certain difference between them"
    return f"{name}: from {_said(results, last, metric)} to {_said(results, first, metric)}{certain}."


def _order(results: Results, order: list[Case]) -> str:
    """What each delivers, the most first."""
    said = ", ".join(_said(results, case, DELIVERY) for case in order[:_MOST_RANKED])
    more = f", and {in_words(len(order) - _MOST_RANKED, 'other')} less" if len(order) > _MOST_RANKED else ""
    return f"{results.scale(DELIVERY).name.capitalize()}: {said}{more}."


def _best_of(results: Results, metric: str, order: list[Case]) -> str:
    """Who is best in a metric, or between whom that is not certain, in a few words."""
    name, alike = results.scale(metric).name, level_with(results, metric, order)
    if alike:
        several = _listed([_said(results, case, metric) for case in (order[0], *alike)][:_MOST_RANKED])
        return f"in {name} there is no certain best: {several}"
    return f"{_said(results, order[0], metric)} is best in {name}"


def _said(results: Results, case: Case, metric: str) -> str:
    """A case and its number; beside anything but the delivery itself, how much it delivers."""
    scale = results.scale(metric)
    value = with_interval(results.estimate(case, metric), scale.factor)
    delivers = "" if metric == DELIVERY else f", delivers {100 * results.estimate(case, DELIVERY).mean:.1f} %"
    return f"{results.name(case)} ({value}{f' {scale.unit}' if scale.unit else ''}{delivers})"


def _listed(words: list[str], between: str = ", ") -> str:
    """The words in a row: a, b and c; those that have commas themselves are set apart by semicolons."""
    between = between if any(", " in word for word in words) else ", "
    last = " and " if between == ", " else f"{between}and "
    return last.join(filter(None, [between.join(words[:-1]), words[-1]]))


def ranked(results: Results, metric: str, cases: list[Case]) -> list[Case]:
    """The cases from best to worst; none where it cannot be said what is better."""
    known = [case for case in cases if math.isfinite(results.estimate(case, metric).mean)]
    better = results.definitions[metric].better
    return sorted(known, key=lambda case: -better * results.estimate(case, metric).mean) if better else []


def level_with(results: Results, metric: str, order: list[Case]) -> list[Case]:
    """Of the cases from best to worst, those whose difference from the first is not certain."""
    return [case for case in order[1:] if not differ(results, order[0], case, metric)]


def differ(results: Results, case: Case, other: Case, metric: str) -> bool:
    """Whether two cases differ: by the paired test under common seeds if there is one, else by their intervals."""
    if found := _tested(results, case, other, metric):
        return found.p < _SIGNIFICANT
    one, two = results.estimate(case, metric), results.estimate(other, metric)
    return abs(one.mean - two.mean) > one.half_width() + two.half_width()


def _tested(results: Results, case: Case, other: Case, metric: str) -> Difference | None:
    """The paired test of two cases; None: there is none."""
    known = results.differences
    return known.get((case, other, metric)) or known.get((other, case, metric))
