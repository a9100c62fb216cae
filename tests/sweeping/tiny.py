"""A scenario so small that a run takes milliseconds, and what a plain loop makes of a plan."""

from typing import Any

from serai.lab import measure, pairs_of, simulate
from serai.sweeping.delays import count_delays
from serai.sweeping.plan import Plan, plan_sweep

SETTINGS = ("duration=5 min", "events.quiet=0 s", "field.width=60 m", "field.height=60 m", "field.cells=4")


def tiny_plan(*settings: str, seeds: int = 4, protocols: tuple[str, ...] = ("dg",)) -> Plan:
    """DG on a few sensors, unless the settings say otherwise."""
    return plan_sweep("dg", ["sensors.count=8", *SETTINGS, *settings], protocols, seeds)


def plain_rows(plan: Plan) -> list[dict[str, Any]]:
    """The table of a sweep, made by a loop."""
    rows = []
    for cell in plan.cells:
        for seed in range(cell.seeds):
            run = simulate(cell.scenario, seed=seed)
            delays_s, wanted = pairs_of(run).delay_s, int(pairs_of(run).wanted.sum())
            bins, counts = count_delays(delays_s)
            rows.append(
                {"point": cell.point}
                | measure(run).as_dict()
                | {
                    "undelivered_pairs": wanted - len(delays_s),
                    "delay_bin": bins.tolist(),
                    "delay_count": counts.tolist(),
                }
            )
    return rows
