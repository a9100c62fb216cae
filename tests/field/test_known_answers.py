"""Every metric, worked out by hand from ledgers made by hand."""

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest

from serai.field.log import FieldRun
from serai.field.metrics import FieldMetrics, alive_over_time, by_community
from serai.field.tables import columns_of
from serai.kinds import FIELD
from serai.lab import delay_cdf, measure
from serai.log.metrics import jain
from tests.log import hand_made

ANYTHING = (-math.inf, math.inf)
NOTHING = (1.0, 0.0)
HEARD = {"silent_while_pausing": False}


@pytest.fixture
def lively() -> FieldMetrics:
    return measure(hand_made.lively())


def measured(receptions=(), events=((0, 0.0, 1.0),), boxes=(ANYTHING,), scenario=None, **changes) -> FieldMetrics:
    world = hand_made.world(list(events), list(boxes))
    return measure(hand_made.run(world, hand_made.ledger(world, list(receptions), **changes), scenario))


def test_what_was_run(lively):
    assert (lively.protocol, lively.seed, lively.events) == ("ced", 7, 3)


def test_delivery_ratio_is_over_wanted_pairs(lively):
    # Subscriber 0 wants events 0 and 2, subscriber 1 wants all three: A = 2 + 1 + 2. Three of them came.
    assert (lively.wanted_pairs, lively.delivered_pairs) == (5, 3)
    assert lively.delivery_ratio == 3 / 5


def test_receptions_count_the_unwanted_too(lively):
    assert lively.receptions == 4


def test_nobody_can_want_a_missing_value():
    wanted = measured(events=[(0, 0.0, math.nan)], boxes=[(0.0, 9.0), ANYTHING])
    assert wanted.wanted_pairs == 1


@pytest.mark.parametrize(("protocol", "copies"), [("ced", 5 / 4), ("cet", 5 / 4), ("dg", 5 / 3)])
def test_copies_are_counted_as_published(protocol, copies):
    run = hand_made.lively()
    scenario = hand_made.scenario(protocol)
    lively = measure(replace(run, scenario=scenario, protocol=protocol))
    assert lively.copies_per_event == copies
    assert lively.transmissions_per_event == 5 / 3
    assert lively.transmissions == 5


def test_delays_of_delivered_wanted_pairs(lively):
    # 3 - 0.5, 10 - 10 and 28 - 10; the unwanted one (4 - 2.25) does not count.
    assert lively.mean_delay_s == pytest.approx((2.5 + 0 + 18) / 3)
    assert lively.median_delay_s == 2.5
    assert lively.p95_delay_s == pytest.approx(2.5 + 0.9 * (18 - 2.5))


def test_quantiles_are_interpolated_linearly():
    four = measured([(0, 0, 1, True), (0, 1, 2, True), (0, 2, 4, True), (0, 3, 8, True)], boxes=[ANYTHING] * 4)
    assert four.median_delay_s == 3.0
    assert four.p95_delay_s == pytest.approx(4 + 0.85 * 4)


def test_energy(lively):
    assert lively.energy_j == pytest.approx(76e-6)
    assert lively.control_energy_j == pytest.approx(6e-12)
    assert lively.load_imbalance == pytest.approx(30 / (76 / 3))


def test_control_messages(lively):
    assert (lively.control_messages, lively.control_bits) == (21, 1728)


def test_drops_by_reason():
    dropped = measured(drops={"expired": 1, "spent": 2, "full": 3, "stranded": 4, "dead": 5})
    found = (dropped.drops_expired, dropped.drops_spent, dropped.drops_full, dropped.drops_stranded)
    assert (*found, dropped.drops_dead) == (1, 2, 3, 4, 5)


BUSY = {"event_pj": [1, 4_000_000_000_000, 2], "control_pj": [0, 1_000_000_000_000, 4_000_000_000_000]}


def test_lifetime_is_the_busiest_sensors_extrapolated():
    # 10 J at 4 J a minute last two and a half minutes; with control 10 J at 5 J (the same sensor) last two.
    busy = measured(**BUSY)
    assert busy.lifetime_events_only_days == pytest.approx(150 / 86_400)
    assert busy.lifetime_with_control_days == pytest.approx(120 / 86_400)
    assert busy.lifetime_days == busy.lifetime_events_only_days


def test_lifetime_feels_control_messages_if_the_radio_does():
    costly = hand_made.scenario(radio={"control_costs": True})
    busy = measured(scenario=costly, **BUSY)
    assert busy.lifetime_days == busy.lifetime_with_control_days == pytest.approx(120 / 86_400)


