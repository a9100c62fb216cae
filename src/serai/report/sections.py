"""The chapters of a report: from the summary of a sweep to sentences, tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from serai.core.statistics import Estimate
from serai.field.log import FieldRun
from serai.kinds import PROTOCOLS, protocol_label
from serai.log.run import SimulatedRun
from serai.report.answer import DELIVERY, comparable, differ, fair_metric, headline, opening, ranked
from serai.report.fates import in_short
from serai.report.figures import Picture, Series, colour_of, curves, levels, mark_of, stacked, steps
from serai.report.heat import heat_maps
from serai.report.results import Case, Results
from serai.report.runs import chapters_on, where_of
from serai.report.section import Block, Section
from serai.report.tables import Cell, Table, estimated, plain, text
from serai.report.tradeoff import trade_off
from serai.report.wording import in_words, scale_of, three_digits

_MOST_POINTS_DRAWN: Final = 6
_MOST_COSTS_DRAWN: Final = 3
_MOST_PRICES: Final = 2
_OUTDATED: Final = (
    "No run is drawn, and nothing is said of losses: serai has changed since these runs were made. The same command"
    " with a new folder draws them."
)
_FIELD: Final = (
    "Sensors publish events; those that hear each other form communities. Subscribers walk by and want the events that"
    " match their subscriptions."
)


def sections(results: Results, caveats: tuple[str, ...] = (), against_papers: Section | None = None) -> list[Section]:
    """Every chapter, in the order of reading; `caveats` end the answer that opens the report."""
    papers = against_papers or Section("papers", "Against the papers", absent="they print nothing on these runs")
    return [
        _answer(results, caveats),
        *chapters_on(_drawn(results)),
        _main_table(results),
        _against_settings(results, drawn_elsewhere=any(part.pictures for part in papers.parts)),
        _delays(results),
        _costs(results),
        _drops(results),
        _fairness(results),
        papers,
        _scenarios(results),
        _reproduce(results),
    ]


# --- 1 and 2: who does best


def _answer(results: Results, caveats: tuple[str, ...]) -> Section:
    if not results.headlines:
        return Section("answer", "The answer", absent="no metric says whether more or less of it is better")
    seeds = f"These are means over {in_words(results.seeds, 'seed')} with 95 % confidence intervals."
    if results.differences and len(results.numbers) == 1:
        seeds += " What is called best, or ahead, is so by a paired test under common seeds (5 %)."
    lead, runs = headline(results), [run for run, _ in _drawn(results)]
    where = tuple(picture for run in runs[:1] if (picture := where_of(run)))
    pictures = (*where, *_delivered_against(results), *_prices(results))
    losses = in_short(runs)
    said = (
        *([_FIELD] if any(isinstance(run, FieldRun) for run in runs) else []),
        *([losses] if losses else []),
        opening(results),
        seeds,
        *_who_is_who(results),
        *_about(runs, _where_drawn(results)),
        *([_OUTDATED] if results.outdated else []),
        *caveats,
    )
    colours = {protocol_label(name): colour_of(name, results.protocols) for name in results.protocols}
    return Section("answer", "The answer", said, pictures=pictures, lead=lead, colours=colours)


def _who_is_who(results: Results) -> Iterator[str]:
    """What the names of the protocols stand for."""
    known = [PROTOCOLS[name] for name in results.protocols if name in PROTOCOLS]
    if said := "; ".join(f"{one.label}: {one.title}" for one in known if one.title.lower() != one.name):
        yield f"{said}."


def _drawn(results: Results) -> list[tuple[SimulatedRun, str]]:
    """The runs that are drawn, each with the colour of its protocol."""
    return [(run, colour_of(case.protocol, results.protocols)) for case, run in results.shown.items()]


def _delivered_against(results: Results) -> tuple[Picture, ...]:
    """What is delivered against a swept setting, or two."""
    maps = tuple(heat_maps(results, [DELIVERY]))
    if maps or DELIVERY not in results.headlines:
        return maps
    return tuple(picture for axis in swept_axes(results) for picture in _axis_pictures(results, axis, [DELIVERY]))[:1]


def _prices(results: Results) -> Iterator[Picture]:
    """Delivered against what it costs; where all deliver the same, one cost against the other."""
    first, *others = [name for name in results.headlines if fair_metric(results, name) == name] or [""]
    if first == DELIVERY and len({results.estimate(case, first).mean for case in results.cases}) == 1 and others:
        first, *others = others
    elif first != DELIVERY:
        return
    for metric in others[:_MOST_PRICES]:
        if picture := trade_off(results, metric, first):
            yield picture


def _where_drawn(results: Results) -> str:
    """At which point of several the runs that are drawn were."""
    points = [results.points[case.point].short(results.varied) for case in results.shown]
    return points[0] if points and len(results.numbers) > 1 else ""


def _about(runs: list[SimulatedRun], where: str) -> Iterator[str]:
    """Which runs are drawn."""
    fields = [run for run in runs if isinstance(run, FieldRun)]
    if runs:
        alike = len({run.world.event_values.tobytes() + run.world.high.tobytes() for run in fields}) < 2
        own = "" if alike else " Each protocol ran in the set-up of its own paper, so their events differ."
        at = f" All are of {where}, as is what is said about losses." if where else ""
        yield f"The runs drawn are those of seed {runs[0].seed}, the nearest to the means.{at}{own}"


def _main_table(results: Results) -> Section:
    table = case_table(
        results, "main", "Main results, mean ± 95 % confidence interval.", results.headlines, mark_best=True
    )
    return Section("main", "Main table", tables=(table,))


def case_table(results: Results, name: str, caption: str, metrics: tuple[str, ...], mark_best: bool = False) -> Table:
    """One line per case, one column per metric; the best of each point bold, who is not worse marked ≈."""
    several = len(results.numbers) > 1
    scales = [results.scale(metric) for metric in metrics]
    rows = []
    for case in results.cases:
        cells: list[Cell] = [text(results.points[case.point].label)] if several else []
        cells.append(text(protocol_label(case.protocol)))
        for metric, scale in zip(metrics, scales, strict=True):
            strong, remark = _standing(results, case, metric) if mark_best else (False, "")
            cells.append(estimated(results.estimate(case, metric), scale, strong, remark))
        rows.append(tuple(cells))
    heads = (*(("settings",) if several else ()), "protocol", *(scale.heading for scale in scales))
    remarks = _explained([cell for row in rows for cell in row])
    alike = _not_alike(results, metrics) if mark_best else ()
    return Table(name, caption, heads, tuple(rows), (*remarks, *alike, *_lacking(results)))


def _table_without_zeros(results: Results, name: str, caption: str, metrics: tuple[str, ...]) -> Table:
    """The same, without what is 0 in every run: that is said below."""
    zero = [metric for metric in metrics if all(_is_zero(results.estimate(case, metric)) for case in results.cases)]
    table = case_table(results, name, caption, tuple(metric for metric in metrics if metric not in zero))
    names = ", ".join(results.scale(metric).name for metric in zero)
    return replace(table, remarks=(*table.remarks, f"0 in every run: {names}.")) if zero else table


def _is_zero(measured: Estimate) -> bool:
    return measured.mean == 0 and not measured.standard_error > 0  # of a single run nobody knows the error


def _lacking(results: Results) -> Iterator[str]:
    """Which lines are the same, as the protocol does not have what was swept."""
    for protocol in results.protocols if len(results.distinct) < len(results.cases) else ():
        if lacks := [key for key in results.varied if key in results.ignored.get(protocol, ())]:
            names = " or ".join(lacks)
            yield f"{protocol_label(protocol)} does not have {names}: lines that differ only there are the same."


def _not_alike(results: Results, metrics: tuple[str, ...]) -> Iterator[str]:
    """Why no protocol is the best in a metric."""
    for metric in metrics:
        if (fair := fair_metric(results, metric)) != metric:
            name, other = (scale_of(results.definitions[one]).name for one in (metric, fair))
            yield f"{name.capitalize()} are not counted alike in all protocols; to compare them, use {other}."


def _explained(cells: list[Cell]) -> tuple[str, ...]:
    """What the marks in these cells mean."""
    least = "; in everything but delivery, among those that deliver at least nine tenths of the highest share there"
    best = [f"Bold: the best of its point{least}."] if any(cell.strong for cell in cells) else []
    alike = ["≈: no difference from the best by a paired test under common seeds (5 %)."]
    return tuple(best + (alike if any(cell.remark for cell in cells) else []))


def _standing(results: Results, case: Case, metric: str) -> tuple[bool, str]:
    """Whether a case is the best of its point in a metric, and a mark if it is not certainly worse than that one."""
    cases = results.at(case.point)
    if metric != DELIVERY:
        delivered = ranked(results, DELIVERY, cases)
        cases = comparable(results, delivered) if delivered else []
    order = ranked(results, metric, cases)
    if len(order) < 2 or case not in order or fair_metric(results, metric) != metric:
        return False, ""
    if case == order[0]:
        return True, ""
    return False, "" if differ(results, order[0], case, metric) else "≈"


# --- 3: against the swept setting


def _against_settings(results: Results, drawn_elsewhere: bool) -> Section:
    title = "Against the swept setting"
    above = {picture.name for picture in _delivered_against(results)}
    pictures = tuple(
        picture
        for axis in swept_axes(results)
        for picture in _axis_pictures(results, axis, results.headlines)
        if picture.name not in above
    )
    maps = tuple(picture for picture in heat_maps(results, results.headlines) if picture.name not in above)
    if not pictures and not maps:
        why = "its figures are among those of the papers" if drawn_elsewhere else "no setting with numbers was swept"
        return Section("swept", title, absent=why)
    words = ["Cells are means over all seeds, on one scale for each metric."] if maps else []
    words += ["Points are means with 95 % intervals; small dots are single seeds."] if pictures else []
    return Section("swept", title, tuple(words), pictures=(*maps, *pictures))


def swept_axes(results: Results) -> list[str]:
    """The settings that take more than one value, all of them numbers."""
    keys = dict.fromkeys(key for number in results.numbers for key in results.points[number].settings)
    return [key for key in keys if len({_at(results, number, key) for number in results.numbers} - {None}) > 1]


def _at(results: Results, point: int, key: str) -> float | None:
    """Where a point stands on an axis: the number that its setting begins with."""
    words = str(results.points[point].settings.get(key, "")).split()
    try:
        return float(words[0]) if words else None
    except ValueError:
        return None


def _axis_pictures(results: Results, axis: str, metrics: Sequence[str]) -> Iterator[Picture]:
    """One picture per metric and per combination of the other settings."""
    groups: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for number in results.numbers:
        if _at(results, number, axis) is not None:
            others = tuple(item for item in results.points[number].settings.items() if item[0] != axis)
            groups.setdefault(others, []).append(number)
    for index, (others, points) in enumerate(list(groups.items())[:_MOST_POINTS_DRAWN]):
        if len(points) < 2:
            continue
        where = f" ({', '.join(f'{key} = {value}' for key, value in others)})" if others else ""
        for metric in metrics:
            series = [_curve(results, metric, axis, protocol, points) for protocol in results.protocols]
            drawn = [one for one in series if one.at]
            if drawn:
                name = f"swept-{axis.replace('.', '-')}-{metric}{f'-{index}' if others else ''}"
                scale = results.scale(metric)
                yield curves(
                    name,
                    drawn,
                    _with_unit(results, points[0], axis),
                    scale.heading,
                    f"{scale.name.capitalize()} against {axis}{where}.",
                )


def _with_unit(results: Results, point: int, axis: str) -> str:
    """The setting's name and the unit that its values have, as the axis of a figure has them."""
    unit = str(results.points[point].settings[axis]).partition(" ")[2]
    return f"{axis}, {unit}" if unit else axis


