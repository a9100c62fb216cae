"""The commands that simulate: demo and run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from serai.cli.options import AsJson, Master, ProtocolName, Remote, ScenarioName, Settings, print_json
from serai.cli.spark import say, session, shown_progress
from serai.core.errors import BadInput


def demo(
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Seeds per protocol.")] = 20,
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder for runs and report.")] = Path("serai-demo"),
    master: Master = None,
    remote: Remote = None,
    as_json: AsJson = False,
) -> None:
    """Compare CED, CET and DG with their papers, over a few seeds."""
    from serai.cli.demo import SCENARIOS, compare, make_room
    from serai.cli.present import comparison, seeds_of
    from serai.lab import load_scenario
    from serai.report import write_report

    make_room(out, seeds)
    if not as_json:
        print(f"serai demo   {load_scenario(SCENARIOS[0]).in_one_line()} · {seeds_of(seeds)}\n", flush=True)
    with session(master, remote) as spark:
        with shown_progress() as progress:
            rows = compare(seeds, out, spark, progress)
        page = write_report(out, spark)
        say("report", str(page))
    if as_json:
        protocols = {row.protocol: row.as_dict() for row in rows}
        print_json({"seeds": seeds, "confidence": 0.95, "protocols": protocols, "report": str(page)})
    else:
        print(f"\n{comparison(rows, seeds)}\n\nreport: {page}")


def run(
    scenario: ScenarioName,
    protocol: ProtocolName = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="World, movement, events: all follow from it.")] = 0,
    settings: Settings = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the run to this new or empty folder.", show_default=False),
    ] = None,
    full_log: Annotated[
        bool, typer.Option("--full-log", help="Also write every transfer and drop (needs --out).")
    ] = False,
    until_death: Annotated[
        bool,
        typer.Option("--until-death", help="Simulate until the first sensor dies, for its real lifetime."),
    ] = False,
    ceiling: Annotated[bool, typer.Option(help="Also say what contacts alone would allow.")] = False,
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
    from serai.cli.present import measured
    from serai.lab import load_scenario, measure, simulate, write_run
    from serai.log.folder import check_out

    if out is not None:
        check_out(out)
    changes = [*(settings or ()), *(["nodes.largest=true"] if largest else [])]
    loaded = load_scenario(scenario, overrides=changes, protocol=protocol)
    in_a_field = {"--until-death": until_death, "--ceiling": ceiling}
    with_a_log = {} if loaded.network == "opportunistic" else {"--full-log": full_log}
    _check_field_options(loaded.network, with_a_log | in_a_field)
    how: dict[str, Any] = {"full_log": full_log} if loaded.network in ("field", "opportunistic") else {}
    how |= {"until_death": until_death} if loaded.network == "field" else {}
    if message_stats is not None:
        _check_message_stats(loaded.network, message_stats)
        how["full_log"] = True  # for the times in buffers
    result = simulate(loaded, seed=seed, **how)
    metrics = measure(result, **({"ceiling": True} if ceiling else {})).as_dict()
    if out is not None:
        write_run(result, out)
    if message_stats is not None:
        from serai.opportunistic.metrics import write_message_stats

        write_message_stats(result, message_stats)
    if as_json:
        print_json(metrics)
    else:
        print(f"{loaded.protocol.name.upper()} · seed {seed} · {loaded.in_one_line()}\n")
        print(measured(loaded.network, metrics, until_death, ceiling))
        if out is not None:
            print(f"\nwritten to {out}")


def _check_field_options(network: str, options: dict[str, bool]) -> None:
    """Refuse what only a run in a field can do."""
    if network != "field" and (asked := [option for option, is_set in options.items() if is_set]):
        raise BadInput(f"{' and '.join(asked)}: only for runs in a field, and this scenario is of kind {network!r}")


def _check_message_stats(network: str, file: Path) -> None:
    """Refuse, before anything is simulated, a report that cannot be written."""
    if network != "opportunistic":
        raise BadInput(f"--message-stats: only for opportunistic networks, and this scenario is of kind {network!r}")
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise BadInput(f"--message-stats {file}: name a file in a folder that exists")
