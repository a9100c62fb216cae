"""The page of a single run: its metrics, its picture, and its delay curve where there is one. No Spark here."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from serai.field.log import FieldRun
from serai.kinds import kind_of_run
from serai.lab import delay_cdf, read_run
from serai.log.metrics import Metrics, declared
from serai.log.run import Run, SimulatedRun
from serai.report.figures import Picture, Series, colour_of, mark_of, steps
from serai.report.maps import field_map
from serai.report.page import write_page
from serai.report.sections import Block, Section, field_chapters
from serai.report.tables import Cell, Table, plain, text
from serai.report.wording import scale_of, three_digits
from serai.scenario.write import to_toml

_MOST_STEPS = 500  # of a curve: more cannot be seen


def write_run_report(folder: str | Path) -> Path:
    """Write the report of a run into its folder; the path of the page."""
    run = read_run(folder)
    if not isinstance(run, SimulatedRun):  # what real nodes logged
        chapters = [Section("picture", "Where it happened", pictures=(_picture(run),)), _provenance(run)]
        return write_page(Path(folder), f"{run.protocol.upper()} in the field", repr(run), chapters)
    title = f"{run.protocol.upper()}: {run.scenario.name}"
    return write_page(Path(folder), title, f"seed {run.seed} · {run.scenario.in_one_line()}", _chapters(run))


def _chapters(run: SimulatedRun) -> list[Section]:
    pictures = []
    if isinstance(run, FieldRun):
        where = Section("where", "Where it happens", pictures=(field_map(run),))
        pictures = [where, *field_chapters([(run, colour_of(run.protocol, [run.protocol]))])]
    return [
        *pictures,
        Section("main", "Metrics", tables=(metrics_table(run.metrics, kind_of_run(run).headlines),)),
        Section("picture", "Where it happened", pictures=(_picture(run),)),
        _delays(run),
        Section("scenario", "The scenario, every default shown", blocks=(Block(run.protocol, to_toml(run.scenario)),)),
        _provenance(run),
    ]


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
            scale = scale_of(one)
            shown = f"{value:,}" if isinstance(value, int) else three_digits(scale.factor * value)
            strong = one.name in headlines
            rows.append(
                (text(one.name, strong), plain(scale.factor * value, shown), text(scale.unit), text(one.meaning))
            )
    return Table("metrics", "All metrics of the run.", ("metric", "value", "unit", "meaning"), tuple(rows))


def _picture(run: Run) -> Picture:
    caption = "Where nodes stand and go. The colour of a publisher: the share of its events that a subscriber got."
    return Picture("run", run.plot().svg, f"{caption} {run!r}.", caption, inline=True)


def _delays(run: SimulatedRun) -> Section:
    title = "Delay, the undelivered counted"
    if kind_of_run(run).pairs is None:
        return Section("delay", title, absent="in this kind of network nobody waits for a delivery")
    delay_s, fraction = delay_cdf(run)
    if not len(delay_s):
        return Section("delay", title, absent="nothing was delivered")
    chosen = np.unique(np.linspace(0, len(delay_s) - 1, _MOST_STEPS).astype(np.int64))
    curve = Series(
        run.protocol.upper(),
        mark_of(run.protocol, [run.protocol]),
        delay_s[chosen].tolist(),
        (100 * fraction[chosen]).tolist(),
        (),
    )
    caption = "Wanted pairs served within a delay: the curve ends at the delivery ratio, not at 100 %."
    return Section("delay", title, pictures=(steps("delay", [curve], "delay, s", "served, % of wanted", caption),))