def test_control_may_make_another_sensor_the_busiest():
    shifted = measured(event_pj=[10**12, 0, 0], control_pj=[0, 0, 2 * 10**12])
    assert shifted.lifetime_with_control_days == pytest.approx(300 / 86_400)


def test_a_simulated_death_is_the_lifetime():
    dead = measured(ended_s=43_200.0, died=[-1, 43_200, -1], **BUSY)
    assert dead.lifetime_days == 0.5
    assert dead.lifetime_events_only_days == pytest.approx(2.5 * 0.5)  # 4 of 10 J in half a day


def test_deaths_in_a_run_that_goes_on():
    """s0 dies in second 4, s2 in second 9: what they would have measured later was never born."""
    events = [(0, 3.5, 1.0), (0, 4.5, 1.0), (1, 20.0, 1.0), (2, 9.0, 1.0), (2, 9.25, 1.0)]
    run = hand_made.world(events, [ANYTHING])
    ledger = hand_made.ledger(run, [(2, 0, 21, True)], died=[4, -1, 9], event_pj=[10**13, 10**13, 0])
    dead = measure(hand_made.run(run, ledger))
    assert (dead.events, dead.wanted_pairs, dead.delivered_pairs) == (3, 3, 1)
    assert dead.mean_delay_s == 1.0
    assert (dead.sensors_alive, dead.lifetime_days) == (1, 4 / 86_400)
    assert dead.lifetime_events_only_days == 4 / 86_400  # s1 spent as much, in 60 s
    since_s, alive = alive_over_time(hand_made.run(run, ledger))
    assert (since_s.tolist(), alive.tolist()) == ([0, 5, 10], [3, 2, 1])


def test_contacts_end_with_the_sensor():
    run = hand_made.world([], [ANYTHING, ANYTHING])
    there = hand_made.run(run, hand_made.ledger(run, died=[-1, 3, 9]), hand_made.scenario("ced", HEARD))
    contacts = columns_of(there)["contacts"]
    found = set(zip(*(contacts[name].tolist() for name in ("a", "b", "start_s", "end_s")), strict=True))
    # Subscriber 0 walks 1 m a second from s0: out of touch of s0 at 15 s; subscriber 1 stands with s2.
    assert found == {(0, 3, 0.0, 15.0), (1, 3, 0.0, 4.0), (2, 4, 0.0, 10.0)}


def test_events_after_the_death_do_not_count():
    dead = measured([(0, 0, 3, True)], events=[(0, 0.0, 1.0), (0, 5.0, 1.0), (2, 5.5, 1.0)], ended_s=5.0)
    assert (dead.events, dead.wanted_pairs, dead.delivery_ratio) == (2, 2, 0.5)
    assert dead.fairness_communities == 1.0  # only community 0 had events while the run lasted


def test_nobody_dies_who_spends_nothing():
    assert measured().lifetime_days == math.inf
    assert measured().as_dict()["lifetime_days"] is None


def test_fairness_over_communities():
    # Community 0: one of two wanted pairs; community 1: both of two.
    events = [(0, 0.0, 1.0), (1, 0.0, 1.0), (2, 0.0, 1.0), (2, 1.0, 1.0)]
    unfair = measured([(0, 0, 1, True), (2, 0, 2, True), (3, 0, 2, True)], events)
    assert unfair.fairness_communities == pytest.approx((0.5 + 1) ** 2 / (2 * (0.25 + 1)))


def test_fairness_leaves_out_communities_that_nobody_asks():
    events = [(0, 0.0, 1.0), (2, 0.0, 8.0)]
    assert measured([(0, 0, 1, True)], events, boxes=[(0.0, 5.0)]).fairness_communities == 1.0


def test_jain_of_one_who_has_it_all():
    assert jain(np.array([0.0, 0.0, 3.0, 0.0])) == 0.25


def test_by_community():
    table = by_community(hand_made.lively())
    assert {name: list(column) for name, column in table._asdict().items()} == {
        "community": [0, 1],
        "sensors": [2, 1],
        "size": [2, 1],
        "events": [2, 1],
        "wanted_pairs": [3, 2],
        "delivered_pairs": [1, 2],
        "delivery_ratio": [1 / 3, 1.0],
    }


def test_by_community_has_no_ratio_where_nobody_asks():
    world = hand_made.world([(0, 0.0, 1.0)], [ANYTHING])
    table = by_community(hand_made.run(world, hand_made.ledger(world)))
    assert table.delivery_ratio[0] == 0.0
    assert math.isnan(table.delivery_ratio[1])


def test_delay_curve_ends_at_the_delivery_ratio():
    delays_s, fraction = delay_cdf(hand_made.lively())
    assert list(delays_s) == [0.0, 2.5, 18.0]
    assert list(fraction) == [1 / 5, 2 / 5, 3 / 5]


