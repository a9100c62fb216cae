"""One run of an opportunistic network: scenario and seed -> contacts, bundles, subscriptions -> protocol -> outcome."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.core.streams import order_key
from serai.opportunistic.engine.state import Medium, Outcome
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.protocols import PROTOCOLS
from serai.opportunistic.rules import WHEN_FULL
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.tracks import tracks_in_run
from serai.opportunistic.workload import publications, subscriptions_of
from serai.opportunistic.world import ContactWorld, Published, Wanted
from serai.traces import Adjustments, ContactTrace, TrackTrace, read_trace
from serai.traces.adjust import no_shorter
from serai.traces.names import NodeNames
from serai.world.contacts import Contacts, Journeys, at_ticks, contacts_by_range, in_order
from serai.world.grid import Grid
from serai.world.mobility import Tracks, random_waypoint
from serai.world.walks import Walk, walk

MOVEMENT = 1  # the same stream as in a field: see serai.field.simulation
_TRACES_KEPT = 2  # in memory, for the next seed


def simulate_opportunistic(scenario: OpportunisticScenario, seed: int, *, full_log: bool = False) -> OpportunisticRun:
    """Run a protocol of opportunistic networks for the scenario's duration."""
    nodes, contacts, journeys = find_contacts(scenario, seed)
    published = publications(scenario, nodes, seed)
    wanted = subscriptions_of(scenario, nodes, published, seed, contacts)
    carries = np.ones(len(nodes.names), bool)
    if scenario.nodes.carriers == "others":
        carries[np.concatenate((published.sources, wanted.sinks))] = False
    tracks = None if journeys is None else tracks_in_run(journeys, scenario.duration_s, len(nodes.names))
    given = Given(tuple(nodes.names), contacts, published, wanted, carries, tracks)
    return simulate_given(scenario, given, seed, full_log)


class Given(NamedTuple):
    """Everything that a run begins with."""

    names: tuple[str, ...]
    contacts: Contacts
    published: Published
    wanted: Wanted
    carries: NDArray[np.bool_]
    tracks: Tracks | None = None

    @property
    def world(self) -> ContactWorld:
        """The same as the engine reads it."""
        return ContactWorld(
            nodes=len(self.names),
            channels=len(self.published.channels),
            contacts=self.contacts,
            bundles=self.published.bundles,
            subscriptions=self.wanted.subscriptions,
            carries=self.carries,
        )


def given_in(run: OpportunisticRun) -> Given:
    """What a run began with, be it simulated or recorded."""
    return Given(run.names, run.world.contacts, run.published, run.wanted, run.world.carries, run.tracks)


def simulate_given(scenario: OpportunisticScenario, given: Given, seed: int, full_log: bool) -> OpportunisticRun:
    """Run the scenario's protocol over contacts, publications and subscriptions that are known."""
    protocol, world = PROTOCOLS[scenario.protocol.name], given.world
    outcome: Outcome = protocol.simulate(world, medium_of(scenario, seed, full_log), scenario.protocol)
    return OpportunisticRun(
        scenario,
        protocol.name,
        seed,
        world,
        outcome,
        given.names,
        given.published,
        given.wanted,
        full_log,
        given.tracks,
    )


def medium_of(scenario: OpportunisticScenario, seed: int, full_log: bool) -> Medium:
    """The numbers of a scenario as the engine reads them."""
    return Medium(
        rate_bps=scenario.radio.rate_bps,
        duration_s=scenario.duration_s,
        capacity_bytes=scenario.nodes.store_bytes,
        when_full=WHEN_FULL.index(scenario.nodes.when_full),
        single=scenario.radio.single,
        step_s=scenario.step_s,
        lifetime_unit_s=scenario.bundles.lifetime_unit_s,
        key=order_key(seed),
        full_log=full_log,
        keep_own=scenario.nodes.keep_own,
    )


# ---- who meets whom


