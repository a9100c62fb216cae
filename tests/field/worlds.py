"""Small worlds: built by hand, or drawn by Hypothesis with everything that could be awkward about them.

`product_records` runs the product and puts what it says into the words of the naive twins, so that one test
can be asked of both.
"""

import math
import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from hypothesis import strategies as st

from serai.core.jit import announced_compilation
from serai.field.equipment import harvest_of
from serai.field.passes import Ranges
from serai.field.sections import FieldScenario
from serai.field.simulation import draw_failing, run_protocol
from serai.field.world import People, World, who_hears_whom
from serai.world.grid import Grid
from serai.world.mobility import Tracks, random_waypoint
from tests.field.drawn_settings import PROTOCOL_SETTINGS, SUN, sections_for
from tests.field.naive import play
from tests.field.naive.parts import Records
from tests.field.twin_words import as_records
from tests.field.wishes import as_recorded

Place = tuple[float, float]
Walk = Sequence[tuple[float, float, float]]  # turning points: time, x, y


class Case(NamedTuple):
    """A world, what to do in it, and the key of its random orders."""

    world: World
    scenario: FieldScenario
    key: int


class Happening(NamedTuple):
    """An event to be: the sensor that measures it, when, and what."""

    sensor: int
    time_s: float
    values: tuple[float, ...] = (0.0,)


Bounds = tuple[tuple[float, float], ...]  # of each attribute: low, high
ANYTHING: Bounds = ((-math.inf, math.inf),)

# The settings that worlds built by hand are worked out for, whatever the product's defaults may be.
COMMUNITY_BY_HAND: dict[str, Any] = {
    "alpha": 20,
    "resend": "once",
    "zone": "path",
    "relays": "addressed",
    "stranded": "deleted",
    "hops": "many",
    "match": "subscriber",
    "floods": "whole",
    "silent_while_pausing": False,
}
SETTINGS_BY_HAND: dict[str, dict[str, Any]] = {
    "ced": COMMUNITY_BY_HAND,
    "cet": COMMUNITY_BY_HAND
    | {"gamma": 4, "theta": "5 J", "return_count": "kept", "return_memory": "empty", "return_to_origin": False},
    "cet-plus": {},  # it is what its defaults are
    "dg": {
        "resend": "every-second",
        "match": "subscriber",
        "reach": "touching",
        "budget": "subscriber",
        "silent_while_pausing": False,
    },
    # No energy price, nobody carries and nobody waits, so that what is not asked for does not happen.
    "serai": {
        "kappa": 0.0,
        "lam": "0 s",
        "lamt": "10 s",
        "carriers": 0,
        "deposits": 4,
        "phi": 0.5,
        "phi_d": 0.1,
        "xi": 0.6,
        "pull_hops": 5,
        "price_interval": 1_000_000,
        "clear_interval": 1,
    },
}


# --- By hand ------------------------------------------------------------------------------------------------


def build_world(
    grid: Grid,
    slots: int,
    sensors: Sequence[Place],
    walks: Sequence[Walk],
    events: Sequence[Happening],
    wants: Sequence[Bounds] | None = None,
    battery_j: float = 10.0,
    ranges: Ranges | None = None,
    people: People | None = None,
) -> World:
    """A world from plain lists; without `wants` everybody wants everything; with `ranges` reach is in metres."""
    crowd = people or People.alike(len(walks))
    bounds = list(wants) if wants is not None else [ANYTHING] * len(walks)
    tracks = tracks_from(walks)
    born = sorted(events, key=lambda event: (event.time_s, event.sensor))
    attributes = len(bounds[0]) if bounds else len(born[0].values) if born else 1
    x, y = np.array(sensors, float).reshape(-1, 2).T.copy()
    box = np.array(bounds, float).reshape(len(bounds), attributes, 2)
    return World(
        grid=grid,
        sensor_names=tuple(f"s{number}" for number in range(len(sensors))),
        sensor_x=x,
        sensor_y=y,
        battery_j=np.full(len(sensors), battery_j),
        tracks=tracks,
        event_sensor=np.array([event.sensor for event in born], np.int32),
        event_time_s=np.array([event.time_s for event in born], float),
        event_values=np.array([event.values for event in born], float).reshape(len(born), attributes),
        attribute_names=tuple(f"A{number + 1}" for number in range(attributes)),
        low=box[:, :, 0].copy(),
        high=box[:, :, 1].copy(),
        where=("",) * len(bounds),
        people=crowd,
        **who_hears_whom(grid, (x, y), ranges, tracks, slots, crowd.turning_m),
    )


