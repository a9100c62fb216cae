"""The metrics of a run in a field: `FieldMetrics` declares them, `measure_field` works them out.

A *wanted pair* is an event and a subscriber whose subscription it matches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.content import matches
from serai.core.energy import Radio, distance, receive_pj, transmit_pj
from serai.core.interested import count_interested
from serai.field.engine.state import DROPS
from serai.field.lifetime import lifetimes_of, steady_part
from serai.field.log import FieldRun, FullLog, Ledger, Transfers
from serai.field.losses import losses_of
from serai.field.naps import NEVER, dead_times, lived_s
from serai.field.protocols import PROTOCOLS
from serai.field.visits import Visits
from serai.log.losses import loss_metrics
from serai.log.metrics import Served, TimedMetrics, delay_metrics, jain, metric, ratio
from serai.log.pairs import RunPairs
from serai.world.mobility import position_at

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

_PJ_PER_J: Final = 1e12


# --- What is measured


@dataclass(frozen=True, kw_only=True, repr=False)
class FieldMetrics(TimedMetrics):
    """All metrics of one run in a field; `docs/metrics.md` has the formulas."""

    events: int = metric(says="Events born.")
    copies_per_event: float = metric(
        better=-1,
        says="Transmissions per reception (CED, CET) or per event (DG), as the papers count them.",
        label="copies",
        chapter="cost",
        compare_by="transmissions_per_event",
    )
    energy_j: float = metric("J", better=-1, says="Energy that all sensors spent on events.", chapter="cost")
    lifetime_days: float = metric(
        "d",
        better=+1,
        says="Time until the first sensor dies: simulated if the run lasts that long, else extrapolated.",
        label="lifetime",
        chapter="cost",
    )
    lifetime_events_only_days: float = metric(
        "d", better=+1, says="Extrapolated time until the first sensor dies, if only events cost energy."
    )
    lifetime_with_control_days: float = metric(
        "d",
        better=+1,
        says="Extrapolated time until the first sensor dies, if control messages cost energy too.",
        chapter="cost",
    )
    transmissions_per_event: float = metric(better=-1, says="Transmissions of events, per event born.", chapter="cost")
    receptions: int = metric(says="Pairs of an event and a subscriber that received it, wanted or not.")
    transmissions: int = metric(better=-1, says="Transmissions of events: hand-overs, relays, returns, placements.")
    control_energy_j: float = metric(
        "J", better=-1, says="Energy needed for the control messages of all sensors.", chapter="cost"
    )
    idle_energy_j: float = metric("J", better=-1, says="Energy that all sensors spent on listening.", chapter="cost")
    harvested_energy_j: float = metric("J", says="Energy that all sensors harvested.", chapter="cost")
    wasted_energy_j: float = metric(
        "J", says="The part of the harvested energy that batteries could not hold.", chapter="cost"
    )
    wakings: int = metric(says="How often a dead sensor came back to life after harvesting enough energy.")
    control_messages: int = metric(better=-1, says="Control messages sent, of all kinds.")
    control_bits: int = metric("bit", better=-1, says="Bits of all control messages.")
    load_imbalance: float = metric(
        better=-1,
        says="Energy that the busiest sensor spent on events, divided by the mean over all sensors.",
        chapter="cost",
    )
    drops_expired: int = metric(
        better=-1, says="Copies dropped because they had outlived the events' lifetime.", chapter="drops"
    )
    drops_spent: int = metric(
        better=-1,
        says="Copies dropped because they had been sent more than alpha times, or had nobody left to go to (SERAI).",
        chapter="drops",
    )
    drops_full: int = metric(better=-1, says="Copies dropped because a queue was full.", chapter="drops")
    drops_stranded: int = metric(
        better=-1, says="Copies dropped because the subscriber they were for had left.", chapter="drops"
    )
    drops_dead: int = metric(better=-1, says="Copies lost because a sensor's battery was empty.", chapter="drops")
    sensors_alive: int = metric(better=+1, says="Sensors whose battery was not empty at the end.", chapter="cost")
    alive_share: float = metric(
        "fraction",
        better=+1,
        says="Share of the run during which sensors were alive, averaged over all sensors.",
        chapter="cost",
    )
    fairness_communities: float = metric(
        better=+1,
        says="Jain's index of the communities' delivery ratios.",
        label="fairness over communities",
        chapter="fairness",
    )
    upper_bound_direct: float = metric(
        "fraction", says="Delivery ratio if every contact of a subscriber with an event's sensor delivered the event."
    )
    upper_bound_community: float = metric(
        "fraction",
        says="Delivery ratio if every contact of a subscriber with an event's community delivered the event.",
    )
    upper_bound_epidemic: float = metric(
        "fraction", says="Delivery ratio if subscribers also passed on every event they came across."
    )
    upper_bound_direct_delay_s: float = metric("s", says="Mean delay of the pairs that `upper_bound_direct` delivers.")
    upper_bound_community_delay_s: float = metric(
        "s", says="Mean delay of the pairs that `upper_bound_community` delivers."
    )
    upper_bound_epidemic_delay_s: float = metric(
        "s", says="Mean delay of the pairs that `upper_bound_epidemic` delivers."
    )

    def __repr__(self) -> str:
        return (
            f"FieldMetrics({self.protocol}, seed {self.seed}: {self.delivery_ratio:.1%} delivered,"
            f" delay {self.mean_delay_s:.0f} s (median {self.median_delay_s:.0f} s),"
            f" {self.copies_per_event:.2f} copies per event, lifetime {self.lifetime_days:.2f} d)"
        )


# --- One run


def measure_field(run: FieldRun, *, upper_bound: bool = False) -> FieldMetrics:
    """Every metric of a run; with `upper_bound` also what its contacts alone would allow (takes longer)."""
    lost = loss_metrics(losses_of(run))
    run = _as_born(run)
    ledger, interested, delivered, lifetimes = run.ledger, _interested(run), _delivered(run), lifetimes_of(run)
    return FieldMetrics(
        protocol=run.protocol,
        seed=run.seed,
        events=len(interested),
        energy_j=int(ledger.event_pj.sum()) / _PJ_PER_J,
        control_energy_j=int(ledger.control_pj.sum()) / _PJ_PER_J,
        idle_energy_j=0.0 if ledger.idle_pj is None else int(ledger.idle_pj.sum()) / _PJ_PER_J,
        **_harvested(ledger),
        control_messages=sum(ledger.control_messages.values()),
        control_bits=sum(ledger.control_bits.values()),
        fairness_communities=jain(_community_ratios(run, interested, delivered)),
        sensors_alive=int((ledger.died < 0).sum()),
        alive_share=ratio(lived_s(ledger, _slots(run)).sum(), _slots(run) * len(ledger.died)),
        load_imbalance=ratio(ledger.event_pj.max(initial=0) * len(ledger.event_pj), ledger.event_pj.sum()),
        **_deliveries(run, interested, delivered),
        **delay_metrics(delivered.delay_s),
        lifetime_days=lifetimes.days,
        lifetime_events_only_days=lifetimes.events_only_days,
        lifetime_with_control_days=lifetimes.with_control_days,
        **{f"drops_{reason}": ledger.drops.get(reason, 0) for reason in DROPS},
        **lost,
        **(_upper_bounds(run) if upper_bound else _NO_BOUNDS),
    )


def _harvested(ledger: Ledger) -> dict[str, Any]:
    """What was harvested and wasted, and how often a sensor woke."""
    return {
        "harvested_energy_j": 0.0 if ledger.harvested_pj is None else float(ledger.harvested_pj.sum()) / _PJ_PER_J,
        "wasted_energy_j": 0.0 if ledger.wasted_pj is None else float(ledger.wasted_pj.sum()) / _PJ_PER_J,
        "wakings": 0 if ledger.naps is None else len(ledger.naps.node),
    }


def _as_born(run: FieldRun) -> FieldRun:
    """The run without what its world had in store for sensors already dead, and for the time after its end."""
    world, ledger, slots = run.world, run.ledger, _slots(run)
    born = run.born
    if ledger.ended_s is None and born.all():
        return run
    begun = np.searchsorted(world.visits.slot, slots)
    lived = world._replace(
        event_sensor=world.event_sensor[born],
        event_time_s=world.event_time_s[born],
        event_values=world.event_values[born],
        visits=Visits._make(column[:begun] for column in world.visits),
    )
    number = (np.cumsum(born) - 1).astype(np.int32)  # of each event among those that were born
    counted = ledger._replace(reception_event=number[ledger.reception_event], transmissions=ledger.transmissions[born])
    return replace(run, world=lived, ledger=counted)


def _slots(run: FieldRun) -> int:
    """How many seconds were simulated."""
    return run.scenario.duration_s if run.ledger.ended_s is None else math.floor(run.ledger.ended_s) + 1


def _interested(run: FieldRun) -> Counts:
    """How many subscribers want each event: A."""
    return count_interested(run.world.event_values, run.world.low, run.world.high)


class _Delivered(NamedTuple):
    """The wanted pairs that were delivered, in the order of reception."""

    event: NDArray[np.int32]
    delay_s: Floats  # birth to first reception


def _delivered(run: FieldRun) -> _Delivered:
    rows = np.flatnonzero(run.ledger.reception_wanted)
    event = run.ledger.reception_event[rows]
    return _Delivered(event, run.ledger.reception_s[rows] - run.world.event_time_s[event])


def _deliveries(run: FieldRun, interested: Counts, delivered: _Delivered) -> dict[str, Any]:
    """Who got what, and how often it had to be sent."""
    events = len(interested)
    transmissions = int(run.ledger.transmissions.sum())
    receptions = len(run.ledger.reception_event)
    wanted = int(interested.sum())
    shared_by = receptions if PROTOCOLS[run.protocol].copies == "per-reception" else events
    return {
        "wanted_pairs": wanted,
        "delivered_pairs": len(delivered.event),
        "delivery_ratio": ratio(len(delivered.event), wanted),
        "receptions": receptions,
        "transmissions": transmissions,
        "copies_per_event": ratio(transmissions, shared_by),
        "transmissions_per_event": ratio(transmissions, events),
    }


_BOUNDS: Final = ("direct", "community", "epidemic")
_NO_BOUNDS: Final[dict[str, Any]] = dict.fromkeys(
    [name for bound in _BOUNDS for name in (f"upper_bound_{bound}", f"upper_bound_{bound}_delay_s")], math.nan
)


def _upper_bounds(run: FieldRun) -> dict[str, Any]:
    from serai.field.upper_bound import upper_bounds

    silent = run.scenario.protocol.silent_while_pausing
    found = upper_bounds(run.world, run.scenario.events.lifetime_s, _slots(run), silent)
    ratios = {f"upper_bound_{bound}": found[bound].ratio for bound in _BOUNDS}
    return ratios | {f"upper_bound_{bound}_delay_s": found[bound].mean_delay_s for bound in _BOUNDS}


# --- A closer look


class ByCommunity(NamedTuple):
    """One entry per community: `pandas.DataFrame(by_community(run)._asdict())` is the table."""

    community: Counts
    sensors: Counts
    size: Counts  # cells that it occupies; where reach is in metres: its sensors
    events: Counts  # born in it
    wanted_pairs: Counts  # of its events
    delivered_pairs: Counts
    delivery_ratio: Floats  # NaN where nobody wanted anything


def by_community(run: FieldRun) -> ByCommunity:
    """How the events of each community fared."""
    run = _as_born(run)
    communities = run.world.communities
    count = len(communities.size)
    wanted, delivered = _pairs_by_community(run, _interested(run), _delivered(run))
    return ByCommunity(
        community=np.arange(count),
        sensors=np.diff(communities.member_start).astype(np.int64),
        size=communities.size.astype(np.int64),
        events=np.bincount(communities.of_sensor[run.world.event_sensor], minlength=count),
        wanted_pairs=wanted,
        delivered_pairs=delivered,
        delivery_ratio=np.divide(delivered, wanted, out=np.full(count, np.nan), where=wanted > 0),
    )


COMMUNITY_SIZES: Final = {"1 sensor": (1, 1), "2 to 10": (2, 10), "11 to 30": (11, 30), "more than 30": (31, 10**9)}
"""Classes of communities by the number of their sensors."""


def served_by_size(run: FieldRun) -> dict[str, Served]:
    """How the events fared that were born in communities of each size."""
    found = by_community(run)
    counts = (found.events, found.wanted_pairs, found.delivered_pairs)
    chosen = {name: (found.sensors >= a) & (found.sensors <= b) for name, (a, b) in COMMUNITY_SIZES.items()}
    return {name: Served(*(int(count[rows].sum()) for count in counts)) for name, rows in chosen.items()}


def _pairs_by_community(run: FieldRun, interested: Counts, delivered: _Delivered) -> tuple[Counts, Counts]:
    """Wanted pairs and delivered ones, by the community in which the event was born."""
    born_in = run.world.communities.of_sensor[run.world.event_sensor]
    count = len(run.world.communities.size)
    wanted = np.bincount(born_in, weights=interested, minlength=count).astype(np.int64)
    return wanted, np.bincount(born_in[delivered.event], minlength=count)


def _community_ratios(run: FieldRun, interested: Counts, delivered: _Delivered) -> Floats:
    """The delivery ratio of every community whose events somebody wanted."""
    wanted, got = _pairs_by_community(run, interested, delivered)
    asked = wanted > 0
    ratios: Floats = got[asked] / wanted[asked]
    return ratios


def pairs_field(run: FieldRun) -> RunPairs:
    """What became of every wanted pair."""
    run = _as_born(run)
    delivered, received = _delivered(run), run.ledger.reception_event.astype(np.int64)
    return RunPairs(
        born_s=run.world.event_time_s,
        wanted=_interested(run),
        delivered=delivered.event.astype(np.int64),
        delay_s=delivered.delay_s,
        received=received,
        received_delay_s=run.ledger.reception_s - run.world.event_time_s[received],
        lifetime_s=np.full(len(run.world.event_time_s), run.scenario.events.lifetime_s),
        duration_s=float(_slots(run)),
    )


def alive_over_time(run: FieldRun) -> tuple[NDArray[np.int32], Counts]:
    """How many sensors live from which second on: the start, and the second after each death or waking."""
    naps = dead_times(run.ledger)
    woke = naps.until_s[naps.until_s != NEVER]
    changed = np.concatenate([naps.since_s, woke]).astype(np.int64) + 1
    by = np.repeat([-1, 1], [len(naps.since_s), len(woke)])
    since_s, which = np.unique(np.concatenate([[0], changed]), return_inverse=True)
    more = np.bincount(which[1:], by, len(since_s)).astype(np.int64)
    return since_s.astype(np.int32), len(run.ledger.died) + np.cumsum(more)


# --- The ledger out of the full log


def aggregate_full_log(full: FullLog, run: FieldRun) -> Ledger:
    """The ledger that a full log adds up to; control messages, which it does not list, are the run's."""
    sensors, events = len(run.world.sensor_x), len(run.world.event_sensor)
    transfers = full.transfers
    sent_by = transfers.sender[transfers.sender < sensors]
    dropped = np.bincount(full.drops.reason, minlength=len(DROPS))
    return run.ledger._replace(
        **_first_receptions(transfers, run),
        transmissions=np.bincount(transfers.event, minlength=events),
        sent=np.bincount(sent_by, minlength=sensors),
        received=_accepted_by(transfers, sensors),
        event_pj=_energy_of(transfers, run),
        steady_event_pj=_steady_energy_of(transfers, run),
        drops={reason: int(count) for reason, count in zip(DROPS, dropped, strict=True)},
    )