def _curve(results: Results, metric: str, axis: str, protocol: str, points: list[int]) -> Series:
    cases = [case for case in results.cases if case.protocol == protocol and case.point in points]
    known = [case for case in cases if math.isfinite(results.estimate(case, metric).mean)]
    return series_of(results, metric, protocol, [(_at(results, case.point, axis) or 0.0, case) for case in known])


def series_of(results: Results, metric: str, protocol: str, cases: list[tuple[float, Case]]) -> Series:
    """The curve of a protocol through these cases, from left to right, in the unit that is printed."""
    factor = results.scale(metric).factor
    ordered = sorted(cases)
    found = [results.estimate(case, metric) for _, case in ordered]
    return Series(
        protocol_label(protocol),
        mark_of(protocol, results.protocols),
        [at for at, _ in ordered],
        [factor * one.mean for one in found],
        [factor * one.half_width() for one in found],
        [[factor * dot for dot in results.dots.get((case, metric), ())] for _, case in ordered],
    )


# --- 4 to 7: a closer look


def _delays(results: Results) -> Section:
    title = "Delay, undelivered pairs included"
    points = [point for point in results.numbers if any(case in results.delays for case in results.at(point))]
    if not points:
        return Section("delay", title, absent="the delays of single deliveries were not kept")
    pictures = []
    for point in points[:_MOST_POINTS_DRAWN]:
        series = [
            Series(
                protocol_label(case.protocol),
                mark_of(case.protocol, results.protocols),
                results.delays[case].delay_s,
                [100 * fraction for fraction in results.delays[case].fraction],
                (),
            )
            for case in results.at(point)
            if case in results.delays
        ]
        where = f" ({results.points[point].label})" if len(results.numbers) > 1 else ""
        caption = f"Wanted pairs served within a delay{where}: the curves end at the delivery ratio, not at 100 %."
        pictures.append(steps(f"delay-{point}", series, "delay, s", "served, % of wanted", caption))
    tables = tuple(_quantile_tables(results))
    if len(pictures) == 1:
        return Section("delay", title, beside=tuple(pictures), tables=tables)
    return Section("delay", title, pictures=tuple(pictures), tables=tables)


