"""The study of SERAI as a page, for the terminal, as Markdown and as data."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from serai.core.statistics import Estimate
from serai.field.metrics import FieldMetrics
from serai.field.study import (
    ABLATIONS,
    AIMS,
    AXES,
    CET,
    CET_PLUS,
    COMPARED,
    DEFAULT,
    NAME,
    SERAI,
    TITLE,
    Axis,
    Variant,
    World,
    on_axis,
    runs_in,
    whole_dial,
)
from serai.log.metrics import declared
from serai.report.figures import Picture, Series, curves, front, mark_of, steps
from serai.report.page import write_page
from serai.report.section import Section
from serai.report.serai import Study, losses, worlds
from serai.report.tables import Cell, Table, estimated, text, to_markdown, to_text
from serai.report.wording import Scale, in_words, scale_of

_MAIN: Final = (*AIMS, "p95_delay_s", "transmissions_per_event", "control_energy_j", "load_imbalance")
_RATIO, _DELAY, _LIFETIME = AIMS
_WIDTH: Final = 118


# --- In words


def answer(study: Study) -> tuple[str, ...]:
    """The study in a few sentences, what is lost as well as what is won."""
    at = {metric: study.at(DEFAULT, SERAI, metric) for metric in AIMS}
    theirs = {metric: study.at(DEFAULT, CET_PLUS, metric) for metric in AIMS}
    times = at[_LIFETIME].mean / study.at(DEFAULT, CET, _LIFETIME).mean
    count = study.won[DEFAULT.name, CET_PLUS.name]["count"]
    worse = losses(study)
    compared = sum(not world.alone for world in worlds())
    return (
        f"SERAI delivers {_said(at, _RATIO)} after {_said(at, _DELAY)}, and the first battery lasts"
        f" {_said(at, _LIFETIME)}, {times:.1f} times as long as CET's. CET++, the best that CET can be, delivers"
        f" {_said(theirs, _RATIO)} after {_said(theirs, _DELAY)} and lasts {_said(theirs, _LIFETIME)}.",
        f"Better than CET++ in all three at once in {100 * study.share_won(DEFAULT, CET_PLUS):.1f} % of"
        f" {in_words(count, 'world')}.",
        f"In {in_words(compared, 'kind')} of world, against four protocols in three respects each, SERAI is worse"
        f" {in_words(len(worse), 'time')}, beyond chance{': see “Where it loses”' if worse else ''}.",
        "All lifetimes pay for all control messages. Nobody pays for listening while nothing is sent.",
    )


def _said(found: dict[str, Estimate], metric: str) -> str:
    scale = _scale(metric)
    unit = {"d": "days"}.get(scale.unit, scale.unit)
    return f"{scale.factor * found[metric].mean:.{1 if scale.unit != 's' else 0}f} {unit}"


# --- Tables


def _scale(metric: str) -> Scale:
    scale = scale_of(declared(FieldMetrics)[metric])
    return scale._replace(name="lifetime") if metric == _LIFETIME else scale


def main_table(study: Study) -> Table:
    """Everybody in the built-in world, and what contacts alone would allow."""
    scales = [_scale(metric) for metric in _MAIN]
    rows = [
        (
            text(variant.name, variant is SERAI),
            *(
                estimated(study.at(DEFAULT, variant, metric), scale, variant is SERAI)
                for metric, scale in zip(_MAIN, scales, strict=True)
            ),
        )
        for variant in COMPARED
    ]
    for name, (ratio, delay) in study.bounds.items():
        none = [text("–") for _ in scales[2:]]
        rows.append((text(f"bound: {name}"), estimated(ratio, scales[0]), estimated(delay, scales[1]), *none))
    count = study.bounds["epidemic"][0].count
    remarks = (
        f"Bounds, over {in_words(count, 'seed')}: every contact of a subscriber with the event's sensor (direct), with"
        " its community, or of subscribers who carry everything everywhere (epidemic) delivers, at once and for free.",
    )
    heads = ("", *(scale.heading for scale in scales))
    return Table("main", "The scenario field, all control paid.", heads, tuple(rows), remarks)


def wins_table(study: Study) -> Table:
    """In which part of the worlds SERAI is at least as good as each other protocol."""
    rows = []
    for variant in COMPARED:
        if variant is not SERAI:
            shares = [study.share_won(DEFAULT, variant, what) for what in (*AIMS, "all_at_once")]
            rows.append((text(variant.name), *(_share(share) for share in shares)))
    heads = ("SERAI against", *(_scale(metric).name for metric in AIMS), "all three at once")
    remark = "Equal counts as won; only ratios are ever equal, where both deliver everything."
    return Table("wins", "Worlds in which SERAI is at least as good, %.", heads, tuple(rows), (remark,))


def _share(part: float) -> Cell:
    return Cell(f"{100 * part:.1f}", 100 * part)


def axis_table(study: Study, axis: Axis) -> Table:
    """Everybody along one axis, and how often SERAI beats CET++ there."""
    metrics = _metrics_of(axis)
    scales = [_scale(metric) for metric in metrics]
    rows = []
    for world in on_axis(axis):
        for variant in runs_in(world):
            strong = variant is SERAI
            cells = [
                estimated(study.at(world, variant, metric), scale, strong)
                for metric, scale in zip(metrics, scales, strict=True)
            ]
            won = text("") if strong else _share(study.share_won(world, variant))
            place = Cell(f"{world.at:g}", world.at) if axis.is_numbered else text(world.name)
            rows.append((place, text(variant.name, strong), *cells, won))
    heads = (axis.label, "", *(scale.heading for scale in scales), "SERAI wins, %")
    remarks = tuple(filter(None, (axis.remark,)))
    return Table(axis.name, f"{axis.title}.", heads, tuple(rows), remarks)


def _metrics_of(axis: Axis) -> tuple[str, ...]:
    return (*AIMS, "sensors_alive") if axis.name == "battery" else tuple(AIMS)


def dial_table(study: Study) -> Table:
    """SERAI with each T_0, from impatient to frugal, and how often it then beats CET++."""
    scales = [_scale(metric) for metric in AIMS]
    rows = []
    for days, variant in whole_dial():
        cells = [
            estimated(study.at(DEFAULT, variant, metric), scale, variant is SERAI)
            for metric, scale in zip(AIMS, scales, strict=True)
        ]
        rows.append((Cell(f"{days:g}", days, strong=variant is SERAI), *cells))
    heads = ("T_0, d", *(scale.heading for scale in scales))
    return Table("dial", "The dial between delay and lifetime.", heads, tuple(rows))


def ablation_table(study: Study) -> Table:
    """What goes when a rule is taken away."""
    scales = [_scale(metric)._replace(name=f"{_scale(metric).name}, change") for metric in AIMS]
    rows = []
    for variant in ABLATIONS:
        found = [study.differences[DEFAULT.name, variant.name, metric] for metric in AIMS]
        worse = study.at(DEFAULT, SERAI, _LIFETIME).mean
        cells = [estimated(one, scale) for one, scale in zip(found, scales, strict=True)]
        rows.append((text(variant.name), *cells, _signed(found[-1].mean / worse)))
    heads = ("taken away", *(scale.heading for scale in scales), "of the lifetime, %")
    remark = "Paired, run by run. A rule that can go without loss would be one too many."
    return Table("ablation", "Each rule taken away on its own.", heads, tuple(rows), (remark,))


def _signed(part: float) -> Cell:
    return Cell(f"{100 * part:+.1f}".replace("-", "−"), 100 * part)


def losses_table(study: Study) -> Table:
    """Where another protocol is better, in what, by how much, and why."""
    rows = []
    for loss in losses(study):
        scale = _scale(loss.metric)
        ours, theirs = (study.at(loss.world, one, loss.metric) for one in (SERAI, loss.variant))
        rows.append(
            (
                text(loss.world.name),
                text(loss.variant.name),
                text(scale.heading),
                estimated(ours, scale),
                estimated(theirs, scale),
                text(loss.why),
            )
        )
    heads = ("world", "to", "in", "SERAI", "the other", "likely reason")
    return Table("losses", "Where another protocol is better, beyond chance.", heads, tuple(rows))


def single_losses(study: Study) -> str:
    """How the seeds are lost that SERAI does not win in the built-in world."""
    won = study.won[DEFAULT.name, CET_PLUS.name]
    lost = won["count"] - won["all_at_once"]
    if not lost:
        return f"Against CET++ in the built-in world: none of {in_words(won['count'], 'seed')} is lost in any respect."
    how = ", ".join(f"{won['count'] - won[metric]} in {_scale(metric).name}" for metric in AIMS)
    return (
        f"Against CET++ in the built-in world {in_words(lost, 'seed')} of {won['count']:,} are not won in all three at"
        f" once: {how}."
    )


# --- Pictures


def _front(study: Study) -> Picture:
    """Delay and lifetime: the dial as a curve, the others as points."""
    dialled = [variant for _, variant in whole_dial()]
    named = [(SERAI, dialled), *((variant, [variant]) for variant in COMPARED if variant is not SERAI)]
    series = [
        _series(variant, [(study.at(DEFAULT, one, _DELAY).mean, study.at(DEFAULT, one, _LIFETIME)) for one in shown], 1)
        for variant, shown in named
    ]
    caption = "Delay against lifetime: SERAI for T_0 from 2 to 40 days, others as they are. Better: up and to the left."
    return front("front", series, _scale(_DELAY).heading, _scale(_LIFETIME).heading, caption)


def _series(variant: Variant, points: Sequence[tuple[float, Estimate]], factor: float) -> Series:
    known = [(at, found) for at, found in points if math.isfinite(found.mean) and math.isfinite(at)]
    names = [one.protocol for one in COMPARED]
    return Series(
        variant.name,
        mark_of(variant.protocol, names),
        [at for at, _ in known],
        [factor * found.mean for _, found in known],
        [factor * found.half_width() for _, found in known],
    )


def _within(study: Study) -> Picture:
    """The part of what was wanted that is served within a time."""
    names = [one.protocol for one in COMPARED]
    series = [
        Series(one.name, mark_of(one.protocol, names), delay_s, [100 * part for part in parts], [])
        for one in COMPARED
        if one.name in study.delays
        for delay_s, parts in [study.delays[one.name]]
    ]
    return steps("within", series, "s after the event", "served, % of all wanted", "Served within a time; all seeds.")


def _along(study: Study, axis: Axis) -> tuple[Picture, ...]:
    pictures: list[Picture] = []

    def worlds_of(variant: Variant) -> list[World]:
        return [world for world in on_axis(axis) if variant in runs_in(world)]

    for metric in _metrics_of(axis) if axis.is_numbered else ():
        scale = _scale(metric)
        series = [
            _series(
                one,
                [(world.at, study.at(world, one, metric)) for world in on_axis(axis) if one in runs_in(world)],
                scale.factor,
            )
            for one in COMPARED
        ]
        drawn = [one for one in series if one.at]
        pictures.append(curves(f"{axis.name}-{metric}", drawn, axis.label, scale.heading, f"{axis.title}."))
    return tuple(pictures)


# --- The page, the terminal, Markdown, JSON


def _chapters(study: Study) -> Iterator[Section]:
    lead, *others = answer(study)
    yield Section(
        "answer",
        "The answer",
        tuple(others),
        (main_table(study), wins_table(study)),
        (_front(study), _within(study)),
        lead=lead,
    )
    worse = losses_table(study)
    yield Section("losses", "Where it loses", (single_losses(study), *_PRICE), (worse,) if worse.rows else ())
    yield Section("dial", "The dial", (_DIAL,), (dial_table(study),))
    yield Section("rules", "Each rule taken away", (), (ablation_table(study),))
    for axis in AXES:
        yield Section(axis.name, axis.title, (), (axis_table(study, axis),), _along(study, axis))
    yield Section("reproduce", "How to reproduce", (f"serai paper {NAME} --seeds {study.seeds}", _left_out()))


_DIAL: Final = (
    "T_0 is how long a battery is asked to last; the longer, the more hops are avoided and the longer events wait."
)
_PRICE: Final = (
    "What the numbers do not show: subscribers carry what others want, on their own batteries; every community that"
    " they pass learns where they go, how long they stay and what everybody subscribes to; nobody pays for listening.",
)


def _left_out() -> str:
    return (
        "Not simulated: control messages that are lost on the air, interference, and radios that cannot hear while they"
        " send."
    )


def write_study(study: Study, folder: Path) -> Path:
    """The page of the study, with its tables and figures beside it."""
    subtitle = (
        f"{in_words(study.runs, 'run')} · seeds 0 to {study.seeds - 1}, a fifth of them or fewer beside the main table"
    )
    return write_page(folder, TITLE, subtitle, list(_chapters(study)))


def _tables(study: Study) -> Iterator[tuple[str, str, Table]]:
    """Every table with a heading and what is said above it."""
    yield "The built-in world", "", main_table(study)
    yield "How often it wins", "", wins_table(study)
    yield "Where it loses", single_losses(study), losses_table(study)
    yield "The dial", _DIAL, dial_table(study)
    yield "Each rule taken away", "", ablation_table(study)
    for axis in AXES:
        yield axis.title, axis.remark, axis_table(study, axis)


def as_text(study: Study) -> str:
    """The study for a terminal."""
    lines = [
        line
        for words in answer(study)
        for line in (*textwrap.wrap(words, 80, initial_indent=" ", subsequent_indent=" "), "")
    ]
    for heading, words, table in _tables(study):
        lines += [f" {heading}", *textwrap.wrap(words, 80, initial_indent=" ", subsequent_indent=" ")]
        lines += [to_text(table) if table.rows else " nowhere", ""]
    return "\n".join(lines[:-1])


def as_markdown(study: Study) -> str:
    """The study as a page of the documentation."""
    lines = ["# SERAI against the others", ""]
    lines += _paragraph(
        f"This page is written by `serai paper {NAME} --seeds {study.seeds} --markdown FILE`: {study.runs:,} runs,"
        f" seeds 0 to {study.seeds - 1} for the main table, a fifth of them or fewer (but at least 20) for all others,"
        f" serai {study.version}. Nothing on it is edited by hand. Numbers are means with 95 % confidence intervals."
        " The protocol: [SERAI](serai.md)."
    )
    for words in (*answer(study), *_PRICE, _left_out()):
        lines += _paragraph(words)
    for heading, words, table in _tables(study):
        lines += [f"## {heading}", ""]
        lines += _paragraph(words) if words else []
        lines += [to_markdown(table) if table.rows else "Nowhere.\n"]
        lines += [f"* {remark}" for remark in table.remarks if remark != words]
        lines += [""] if table.remarks and table.remarks != (words,) else []
    return "\n".join(lines).rstrip() + "\n"


def _paragraph(words: str) -> list[str]:
    return [*textwrap.wrap(words, _WIDTH, break_long_words=False, break_on_hyphens=False), ""]


def as_dict(study: Study) -> dict[str, Any]:
    """The whole study, ready for JSON."""
    places = dict.fromkeys((world, variant) for world, variant, _ in study.estimates)
    return {
        "answer": list(answer(study)),
        "bounds": {
            name: {"delivery_ratio": _numbers(ratio), "mean_delay_s": _numbers(delay)}
            for name, (ratio, delay) in study.bounds.items()
        },
        "runs": [
            {
                "world": world,
                "variant": variant,
                **{
                    metric: _numbers(found)
                    for (where, who, metric), found in study.estimates.items()
                    if (where, who) == (world, variant)
                },
                "won_by_serai": study.won.get((world, variant)),
            }
            for world, variant in places
        ],
        "losses": [
            {"world": loss.world.name, "variant": loss.variant.name, "metric": loss.metric, "why": loss.why}
            for loss in losses(study)
        ],
    }


def _numbers(found: Estimate) -> dict[str, float | int | None]:
    return {"mean": _none(found.mean), "half_width": _none(found.half_width()), "runs": found.count}


def _none(value: float) -> float | None:
    return value if math.isfinite(value) else None
