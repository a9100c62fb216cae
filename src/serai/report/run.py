"""The page of a single run: its metrics, its picture, and its delay curve where there is one. No Spark here."""

from __future__ import annotations

import math
from pathlib import Path

from serai.field.log import FieldRun
from serai.field.metrics import FieldMetrics
from serai.kinds import kind_of_run, protocol_label
from serai.lab import delay_cdf, read_run
from serai.log.metrics import Metrics, TimedMetrics, declared
from serai.log.run import Run, SimulatedRun
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.metrics import OpportunisticMetrics
from serai.overlay.metrics import OverlayMetrics
from serai.report.figures import Picture, Series, colour_of, mark_of, steps
from serai.report.networks import spread
from serai.report.page import write_page
from serai.report.runs import DOTS, costs_of, lives_of, losses_of, where_of
from serai.report.section import Block, Section
from serai.report.tables import Cell, Table, plain, text
from serai.report.wording import in_bytes, in_time, scale_of, three_digits
from serai.scenario.write import to_toml


def write_run_report(folder: str | Path) -> Path:
    """Write the report of a run into its folder; the path of the page."""
    run = read_run(folder)
    if not isinstance(run, SimulatedRun):  # what real nodes logged
        chapters = [Section("picture", "Where it happened", pictures=_there(where_of(run))), _provenance(run)]
        return write_page(Path(folder), f"{run.protocol} in the field", repr(run), chapters)
    title = f"{protocol_label(run.protocol)}: {run.scenario.title or run.scenario.name}"
    return write_page(Path(folder), title, f"seed {run.seed} · {run.scenario.in_one_line()}", _chapters(run))


def _chapters(run: SimulatedRun) -> list[Section]:
    scenario = Block(protocol_label(run.protocol), to_toml(run.scenario))
    return [
        *_opening(run),
        Section("main", "Metrics", tables=(metrics_table(run.metrics, kind_of_run(run).headlines),)),
        Section("scenario", "The scenario, every default shown", blocks=(scenario,)),
        _provenance(run),
    ]


def _opening(run: SimulatedRun) -> list[Section]:
    """What came of the run in a sentence, where it was and what it cost there; then how long things took."""
    mark = colour_of(run.protocol, [run.protocol])
    costs, lost, life, delay = costs_of([(run, mark)]), losses_of([(run, mark)]), lives_of([(run, mark)]), _delays(run)
    maps = [*(picture for chapter in costs for picture in chapter.pictures), *lost.pictures]
    spreading = spread(run, mark) if isinstance(run, OpportunisticRun) else None
    pictures = _there(where_of(run), *maps, spreading)
    colours = {protocol_label(run.protocol): mark}
    said = (DOTS,) if isinstance(run, FieldRun) and maps else ()
    answer = Section("answer", "What came of it", said, pictures=pictures, lead=lead_of(run), colours=colours)
    words = tuple(words for words in lost.paragraphs if DOTS not in words)
    closer = _there(*lost.beside, *life.pictures, *delay.pictures)
    title = "When it arrives, and what never does"
    together = [Section("closer", title, words, pictures=closer)] if closer else []
    return [answer, *together, *(part for part in (*costs, lost, life, delay) if part.absent)]


def lead_of(run: SimulatedRun) -> str:
    """What came of a run, and what it cost, in a sentence or two."""
    name, metrics = protocol_label(run.protocol), run.metrics
    if not math.isfinite(metrics.delivery_ratio):
        return f"{name}: nobody wanted anything that was published."
    share = f"{100 * metrics.delivery_ratio:.1f} %".replace("100.0 %", "100 %")
    if isinstance(metrics, OverlayMetrics):
        far = (
            f", and a notification travels {metrics.notification_delay_ratio:.2f} times as far as on the shortest path"
        )
        way = far if math.isfinite(metrics.notification_delay_ratio) else ""
        stored = f"a query is stored at {metrics.nodes_per_query:.1f} nodes{way}"
        return f"{name} notifies subscribers of {share} of the matches; {stored}."
    delay_s = metrics.mean_delay_s if isinstance(metrics, TimedMetrics) else math.nan
    late = f", after {in_time(delay_s)} on average" if math.isfinite(delay_s) else ""
    first = f"{name} delivers {share} of what subscribers want{late}"
    if isinstance(metrics, FieldMetrics) and math.isfinite(metrics.lifetime_days):
        return f"{first}. The first battery is empty after {metrics.lifetime_days:.1f} days."
    if isinstance(metrics, OpportunisticMetrics) and math.isfinite(metrics.bytes_per_delivery):
        return f"{first}. Each delivery puts {in_bytes(metrics.bytes_per_delivery)} on the air."
    return f"{first}."


def _there(*pictures: Picture | None) -> tuple[Picture, ...]:
    return tuple(picture for picture in pictures if picture)


def _provenance(run: Run) -> Section:
    rows = tuple((text(name), text(version)) for name, version in run.versions.items())
    versions = Table("provenance", "Where this comes from.", ("what", "which"), rows)
    return Section("versions", "Versions", tables=(versions,))


def metrics_table(metrics: Metrics, headlines: tuple[str, ...] = ()) -> Table:
    """Every metric that the run has, in the unit that is printed, with its meaning; headlines are bold."""
    rows: list[tuple[Cell, ...]] = []
    for one in declared(type(metrics)).values():
        value = metrics.as_dict()[one.name]
        if isinstance(value, int | float):
            scale = scale_of(one, [value])
            whole = isinstance(value, int) and scale.factor == 1.0
            shown = f"{value:,}" if whole else three_digits(scale.factor * value)
            strong = one.name in headlines
            rows.append(
                (text(one.name, strong), plain(scale.factor * value, shown), text(scale.unit), text(one.meaning))
            )
    return Table("metrics", "All metrics of the run.", ("metric", "value", "unit", "meaning"), tuple(rows))


def _delays(run: SimulatedRun) -> Section:
    title = "Delay, undelivered pairs included"
    if kind_of_run(run).pairs is None:
        return Section("delay", title, absent="this kind of network has no delays")
    delay_s, fraction = delay_cdf(run)
    if not len(delay_s):
        return Section("delay", title, absent="nothing was delivered")
    curve = Series(
        protocol_label(run.protocol),
        mark_of(run.protocol, [run.protocol]),
        delay_s.tolist(),
        (100 * fraction).tolist(),
        (),
    )
    caption = "Wanted pairs served within a delay: the curve ends at the delivery ratio, not at 100 %."
    return Section("delay", title, pictures=(steps("delay", [curve], "delay, s", "served, % of wanted", caption),))