# --- Runs in which something is missing

EMPTY = {
    "no subscribers": hand_made.world([(0, 0.0, 1.0)], []),
    "no events": hand_made.world([], [ANYTHING]),
    "nobody interested": hand_made.world([(0, 0.0, 1.0)], [NOTHING]),
    "nothing at all": hand_made.world([], [], sensors=[]),
}


@pytest.mark.parametrize("world", EMPTY.values(), ids=EMPTY.keys())
def test_what_does_not_exist_is_nan_and_null(world):
    run = hand_made.run(world, hand_made.ledger(world))
    metrics = measure(run)
    assert math.isnan(metrics.delivery_ratio)
    assert math.isnan(metrics.mean_delay_s)
    assert math.isnan(metrics.fairness_communities)
    assert math.isnan(metrics.load_imbalance)
    json.dumps(metrics.as_dict(), allow_nan=False)
    assert metrics.as_dict()["delivery_ratio"] is None
    assert [len(column) for column in delay_cdf(run)] == [0, 0]
    assert np.isnan(by_community(run).delivery_ratio).all()
    assert repr(metrics)
    assert metrics._repr_html_()


def test_without_events_nothing_is_per_event():
    assert math.isnan(measured(events=[]).transmissions_per_event)


def test_without_sensors_there_is_no_lifetime():
    world = EMPTY["nothing at all"]
    assert math.isnan(measure(hand_made.run(world, hand_made.ledger(world))).lifetime_days)


# --- How they are shown


def test_plain_numbers_only(lively):
    kinds = {type(value) for value in lively.as_dict().values()}
    assert kinds <= {str, int, float, type(None)}
    assert {type(getattr(lively, metric.name)) for metric in fields(lively)} <= {str, int, float}


def test_shown_in_one_line(lively):
    assert repr(lively) == (
        "FieldMetrics(ced, seed 7: 60.0% delivered, delay 7 s (median 2 s), 1.25 copies per event, lifetime 231.48 d)"
    )


def test_shown_in_a_notebook(lively):
    shown = lively._repr_html_()
    assert shown.count("<tr>") == sum(value is not None for value in lively.as_dict().values())
    assert "<td>0.6</td>" in shown
    assert FIELD.definitions["delivery_ratio"].meaning in shown


def test_upper_bounds_only_on_request(lively):
    assert lively.as_dict()["upper_bound_direct"] is None


def audible_in_pauses() -> FieldRun:
    """The lively run under a scenario in which pausing subscribers are heard."""
    return replace(hand_made.lively(), scenario=hand_made.scenario("ced", {"silent_while_pausing": False}))


def test_upper_bounds():
    # Subscriber 0 walks from s0 (reach until 15 s) past s1 (until 25 s) to s2 (from 15 s on), wanting A1 < 5;
    # subscriber 1 stays at s2 and wants all.
    run = audible_in_pauses()
    metrics = measure(run, upper_bound=True)
    # Direct and community: 0 -> event 0 (at 1 s), event 2 (at 15 s); 1 -> event 2 (at 10 s).
    assert metrics.upper_bound_direct == metrics.upper_bound_community == 3 / 5
    assert metrics.upper_bound_direct_delay_s == pytest.approx((0.5 + 5 + 0) / 3)
    # Epidemic: the walker also carries events 0 and 1 to s2, where it arrives at 15 s.
    assert metrics.upper_bound_epidemic == 1.0
    assert metrics.upper_bound_epidemic_delay_s == pytest.approx((0.5 + 5 + 0 + 14.5 + 12.75) / 5)


def test_upper_bounds_of_a_run_that_ended_with_a_death():
    run = audible_in_pauses()
    dead = replace(run, ledger=run.ledger._replace(ended_s=12.0))
    metrics = measure(dead, upper_bound=True)
    assert metrics.wanted_pairs == 5
    assert metrics.upper_bound_direct == 2 / 5  # nobody walked on to s2
    assert metrics.upper_bound_epidemic == 2 / 5


def test_upper_bounds_of_subscribers_that_are_silent_in_pauses():
    run = hand_made.lively()
    silent = hand_made.scenario("ced", {"silent_while_pausing": True})
    metrics = measure(replace(run, scenario=silent), upper_bound=True)
    assert metrics.upper_bound_direct == 2 / 5  # subscriber 1 never moves


@pytest.mark.parametrize("world", EMPTY.values(), ids=EMPTY.keys())
def test_upper_bounds_of_empty_runs(world):
    metrics = measure(hand_made.run(world, hand_made.ledger(world)), upper_bound=True)
    assert math.isnan(metrics.upper_bound_direct)
    assert math.isnan(metrics.upper_bound_epidemic_delay_s)