def tracks_from(walks: Sequence[Walk]) -> Tracks:
    """Tracks from lists of turning points."""
    points = np.array([point for walk in walks for point in walk], float).reshape(-1, 3)
    start = np.cumsum([0, *(len(walk) for walk in walks)]).astype(np.int64)
    return Tracks(start, *points.T.copy())


def build_scenario(world: World, slots: int, protocol: dict[str, Any], **sections: dict[str, Any]) -> FieldScenario:
    """A scenario that fits the world; sections as in a scenario file, over what the papers have."""
    domain = {"kind": "real", "low": 0, "high": 10}
    given: dict[str, dict[str, Any]] = {
        "field": {
            "width": f"{world.grid.width_m!r} m",
            "height": f"{world.grid.height_m!r} m",
            "cells": [world.grid.columns, world.grid.rows],
        },
        "sensors": {"count": len(world.sensor_x)},
        "subscribers": {"count": len(world.low)},
        "events": {"quiet": "0 s", "attributes": dict.fromkeys(world.attribute_names, domain)},
        "subscriptions": {"where": f"{world.attribute_names[0]} < ?"},
        "protocol": SETTINGS_BY_HAND[protocol["name"]] | protocol,
    }
    if world.ranges is not None:
        given["radio"] = {"range": f"{world.ranges.subscribers_m!r} m"}
    for name, section in sections.items():
        given[name] = given.get(name, {}) | section
    return FieldScenario.model_validate({"title": "a small world", "duration": f"{slots} s", **given})


# --- What the product says, in the twins' words -------------------------------------------------------------


def product_records(world: World, scenario: FieldScenario, key: int, until_death: bool = False) -> Records:
    """What the compiled protocol does in the world, with the full log."""
    with announced_compilation(scenario.protocol.name):  # two test processes need not compile the same twice
        ledger, full = run_protocol(world, scenario, key, True, until_death)
    assert full is not None
    return as_records(ledger, full)


IMPLEMENTATIONS: dict[str, Callable[[World, FieldScenario, int], Records]] = {
    "naive": play,
    "product": product_records,
}


# --- Drawn by Hypothesis ------------------------------------------------------------------------------------
#
# Hypothesis draws what is worth shrinking: sizes, counts and settings. A seeded generator fills in the
# hundreds of coordinates and times, one stream per concern, so that fewer events leave the rest as it was.


class Shape(NamedTuple):
    """The outline of a small world."""

    grid: Grid
    slots: int
    sensors: int
    subscribers: int
    events: int
    attributes: int
    layout: str  # of the sensors: "anywhere", all at "one place", or on "trails" from one cell to the next
    waypoint: bool  # the product's own random waypoint, not walks with anything awkward in them
    seed: int
    range_m: float | None = None  # reach in metres
    spread: float = 1.0  # the sensors' ranges differ by so much
    tracked: bool = False  # some are nowhere now and then, announce winding ways as one leg, or only carry
    recorded: bool = False  # they ask as a file of subscriptions says: for several things, for some time, for nothing


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Fields of 1 to 6 cells a side, most sides no nice numbers; in some the radio's d0 (88 m) matters."""
    least = 3 if draw(st.booleans()) else 0  # half of the worlds are too small for much to happen in them
    columns, rows = draw(st.integers(max(least, 1), 6)), draw(st.integers(1, 6))
    side_m = draw(st.sampled_from([40 / 3, 10.0, 1 / 3, 77.7]))
    in_metres = draw(st.booleans())
    return Shape(
        grid=Grid(columns * side_m, rows * side_m * draw(st.sampled_from([1.0, 0.7])), columns, rows),
        slots=draw(st.integers(20, 150)),
        sensors=draw(st.integers(max(2 * least, 1), 8)),
        subscribers=draw(st.integers(least, 4)),
        events=draw(st.integers(20 * least, 120)),
        attributes=draw(st.integers(1, 2)),
        layout=draw(st.sampled_from(["trails", "trails", "trails", "anywhere", "anywhere", "one place"])),
        waypoint=draw(st.booleans()),
        range_m=side_m * draw(st.sampled_from([0.5, 1.0, 1.7, 2.5])) if in_metres else None,
        spread=draw(st.sampled_from([1.0, 2.0, 5.0])) if in_metres else 1.0,
        seed=draw(st.integers(0, 2**32 - 1)),
        tracked=draw(st.booleans()),
        recorded=draw(st.booleans()),
    )