def find_contacts(scenario: OpportunisticScenario, seed: int) -> tuple[NodeNames, Contacts, Journeys | None]:
    """The nodes, who of them meets whom in the time of the run, and where they are; None: nobody knows."""
    if scenario.contacts.source == "movement":
        names = NodeNames(f"n{number}" for number in range(scenario.nodes.count))
        journeys = Journeys(move(scenario, seed))
        return names, _by_range(scenario, journeys), journeys
    trace = _trace_of_run(scenario)
    names = NodeNames(trace.names, growing=True)
    if isinstance(trace, ContactTrace):
        return names, _in_the_run(trace.contacts, scenario.contacts.begin_s, scenario.duration_s), None
    journeys = trace.journeys(scenario.contacts.begin_s, scenario.contacts.gap_s or math.inf)
    return names, no_shorter(_by_range(scenario, journeys), scenario.contacts.min_contact_s), journeys


def check_files_opportunistic(scenario: OpportunisticScenario) -> None:
    """Read the trace and the files of bundles and subscriptions, if there are any, as a run would."""
    if scenario.contacts.source == "movement":
        names = NodeNames(f"n{number}" for number in range(scenario.nodes.count))
    else:
        names = NodeNames(_trace_of_run(scenario).names, growing=True)
    if any(section.file is not None for section in (scenario.bundles, scenario.subscriptions, scenario.events)):
        nobody = Contacts(*np.empty((2, 0), np.int32), *np.empty((2, 0)))
        subscriptions_of(scenario, names, publications(scenario, names, 0), 0, nobody)


def _trace_of_run(scenario: OpportunisticScenario) -> ContactTrace | TrackTrace:
    """The scenario's trace, if it lasts as long as the run."""
    trace = _trace(scenario)
    if trace.end_s <= scenario.contacts.begin_s + scenario.duration_s - 1.0:
        covered_s = max(math.ceil(trace.end_s - scenario.contacts.begin_s), 0)
        raise BadInput(
            f"{scenario.contacts.file}: the trace ends at {trace.end_s:g} s, before the run does, which begins at"
            f' {scenario.contacts.begin_s:g} s of it; set duration to "{covered_s} s" or less, or begin earlier'
        )
    return trace


def move(scenario: OpportunisticScenario, seed: int) -> Tracks:
    """How the nodes move, by the scenario's model."""
    how, count, own = scenario.movement, scenario.nodes.count, np.random.SeedSequence([seed, MOVEMENT])
    grid = Grid(how.width_m, how.height_m, *how.homes)
    speed, pause = (how.speed_min_mps, how.speed_max_mps), (how.pause_min_s, how.pause_max_s)
    if how.model == "random-waypoint":
        return random_waypoint(grid, count, scenario.duration_s, speed, pause, how.start, seed=own)
    legs = (how.leg_min_m, how.leg_max_m)
    chosen = Walk(how.model, speed, pause, legs, how.leg_exponent, how.pause_exponent, how.home_share)
    return walk(grid, count, scenario.duration_s, chosen, seed=own)


def _by_range(scenario: OpportunisticScenario, journeys: Journeys) -> Contacts:
    """Contacts by radio range, seen at ticks if the scenario says so."""
    contacts = contacts_by_range(journeys, scenario.radio.range_m, scenario.duration_s)
    return at_ticks(contacts, scenario.step_s, scenario.duration_s) if scenario.step_s else contacts


def _in_the_run(contacts: Contacts, begin_s: float, duration_s: float) -> Contacts:
    """The contacts from `begin_s` on for the duration of the run, time 0 at its beginning."""
    up_s, down_s = contacts.up_s - begin_s, contacts.down_s - begin_s
    inside = ((down_s > 0) | (up_s >= 0)) & (up_s < duration_s)
    cut = Contacts(contacts.a, contacts.b, np.maximum(up_s, 0.0), np.minimum(down_s, duration_s))
    return in_order(cut.at(inside))


def _trace(scenario: OpportunisticScenario) -> ContactTrace | TrackTrace:
    """The scenario's trace, read once for many seeds."""
    file = scenario.contacts.file
    assert file is not None  # the section refuses it otherwise
    try:
        status = file.stat()
    except OSError as error:
        raise BadInput(f"{file}: cannot be read: {error.strerror}") from None
    how = scenario.contacts
    wanted = Adjustments(how.time_unit, how.nodes, how.gap_s, how.min_contact_s)
    return _read_once(file, how.format, wanted, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=_TRACES_KEPT)
def _read_once(file: Path, form: str, wanted: Adjustments, changed_ns: int, size: int) -> ContactTrace | TrackTrace:
    return read_trace(file, form, wanted=wanted)