def _first_receptions(transfers: Transfers, run: FieldRun) -> dict[str, Any]:
    """The first time that each subscriber was handed each event, in the order in which it happened."""
    world, sensors = run.world, len(run.world.sensor_x)
    handed_over = np.flatnonzero((transfers.receiver >= sensors) & (transfers.outcome == 0))
    subscriber = transfers.receiver[handed_over] - sensors
    pair = transfers.event[handed_over].astype(np.int64) * len(world.low) + subscriber
    first = np.sort(np.unique(pair, return_index=True)[1])
    event, subscriber = transfers.event[handed_over][first], subscriber[first]
    wanted = [
        matches(world.event_values[e], world.low[p], world.high[p]) for e, p in zip(event, subscriber, strict=True)
    ]
    return {
        "reception_event": event,
        "reception_subscriber": subscriber,
        "reception_s": transfers.time_s[handed_over][first],
        "reception_wanted": np.array(wanted, dtype=np.bool_),
    }


def _accepted_by(transfers: Transfers, sensors: int) -> Counts:
    """How many events each sensor accepted."""
    accepted = (transfers.outcome == 0) & (transfers.receiver < sensors)
    return np.bincount(transfers.receiver[accepted], minlength=sensors)


def _steady_energy_of(transfers: Transfers, run: FieldRun) -> Counts:
    """What each sensor spent on events in each half of the run's steady part."""
    steady = steady_part(run.scenario)
    if steady is None or steady.end > _slots(run):
        return np.zeros((2, len(run.world.sensor_x)), np.int64)
    looks = np.searchsorted(transfers.time_s, steady)
    halves = [Transfers._make(column[a:b] for column in transfers) for a, b in pairwise(looks)]
    return np.array([_energy_of(half, run) for half in halves])


