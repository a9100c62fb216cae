"""What goals mean: known answers, bad input, and each count against a plain loop over the tables of a run."""

import math

import numpy as np
import pytest

from serai.core.errors import BadInput
from serai.kinds import FIELD, OVERLAY
from serai.lab import load_scenario, pairs_of, simulate
from serai.log.pairs import Count, count
from serai.planning.goals import Goal, parse_goal

SMALL = ["duration=20 min", "events.lifetime=5 min", "sensors.count=12", "field.cells=4", "field.width=60 m"]


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("delivery_ratio >= 95 %", Goal("delivery_ratio >= 95 %", Count("delivered"), 0.95)),
        ("delivery_ratio>=0.95", Goal("delivery_ratio >= 95 %", Count("delivered"), 0.95)),
        ("on_time( 1 h ) >= 90%", Goal("on_time(1 h) >= 90 %", Count("on_time", 3600.0), 0.9)),
        ("reached(2 min) >= 90 %", Goal("reached(2 min) >= 90 %", Count("reached", 120.0), 0.9)),
        ("p95_delay_s <= 1 h", Goal("on_time(1 h) >= 95 %", Count("on_time", 3600.0), 0.95)),
        ("median_delay_s <= 5 min", Goal("on_time(5 min) >= 50 %", Count("on_time", 300.0), 0.5)),
        ("lifetime_days >= 60", Goal("lifetime_days >= 60 in 90 % of runs", "lifetime_days", 60.0, True, 0.9)),
        (
            "lifetime_days >= 1440 h in 75 % of runs",
            Goal("lifetime_days >= 1440 h in 75 % of runs", "lifetime_days", 60.0, True, 0.75),
        ),
        ("mean(energy_j) <= 3", Goal("mean(energy_j) <= 3", "energy_j", 3.0, False)),
        (
            "delivery_ratio >= 80 % in 90 % of runs",
            Goal("delivery_ratio >= 80 % in 90 % of runs", Count("delivered"), 0.8, True, 0.9),
        ),
    ],
)
def test_what_a_goal_means(text: str, goal: Goal) -> None:
    assert parse_goal(text, FIELD) == goal


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("95 %", 'plan.goal "95 %": not a goal; write it like "delivery_ratio >= 95 %"'),
        ("delivery_ratio >= 120 %", '"120 %" is not a share between 0 and 100 %'),
        ("delivery_ratio <= 95 %", "more is better; write >="),
        ("on_time >= 95 %", "within which time? Write it like on_time(1 h)"),
        ("on_time(1 hour) >= 95 %", 'unknown unit "hour"'),
        ("on_time(0 s) >= 95 %", "the time must be more than 0"),
        ("p95_delay_s >= 1 h", "a delay has an upper limit; write <="),
        ("lifetime_day >= 60", 'no metric "lifetime_day"; did you mean "lifetime_days"?'),
        ("lifetime_days >= soon", '"soon" is not a time'),
        ("energy_j <= little", '"little" is not a number of J'),
        ("lifetime_days >= 60 in 100 % of runs", "the share of runs must be between 0 and 100 %"),
        ("mean(energy_j) <= 3 in 90 % of runs", "either the mean of all runs or a share of them"),
    ],
)
def test_goals_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(BadInput) as error:
        parse_goal(text, FIELD)
    assert message in str(error.value)


def test_where_nobody_waits_there_is_nothing_to_be_on_time() -> None:
    with pytest.raises(BadInput, match="nobody waits for a delivery"):
        parse_goal("on_time(1 h) >= 95 %", OVERLAY)


def test_scores_of_runs_by_hand() -> None:
    rows = {"delivered_met": np.array([90.0, 100.0, 0.0]), "delivered_of": np.array([100.0, 100.0, 0.0])}
    goal = parse_goal("delivery_ratio >= 80 %", FIELD)
    assert goal.score(rows).tolist() == pytest.approx([10.0, 20.0, 0.0])
    assert goal.worst(rows) == pytest.approx(-0.8 * 200 / 3)
    assert goal.value(rows).mean == pytest.approx(0.95)
    shares = parse_goal("delivery_ratio >= 95 % in 90 % of runs", FIELD)
    assert shares.score(rows).tolist() == pytest.approx([-0.9, 0.1, 0.1])  # nobody wanted anything: nothing was missed
    lives = {"lifetime_days": np.array([math.inf, 59.0, math.nan])}
    assert parse_goal("lifetime_days >= 60", FIELD).score(lives).tolist() == pytest.approx([0.1, -0.9, -0.9])
    costs = {"energy_j": np.array([1.0, 5.0, math.nan])}
    assert parse_goal("mean(energy_j) <= 3", FIELD).score(costs).tolist() == [2.0, -2.0, 0.0]


@pytest.mark.parametrize("what", [Count("delivered"), Count("on_time", 90.0), Count("reached", 60.0)])
@pytest.mark.parametrize("protocol", ["dg", "ced", "dpsp"])
def test_counts_as_a_plain_loop_over_the_tables_finds_them(what: Count, protocol: str) -> None:
    scenario = load_scenario(
        protocol,
        SMALL
        if protocol != "dpsp"
        else ["duration=1 h", "bundles.lifetime=20 min", "bundles.quiet=0 s", "nodes.count=20"],
    )
    run = simulate(scenario, seed=3)
    assert count(pairs_of(run), what) == _counted_slowly(run.tables, what, scenario)


def _counted_slowly(tables, what, scenario):
    events, subscriptions = tables["events"].to_pylist(), tables["subscriptions"].to_pylist()
    met = of = 0
    for event in events:
        limit_s = event["lifetime_s"] if what.within_s is None else what.within_s
        if event["time_s"] + limit_s > scenario.duration_s:
            continue
        arrivals = [row for row in tables["deliveries"].to_pylist() if row["event"] == event["event"]]
        quick = [row for row in arrivals if row["time_s"] - event["time_s"] <= limit_s]
        if what.what == "reached":
            of += 1
            met += bool(quick)
        else:
            of += len({one["node"] for one in subscriptions if _wants(one, event)})
            met += sum(row["wanted"] for row in quick)
    return met, of


def _wants(subscription, event):
    if subscription["channel"] != event["channel"] or subscription["node"] == event["node"]:
        return False
    over = min(subscription["to_s"], event["time_s"] + event["lifetime_s"])
    inside = zip(subscription["low"], event["values"], subscription["high"], strict=True)
    return max(event["time_s"], subscription["from_s"]) < over and all(a <= v <= b for a, v, b in inside)