def fill(shape: Shape) -> World:
    """A world of that shape."""
    sensors, steps, births, wants = (random.Random(4 * shape.seed + concern) for concern in range(4))
    grid, slots = shape.grid, shape.slots
    places = [some_place(grid, sensors)]
    while len(places) < shape.sensors:
        places.append(next_place(shape, places[-1], sensors))
    walks = (
        list(waypoint_walks(shape)) if shape.waypoint else [some_walk(shape, steps) for _ in range(shape.subscribers)]
    )
    events = [some_event(shape, births) for _ in range(shape.events)]
    bounds = [tuple(some_bounds(wants) for _ in range(shape.attributes)) for _ in range(shape.subscribers)]
    people = some_people(shape)
    for number in np.flatnonzero(people.carries).tolist():
        bounds[number] = ((math.inf, -math.inf),) * shape.attributes
    if shape.tracked:
        walks = [with_absences(walk, steps) for walk in walks]
    return build_world(grid, slots, places, walks, events, bounds, ranges=some_ranges(shape), people=people)


def some_people(shape: Shape) -> People:
    """What is announced as one leg, and who only carries."""
    people, rng = People.alike(shape.subscribers), random.Random(shape.seed + 1)
    if not shape.tracked:
        return people
    side_m = shape.grid.width_m / shape.grid.columns
    turning = [rng.choice([0.0, side_m / 4, side_m, 5 * side_m]) for _ in range(shape.subscribers)]
    carries = [rng.choice([0, 0, 1]) for _ in range(shape.subscribers)]
    return people._replace(turning_m=np.array(turning, float), carries=np.array(carries, np.uint8))


def with_absences(walk: Walk, rng: random.Random) -> Walk:
    """The same turning points, but for times in which the walker is nowhere, perhaps from the beginning or for ever."""
    points, nowhere = list(walk), (math.nan, math.nan)
    for _ in range(rng.randint(0, 2)):
        gone = rng.randrange(len(points))
        if math.isnan(points[gone][1]):
            continue
        since_s = points[gone][0]
        back = [] if gone + 1 == len(points) else [(points[gone + 1][0], *nowhere)]
        points[gone + 1 : gone + 1] = [(since_s, *nowhere), *back]
        if rng.random() < 0.3 and gone == 0:
            del points[0]
    return points


def some_ranges(shape: Shape) -> Ranges | None:
    """How far each sensor hears, if reach is in metres."""
    if shape.range_m is None:
        return None
    rng = random.Random(shape.seed)
    factors = [rng.choice([1.0, 1.0, shape.spread, 1 / shape.spread]) for _ in range(shape.sensors)]
    return Ranges(np.array([shape.range_m * factor for factor in factors]), shape.range_m)


def some_place(grid: Grid, rng: random.Random) -> Place:
    """A point of the field: often on an edge or a corner of a cell, or on the far side of the field."""
    x, y = (rng.choice([rng.random(), rng.randint(0, 24) / 24]) for _ in range(2))
    return x * grid.width_m, y * grid.height_m


def next_place(shape: Shape, last: Place, rng: random.Random) -> Place:
    """Where the next sensor stands."""
    if shape.layout == "one place":
        return last
    if shape.layout == "anywhere" or rng.random() < 0.25:
        return some_place(shape.grid, rng)
    return step_from(shape.grid, last, rng)


def step_from(grid: Grid, place: Place, rng: random.Random) -> Place:
    """A point about one cell away."""
    x = place[0] + rng.choice([-1, 0, 1, 1]) * grid.width_m / grid.columns
    y = place[1] + rng.choice([-1, 0, 1, 1]) * grid.height_m / grid.rows
    return min(max(x, 0.0), grid.width_m), min(max(y, 0.0), grid.height_m)


def some_walk(shape: Shape, rng: random.Random) -> Walk:
    """Turning points at any times: legs, pauses, jumps, points that repeat, a start half-way along a leg."""
    time_s, here = rng.choice([0.0, -2.5]), some_place(shape.grid, rng)
    points = [(time_s, *here)]
    for _ in range(rng.randint(0, 12)):
        time_s += rng.choice([0.0, 0.5, 1.0, 3.0, 7.25, 20.0, shape.slots / 3])
        here = rng.choice([here, step_from(shape.grid, here, rng), some_place(shape.grid, rng)])
        points.append((time_s, *here))
    return points


