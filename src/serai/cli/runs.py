"""The commands that simulate: demo and run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from serai.cli.options import AsJson, Like, Master, ProtocolName, Remote, ScenarioName, Settings, print_json, seeds_of
from serai.cli.progress import shown_share
from serai.cli.spark import say, session, shown_progress, tell_doubts
from serai.core.errors import BadInput, CannotRun

if TYPE_CHECKING:
    from serai.kinds import AnyKind
    from serai.log.metrics import Metrics
    from serai.log.summary import Line


def demo(
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds per protocol.")] = 20,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for runs and report.")] = Path("serai-demo"),
    master: Master = None,
    remote: Remote = None,
    as_json: AsJson = False,
) -> None:
    """Compare CED, CET and DG with their papers, over a few seeds."""
    from serai.cli.demo import SCENARIOS, comparison, demo_plan, make_room, rows_of, write_typical_replay
    from serai.lab import load_scenario
    from serai.report import write_report
    from serai.sweeping.run import run_sweep

    make_room(out, seeds)
    if not as_json:
        print(f"serai demo   {load_scenario(SCENARIOS[0]).in_one_line()} · {seeds_of(seeds)}\n", flush=True)
    with session(master, remote) as spark:
        with shown_progress() as progress:
            sweep = run_sweep(demo_plan(seeds), out, spark, progress=progress)
        rows = rows_of(sweep)
        best = max(rows, key=lambda row: row.estimates["delivery_ratio"].mean).protocol
        replay = out / write_typical_replay(best, sweep).name
        page = out / write_report(sweep).name
        say("report", str(page))
    if as_json:
        protocols = {row.protocol: row.as_dict() for row in rows}
        told = {"seeds": seeds, "confidence": 0.95, "protocols": protocols}
        print_json(told | {"report": str(page), "replay": str(replay)})
    else:
        print(f"\n{comparison(rows, seeds)}\n\nreport: {page}\nreplay: {replay} (a typical run of {best.upper()})")


def run(
    scenario: ScenarioName,
    protocol: ProtocolName = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="World, movement and events all follow from it.")] = 0,
    settings: Settings = None,
    like: Like = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the run to this new or empty folder.", show_default=False),
    ] = None,
    full_log: Annotated[
        bool, typer.Option("--full-log", help="Also write every transfer and drop (needs --out).")
    ] = False,
    until_death: Annotated[
        bool,
        typer.Option("--until-death", help="Simulate until the first sensor dies, for the true lifetime."),
    ] = False,
    upper_bound: Annotated[
        bool, typer.Option("--upper-bound", help="Also show what contacts alone would allow.")
    ] = False,
    message_stats: Annotated[
        Path | None,
        typer.Option("--message-stats", metavar="FILE", help="Write The ONE's report on messages.", show_default=False),
    ] = None,
    largest: Annotated[
        bool, typer.Option("--largest", help="Use the largest part of an overlay that is not connected.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Simulate one run of a scenario and measure it."""
    if full_log and out is None:
        raise BadInput("--full-log: the transfer log is written to the run's folder; name one with --out DIR")
    from serai.kinds import kind_of
    from serai.lab import load_scenario, measure, simulate, simulate_again, write_run
    from serai.log.folder import RUN_FILE, check_out

    if out is not None:
        check_out(out)
    changes = [*(settings or ()), *(["nodes.largest=true"] if largest else [])]
    is_run = (Path(scenario) / RUN_FILE).is_file()
    if is_run and like is not None:
        raise BadInput(f"--like {like}: {scenario} is a run, which has its settings; name a scenario")
    recorded = simulate_again(scenario, protocol, changes, seed, full_log=full_log) if is_run else None
    loaded = recorded.scenario if recorded else load_scenario(scenario, changes, protocol, like)
    tell_doubts([loaded.protocol.name])
    kind = kind_of(loaded)
    how = {"full_log": full_log, "until_death": until_death}
    asked = {name: True for name, wanted in (how | {"upper_bound": upper_bound}).items() if wanted}
    if message_stats is not None:
        _check_message_stats(kind, message_stats)
        asked["full_log"] = True  # for the times in buffers
    _check_options(kind, asked)
    with shown_share():
        result = recorded or simulate(loaded, None, seed, **{name: True for name in asked if name in how})
    metrics = measure(result, **{name: True for name in asked if name not in how})
    if out is not None:
        write_run(result, out)
    if message_stats is not None and kind.message_stats is not None:
        try:
            kind.message_stats(result, message_stats)
        except OSError as error:
            raise CannotRun(f"{message_stats}: cannot be written: {error.strerror or error}") from error
    if as_json:
        print_json(metrics.as_dict())
    else:
        print(f"{loaded.protocol.name.upper()} · seed {seed} · {loaded.in_one_line()}\n")
        print(measured(kind.summary(result, metrics), metrics))
        if out is not None:
            print(f"\nwritten to {out}")


def _check_options(kind: AnyKind, asked: Iterable[str]) -> None:
    """Refuse what runs of this kind of network cannot do."""
    from serai.kinds import KINDS

    for option in asked:
        able = [one for one in KINDS.values() if option in (*one.simulate_options, *one.measure_options)]
        _check_able(kind, option, able)


def _check_able(kind: AnyKind, option: str, able: Sequence[AnyKind]) -> None:
    if kind not in able:
        names = " or ".join(one.name for one in able)
        flag = f"--{option.replace('_', '-')}"
        raise BadInput(f"{flag}: only for networks of kind {names}, and this scenario is of kind {kind.name}")


def _check_message_stats(kind: AnyKind, file: Path) -> None:
    """Refuse, before anything is simulated, a report that cannot be written."""
    from serai.kinds import KINDS

    _check_able(kind, "message_stats", [one for one in KINDS.values() if one.message_stats is not None])
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise BadInput(f"--message-stats {file}: name a file in a folder that exists")


# --- For people


def measured(lines: Iterable[Line], metrics: Metrics) -> str:
    """The lines of a summary with the metrics filled in."""
    from serai.log.metrics import declared

    known = declared(type(metrics))
    shown = {name: _shown(value, known[name].unit) for name, value in metrics.as_dict().items()}
    filled = [(line.name, line.value.format_map(shown), line.remark.format_map(shown)) for line in lines]
    return "\n".join(f" {name:<10}{value:>10}   {remark}" for name, value, remark in filled)


def _shown(value: str | int | float | None, unit: str) -> str:
    """A value with the digits that matter, a fraction in per cent; "-" where there is none."""
    if isinstance(value, float):
        if unit == "fraction":
            return f"{100 * value:.1f} %"
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else value or "-"
