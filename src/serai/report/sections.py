"""The chapters of a report: from the summary of a sweep to sentences, tables and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from serai.field.log import FieldRun
from serai.report.answer import DELIVERY, differ, fair_metric, headline, opening, ranked
from serai.report.figures import Picture, Series, colour_of, curves, levels, mark_of, stacked, steps
from serai.report.maps import energy_map, field_map, lives, loss_map, most_lost
from serai.report.results import Case, Results
from serai.report.tables import Cell, Table, estimated, plain, text
from serai.report.tradeoff import trade_off
from serai.report.wording import in_words, scale_of, three_digits

_MOST_POINTS_DRAWN: Final = 6
_MOST_COSTS_DRAWN: Final = 3
_MOST_PRICES: Final = 2
_ENERGY: Final = (
    "Size and colour of a dot: what the sensor spent on events, by square root and on one scale; a ring: the busiest."
)
_LOST: Final = (
    "Size and colour of a dot: how many pairs of an event born there and a subscriber that wants it were lost, by"
    " square root and on one scale. Why: the fate of the last copy that was sent for the subscriber, if any was."
)
_NO_LOG: Final = "the full log was not kept"
_NO_LIFE: Final = "no event was wanted by several and lived its whole life"


@dataclass(frozen=True)
class Block:
    """Something to fold out: a title and a text as it stands."""

    title: str
    text: str


@dataclass(frozen=True)
class Section:
    """A chapter; `absent` says why there is nothing in it."""

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    blocks: tuple[Block, ...] = ()
    absent: str = ""
    parts: tuple[Section, ...] = field(default=())
    pictures_first: bool = False
    """Whether pictures come after the first paragraph, not behind everything."""


def sections(results: Results, caveats: tuple[str, ...] = (), against_papers: Section | None = None) -> list[Section]:
    """Every chapter, in the order of reading; `caveats` end the answer that opens the report."""
    papers = against_papers or Section("papers", "Against the papers", absent="they print nothing on these runs")
    return [
        _answer(results, caveats),
        *field_chapters(_field_runs(results)),
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
        return Section("answer", "The answer", absent="no metric is known of which more or less would be better")
    seeds = f"These are means over {in_words(results.seeds, 'seed')} with 95 % confidence intervals."
    lead, runs = headline(results), _field_runs(results)
    pictures = (*(field_map(run) for run, _ in runs[:1]), *_prices(results))
    said = (*([lead] if lead else []), opening(results), seeds, *_about(runs, typical=True), *caveats)
    return Section("answer", "The answer", said, pictures=pictures, pictures_first=bool(lead))


def _field_runs(results: Results) -> list[tuple[FieldRun, str]]:
    """The runs that are drawn, each with the colour of its protocol."""
    shown = results.shown.items()
    return [(run, colour_of(case.protocol, results.protocols)) for case, run in shown if isinstance(run, FieldRun)]


def _prices(results: Results) -> Iterator[Picture]:
    """Delivered against what it costs."""
    if DELIVERY not in results.headlines:
        return
    others = [metric for metric in results.headlines if metric != DELIVERY and fair_metric(results, metric) == metric]
    for metric in others[:_MOST_PRICES]:
        if picture := trade_off(results, metric):
            yield picture


def _about(runs: list[tuple[FieldRun, str]], typical: bool = False) -> Iterator[str]:
    """Which runs are drawn."""
    if runs:
        alike = len({run.world.event_values.tobytes() + run.world.high.tobytes() for run, _ in runs}) == 1
        seed = f"The runs drawn are those of seed {runs[0][0].seed}" + (
            ", the nearest to the means." if typical else "."
        )
        yield seed + ("" if alike else " The protocols ran in set-ups of their own: their events are not the same.")


def field_chapters(runs: list[tuple[FieldRun, str]]) -> list[Section]:
    """Chapters on runs in fields, each with the colour of its protocol: who pays, what is lost, how events live."""
    if not runs or not all(len(run.world.sensor_x) for run, _ in runs):
        return []
    most_pj, most = (
        max(int(run.ledger.event_pj.max(initial=0)) for run, _ in runs),
        max(most_lost(run) for run, _ in runs),
    )
    spent = tuple(energy_map(run, most_pj, colour) for run, colour in runs)
    lost = tuple(picture for run, colour in runs if (picture := loss_map(run, most, colour)))
    life = lives(runs)
    return [
        Section("energy", "Where the energy goes", (_ENERGY,), pictures=spent),
        Section("lost", "Where events are lost, and why", (_LOST,), pictures=lost, absent="" if lost else _NO_LOG),
        Section("lives", "A typical event's life", pictures=(life,) if life else (), absent="" if life else _NO_LIFE),
    ]


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
        cells.append(text(case.protocol.upper()))
        for metric, scale in zip(metrics, scales, strict=True):
            strong, remark = _standing(results, case, metric) if mark_best else (False, "")
            cells.append(estimated(results.estimate(case, metric), scale, strong, remark))
        rows.append(tuple(cells))
    heads = (*(("settings",) if several else ()), "protocol", *(scale.heading for scale in scales))
    remarks = _explained([cell for row in rows for cell in row])
    return Table(name, caption, heads, tuple(rows), (*remarks, *(_not_alike(results, metrics) if mark_best else ())))


def _not_alike(results: Results, metrics: tuple[str, ...]) -> Iterator[str]:
    """Why no protocol is the best in a metric."""
    for metric in metrics:
        if (fair := fair_metric(results, metric)) != metric:
            name, other = (scale_of(results.definitions[one]).name for one in (metric, fair))
            yield f"{name.capitalize()} are not counted alike in all protocols: to compare them use {other}."


def _explained(cells: list[Cell]) -> tuple[str, ...]:
    """What the marks in these cells mean."""
    best = ["Bold: the best of its point."] if any(cell.strong for cell in cells) else []
    alike = ["≈: no difference from the best by a paired test under common seeds (5 %)."]
    return tuple(best + (alike if any(cell.remark for cell in cells) else []))


def _standing(results: Results, case: Case, metric: str) -> tuple[bool, str]:
    order = ranked(results, metric, results.at(case.point))
    if len(order) < 2 or case not in order or fair_metric(results, metric) != metric:
        return False, ""
    if case == order[0]:
        return True, ""
    return False, "" if differ(results, order[0], case, metric) else "≈"


# --- 3: against the swept setting


def _against_settings(results: Results, drawn_elsewhere: bool) -> Section:
    title = "Against the swept setting"
    pictures = tuple(picture for axis in swept_axes(results) for picture in _axis_pictures(results, axis))
    if not pictures:
        why = "its figures are among those of the papers" if drawn_elsewhere else "no setting with numbers was swept"
        return Section("swept", title, absent=why)
    return Section(
        "swept", title, ("Points are means with 95 % intervals; small dots are single seeds.",), pictures=pictures
    )


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


def _axis_pictures(results: Results, axis: str) -> Iterator[Picture]:
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
        for metric in results.headlines:
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
        protocol.upper(),
        mark_of(protocol, results.protocols),
        [at for at, _ in ordered],
        [factor * one.mean for one in found],
        [factor * one.half_width() for one in found],
        [[factor * dot for dot in results.dots.get((case, metric), ())] for _, case in ordered],
    )


# --- 4 to 7: a closer look


def _delays(results: Results) -> Section:
    title = "Delay, the undelivered counted"
    points = [point for point in results.numbers if any(case in results.delays for case in results.at(point))]
    if not points:
        return Section("delay", title, absent="the delays of single deliveries were not kept")
    pictures = []
    for point in points[:_MOST_POINTS_DRAWN]:
        series = [
            Series(
                case.protocol.upper(),
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
    return Section("delay", title, pictures=tuple(pictures), tables=tuple(_quantile_tables(results)))


def _quantile_tables(results: Results) -> Iterator[Table]:
    """Within which delay a part of all wanted pairs is served; nothing where so many never are."""
    parts = (0.25, 0.5, 0.75, 0.9, 0.95)
    rows = []
    for case in [case for case in results.cases if case in results.delays]:
        curve = results.delays[case]
        cells = [text(results.name(case))]
        for part in parts:
            within = next((d for d, f in zip(curve.delay_s, curve.fraction, strict=True) if f >= part), None)
            cells.append(Cell("never" if within is None else f"{within:,.0f}", within, right=True))
        rows.append(tuple(cells))
    caption = "Seconds until a part of all wanted pairs was served, all seeds together."
    yield Table("delay-quantiles", caption, ("case", *(f"{100 * part:.0f} %" for part in parts)), tuple(rows))


def _costs(results: Results) -> Section:
    title = "Cost"
    metrics = results.chapter("cost")
    if not metrics:
        return Section("cost", title, absent="no cost was measured")
    table = case_table(results, "cost", "What it costs, mean ± 95 % confidence interval.", metrics)
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
    table = case_table(results, "drops", "Copies dropped in a run, by cause, mean ± 95 % interval.", metrics)
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
    return Section("drops", title, (meanings,), (table,), (picture,))


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
    return Section("fairness", title, (meanings,), tables, _level_pictures(results, "fairness", metrics))


def _served_tables(results: Results) -> Iterator[Table]:
    """Which communities are served: the ratio by the size of the community where an event was born."""
    cases = [case for case in results.cases if case in results.served]
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
    caption = f"Delivered by the size of the community (sensors) in which an event was born, {seeds} together, %."
    yield Table("communities", caption, ("community of", "events", *map(results.name, cases)), tuple(rows))


# --- 9 and 10: how to reproduce


def _scenarios(results: Results) -> Section:
    title = "The scenario, every default shown"
    known = [case for case in results.cases if case in results.scenarios]
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