def waypoint_walks(shape: Shape) -> Sequence[Walk]:
    """Random waypoint, about two to twenty slots in a cell."""
    side = max(shape.grid.width_m / shape.grid.columns, shape.grid.height_m / shape.grid.rows)
    speed, pause, seed = (side / 20, side / 2), (0.0, 12.0), np.random.SeedSequence(shape.seed)
    start: Literal["cold", "steady"] = "cold" if shape.seed % 2 else "steady"
    tracks = random_waypoint(shape.grid, shape.subscribers, shape.slots, speed, pause, start, seed=seed)
    points = list(zip(tracks.time_s.tolist(), tracks.x_m.tolist(), tracks.y_m.tolist(), strict=True))
    return [points[begin:end] for begin, end in pairwise(tracks.start.tolist())]


def some_event(shape: Shape, rng: random.Random) -> Happening:
    """An event at a slot boundary or between two, now and then at the same instant as others, or too late."""
    slots = shape.slots
    times = [rng.random() * slots, float(rng.randint(0, slots)), rng.randint(0, 4 * slots) / 4, slots / 4]
    values = tuple(rng.choice([0.0, 1.0, 2.0, 2.5, 3.0]) for _ in range(shape.attributes))
    return Happening(rng.randrange(shape.sensors), rng.choice(times), values)


def some_bounds(rng: random.Random) -> tuple[float, float]:
    """What a subscriber wants of an attribute."""
    return rng.choice([-math.inf, -math.inf, 1.0, 2.25]), rng.choice([math.inf, math.inf, 2.5, 1.0])


def make_case(
    protocol: str, shape: Shape, settings: dict[str, Any], sections: dict[str, dict[str, Any]], key: int
) -> Case:
    """A world of that shape and a protocol with those settings in it."""
    world = fill(shape)
    if "reach" in settings and shape.range_m is not None:
        settings = settings | {"reach": "touching"}
    scenario = build_scenario(world, shape.slots, {"name": protocol, **settings}, **sections)
    if shape.recorded:
        world = as_recorded(world, shape.slots, shape.seed, float(scenario.events.lifetime_s))
    rng, usual = random.Random(shape.seed), scenario.sensors.battery_j
    batteries = np.array([usual * rng.choice([1, 1, 1, 0.1, 3]) for _ in world.sensor_x])
    failing = draw_failing(scenario, len(batteries), key)
    queues = None
    if rng.random() < 0.5:
        queues = np.array([max(round(scenario.sensors.queue * rng.choice([1, 1, 0.5, 2])), 1) for _ in world.sensor_x])
    idle_w = np.array([scenario.sensors.idle_w * rng.choice([1, 1, 0, 3]) for _ in world.sensor_x])
    watts = np.outer([rng.choice([0.0, 1.0, 1.0, 3.0]) for _ in world.sensor_x], scenario.sensors.harvest_w)
    harvest = harvest_of(scenario, watts)
    if harvest is not None:  # an hour may begin at any time
        harvest = harvest._replace(since_midnight_s=rng.randrange(86_400) if rng.random() < 0.5 else 3550)
    own = {"failing": failing, "harvest": harvest, "battery_j": batteries, "queue": queues}
    own["idle_w"] = idle_w if idle_w.any() else None
    return Case(world._replace(**own), scenario, key)


def cases(protocol: str, sun: bool = False) -> st.SearchStrategy[Case]:
    """A small world and any settings of a protocol; shown as the call of `make_case` that gives it again.

    `sun`: sensors harvest.
    """
    sections = sections_for(protocol)
    if sun:
        sections = sections | {"sensors": sections["sensors"] | SUN}
    return st.builds(
        make_case,
        st.just(protocol),
        shapes(),
        st.fixed_dictionaries(PROTOCOL_SETTINGS[protocol]),
        st.fixed_dictionaries({name: st.fixed_dictionaries(section) for name, section in sections.items()}),
        st.integers(0, 2**62 - 1),
    )


any_cases = st.sampled_from(["ced", "cet", "dg"]).flatmap(cases)  # the papers' protocols
