"""The command that runs sweeps."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from serai.cli.options import AsJson, Master, Remote, ScenarioName, print_json, seeds_of
from serai.cli.spark import say, session, shown_progress, tell_doubts

if TYPE_CHECKING:
    from serai.sweeping.plan import Plan
    from serai.sweeping.results import Sweep
    from serai.sweeping.summaries import Estimates

_MOST_ROWS: Final = 60


def sweep(
    scenario: ScenarioName,
    out: Annotated[str, typer.Option(metavar="DIR", help="The sweep's folder; an unfinished one is resumed.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="K=V,V", help="A setting and its values: 2,5,10 or 1..11 or 40..140:20."),
    ] = None,
    protocols: Annotated[
        str | None, typer.Option(metavar="P,P", help="Compare these protocols: ced,cet,dg.", show_default=False)
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Seeds 0 to N-1 at every point (20).", show_default=False)
    ] = None,
    until_ci: Annotated[
        str | None,
        typer.Option(metavar="W", help="Stop a point once its interval is this narrow: 1%, or mean_delay_s=1%."),
    ] = None,
    keep: Annotated[
        str | None, typer.Option(metavar="WHAT", help="Also keep the runs: ledger, or log with every transfer.")
    ] = None,
    report: Annotated[bool, typer.Option(help="Write report.html into the folder.")] = True,
    master: Master = None,
    remote: Remote = None,
    as_json: AsJson = False,
) -> None:
    """Run a scenario over settings, protocols and seeds, on Spark."""
    from serai.core.stopping import resumable
    from serai.sweeping.plan import plan_sweep
    from serai.sweeping.run import check_keep, run_sweep
    from serai.sweeping.stopping import parse_until
    from serai.sweeping.store import Store

    begun_s = time.monotonic()
    names = [name.strip() for name in protocols.split(",")] if protocols else None
    plan = plan_sweep(scenario, settings or (), names, seeds)
    until = parse_until(until_ci, plan.kind) if until_ci else None
    kept = check_keep(keep)
    Store(out).check(plan)
    tell_doubts(plan.protocols)
    if not as_json:
        print(f"serai sweep  {sweep_line(plan)}\n", flush=True)
    with resumable("give the same command again to go on"), session(master, remote) as spark:
        with shown_progress() as progress:
            done = run_sweep(plan, out, spark, keep=kept, until=until, progress=progress)
        estimates = done.estimates  # asks Spark, so while there is a session
        page = _report(done) if report else None
    say(
        "total",
        f"{time.monotonic() - begun_s:.0f} s, with Spark's start, compiling{' and the report' if report else ''}",
    )
    if as_json:
        print_json(_as_json(done.plan, estimates, out, page))
    else:
        print(f"\n{swept(done.plan, estimates)}\n\nwritten to {out}")


def _report(sweep: Sweep) -> Path:
    from serai.report import write_report

    page = write_report(sweep)
    say("report", str(page))
    return page


def _as_json(plan: Any, estimates: Any, folder: str, page: Path | None) -> dict[str, Any]:
    """The whole answer: every metric of every cell."""
    return {
        "folder": str(folder),
        "report": str(page) if page else None,
        "confidence": 0.95,
        "points": [
            {
                "settings": settings,
                "protocols": {
                    name: {
                        metric: {"mean": found.mean, "half_width": found.half_width(), "runs": found.count}
                        for metric, found in estimates[point, name].items()
                    }
                    for name in plan.protocols
                    if (point, name) in estimates
                },
            }
            for point, settings in enumerate(plan.points)
        ],
    }


def sweep_line(plan: Plan) -> str:
    """A sweep in one line: how many points, which protocols, how many seeds."""
    points = f"{len(plan.points)} points" if len(plan.points) > 1 else "1 point"
    protocols = " ".join(name.upper() for name in plan.protocols)
    return f"{plan.name} · {points} · {protocols} · {seeds_of(plan.seeds)}"


def swept(plan: Plan, estimates: Estimates) -> str:
    """The table of a sweep: a line for each point and protocol, with the metrics that are looked for first."""
    from serai.report.tables import Table, estimated, text, to_text
    from serai.report.wording import scale_of

    metrics = [name for name in plan.kind.headlines if any(math.isfinite(c[name].mean) for c in estimates.values())]
    scales = [scale_of(plan.kind.definitions[name], (c[name].mean for c in estimates.values())) for name in metrics]
    labels = [", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in point.items()) for point in plan.points]
    rows = []
    for cell in plan.cells[:_MOST_ROWS]:
        found = estimates[cell.point, cell.protocol]
        numbers = [estimated(found[name], scale) for name, scale in zip(metrics, scales, strict=True)]
        rows.append((text(labels[cell.point]), text(cell.protocol.upper()), *numbers))
    heads = ("mean ± 95 % CI", "", *(scale.heading for scale in scales))
    more = [f" and {len(plan.cells) - _MOST_ROWS} more: see the report"] if len(plan.cells) > _MOST_ROWS else []
    return "\n".join([to_text(Table("sweep", "", heads, tuple(rows))), *more])