def _energy_of(transfers: Transfers, run: FieldRun) -> Counts:
    """What each sensor spent on sending and on accepting events, by the rules that the engine pays by."""
    radio, bits = radio_of(run), run.scenario.events.size_bits
    received = _accepted_by(transfers, len(run.world.sensor_x))
    spent_pj = received * receive_pj(radio, bits)
    sends = np.stack([transfers.time_s, transfers.sender, transfers.receiver])[:, transfers.sender < len(received)]
    for (time_s, sender, receiver), count in zip(*_distinct(sends), strict=True):
        apart = distance(*_place_of(sender, time_s, run), *_place_of(receiver, time_s, run))
        spent_pj[sender] += count * transmit_pj(radio, bits, apart)
    return spent_pj


def _distinct(sends: NDArray[np.int32]) -> tuple[NDArray[np.int32], Counts]:
    """Each (time, sender, receiver) once, and how many events went that way: often a queue at a time."""
    found, counts = np.unique(sends, axis=1, return_counts=True)
    return found.T, counts


def radio_of(run: FieldRun) -> Radio:
    """What sending and receiving costs in a run."""
    radio = run.scenario.radio
    return Radio(
        electronics=radio.electronics_j_per_bit,
        free_space=radio.free_space_j_per_bit_m2,
        multipath=radio.multipath_j_per_bit_m4,
        receive_costs=radio.receive_costs,
    )


def _place_of(node: int, time_s: int, run: FieldRun) -> tuple[float, float]:
    """Where a node is at a time."""
    world, sensors = run.world, len(run.world.sensor_x)
    if node < sensors:
        return float(world.sensor_x[node]), float(world.sensor_y[node])
    subscriber = int(node) - sensors
    first, end = world.tracks.start[subscriber : subscriber + 2]
    begun = np.searchsorted(world.tracks.time_s[first:end], time_s, side="right")
    return position_at(world.tracks, subscriber, int(first + begun - 1), time_s)