def _quantile_tables(results: Results) -> Iterator[Table]:
    """Within which delay a part of all wanted pairs is served; nothing where so many never are."""
    parts = (0.25, 0.5, 0.75, 0.9, 0.95)
    rows = []
    for case in [case for case in results.distinct if case in results.delays]:
        curve = results.delays[case]
        cells = [text(results.name(case))]
        for part in parts:
            within = next((d for d, f in zip(curve.delay_s, curve.fraction, strict=True) if f >= part), None)
            cells.append(Cell("never" if within is None else f"{within:,.0f}", within, right=True))
        rows.append(tuple(cells))
    caption = "Seconds until a given share of all wanted pairs was served, over all seeds together."
    yield Table("delay-quantiles", caption, ("case", *(f"{100 * part:.0f} %" for part in parts)), tuple(rows))


def _costs(results: Results) -> Section:
    title = "Cost"
    metrics = results.chapter("cost")
    if not metrics:
        return Section("cost", title, absent="no cost was measured")
    table = _table_without_zeros(results, "cost", "What it costs, mean ± 95 % confidence interval.", metrics)
    return Section(
        "cost", title, tables=(table,), pictures=_level_pictures(results, "cost", metrics[:_MOST_COSTS_DRAWN])
    )


def _level_pictures(results: Results, name: str, metrics: tuple[str, ...]) -> tuple[Picture, ...]:
    """How the protocols compare in each metric; none for several points, where curves say it better."""
    if len(results.numbers) > 1:
        return ()
    pictures = []
    for metric in metrics:
        scale = results.scale(metric)
        series = [_level(results, case, metric) for case in results.cases]
        caption = f"{scale.name.capitalize()}. {results.definitions[metric].meaning}"
        pictures.append(levels(f"{name}-{metric}", series, scale.heading, caption))
    return tuple(pictures)


def _level(results: Results, case: Case, metric: str) -> Series:
    one = series_of(results, metric, case.protocol, [(0.0, case)])
    return Series(results.name(case), one.mark, one.at, one.mean, one.half_width, one.dots)


def _drops(results: Results) -> Section:
    title = "Drops by cause"
    metrics = results.chapter("drops")
    if not metrics:
        return Section("drops", title, absent="this kind of network counts no drops by cause")
    table = _table_without_zeros(results, "drops", "Copies dropped in a run, by cause, mean ± 95 % interval.", metrics)
    meanings = " ".join(results.definitions[metric].meaning for metric in metrics)
    if len(results.numbers) > 1:
        return Section("drops", title, (meanings,), (table,))
    parts = {
        metric.removeprefix("drops_").replace("_", " "): [
            _or_nothing(results.estimate(case, metric).mean) for case in results.cases
        ]
        for metric in metrics
    }
    caption = "Copies dropped in a run, by cause."
    picture = stacked("drops", [results.name(case) for case in results.cases], parts, "copies per run", caption)
    return Section("drops", title, (meanings,), (table,), beside=(picture,))


def _or_nothing(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _fairness(results: Results) -> Section:
    title = "Fairness"
    metrics = results.chapter("fairness")
    if not metrics:
        return Section("fairness", title, absent="this kind of network has no measure of fairness")
    meanings = " ".join(results.definitions[metric].meaning for metric in metrics)
    table = case_table(results, "fairness", "Fairness, mean ± 95 % confidence interval.", metrics, mark_best=True)
    tables = (table, *_served_tables(results))
    return Section("fairness", title, (meanings,), tables, beside=_level_pictures(results, "fairness", metrics))


def _served_tables(results: Results) -> Iterator[Table]:
    """Which communities are served: the ratio by the size of the community where an event was born."""
    cases = [case for case in results.distinct if case in results.served]
    if not cases:
        return
    rows = []
    for size in results.served[cases[0]]:
        found = [results.served[case][size] for case in cases]
        ratios = [100 * one.delivered_pairs / one.wanted_pairs if one.wanted_pairs else math.nan for one in found]
        rows.append(
            (text(size), plain(found[0].events, f"{found[0].events:,}"), *(plain(r, three_digits(r)) for r in ratios))
        )
    seeds = in_words(results.served_seeds, "seed")
    caption = f"Delivered, %, by the size (sensors) of the community in which an event was born, {seeds} together."
    yield Table("communities", caption, ("community of", "events", *map(results.name, cases)), tuple(rows))


# --- 9 and 10: how to reproduce


def _scenarios(results: Results) -> Section:
    title = "The scenario, every default shown"
    known = [case for case in results.distinct if case in results.scenarios]
    if not known:
        return Section("scenario", title, absent="the scenario was not kept")
    shown = known[:_MOST_POINTS_DRAWN]
    words = f"The first {len(shown)} of {len(known)}; the others differ from them by their settings."
    blocks = tuple(Block(results.name(case), results.scenarios[case]) for case in shown)
    return Section("scenario", title, (words,) if len(shown) < len(known) else (), blocks=blocks)


def _reproduce(results: Results) -> Section:
    title = "How to reproduce this"
    rows = tuple((text(key), text(value)) for key, value in results.provenance.items())
    tables = (Table("provenance", "Where this comes from.", ("what", "which"), rows),) if rows else ()
    words = "The same version, scenario and seeds give the same numbers, on any number of cores."
    return Section("reproduce", title, (words,), tables)
