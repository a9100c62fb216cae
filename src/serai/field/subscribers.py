"""Who moves through a field: groups of subscribers that walk at random, follow recorded tracks, or keep to a route."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from serai.core.units import TIME, Metres, MetresPerSecond, Seconds, format_quantity, parse_quantity
from serai.scenario.section import FilePath, Section, SubscriptionTexts, Violation, misread

TURNING_M = 20.0

_WALKING = ("speed_min", "speed_max", "pause_min", "pause_max", "start")
_ON_TRACKS = ("nodes", "begin", "gap")
_GIVEN = ("repeat", "turning", "outside")


def _times(value: object) -> object:
    if isinstance(value, tuple):
        return value
    try:
        return tuple(parse_quantity(text, TIME) for text in (value if isinstance(value, list) else [value]))
    except ValueError as error:
        raise PydanticCustomError("unit", "{problem}", {"problem": str(error)}) from None


def _stops(value: object) -> object:
    if not isinstance(value, dict):
        raise PydanticCustomError("stops", 'expected a table such as {{gate = "2 min"}}')
    try:
        return {name: parse_quantity(text, TIME) if isinstance(text, str) else text for name, text in value.items()}
    except ValueError as error:
        raise PydanticCustomError("unit", "{problem}", {"problem": str(error)}) from None


def _waypoints(value: object) -> object:
    points = value if isinstance(value, list | tuple) else []
    for point in points:
        place = isinstance(point, list | tuple) and len(point) == 2
        if not isinstance(point, str) and not (place and all(type(axis) in (int, float) for axis in point)):
            raise PydanticCustomError("way", "expected names of places, or places such as [120, 45.5]")
    if len(points) < 2:
        raise PydanticCustomError("way", 'expected at least two waypoints, such as ["gate", [120, 45.5]]')
    return tuple(point if isinstance(point, str) else (float(point[0]), float(point[1])) for point in points)


_TEXT = {"type": "string"}
Departures = Annotated[
    tuple[float, ...],
    BeforeValidator(_times),
    PlainSerializer(lambda times: [format_quantity(time_s, TIME) for time_s in times], when_used="json"),
    WithJsonSchema({"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}),
]
Stops = Annotated[
    dict[str, float],
    BeforeValidator(_stops),
    PlainSerializer(
        lambda stops: {name: format_quantity(time_s, TIME) for name, time_s in stops.items()}, when_used="json"
    ),
    WithJsonSchema({"type": "object", "additionalProperties": _TEXT}),
]
Waypoint = str | tuple[float, float]
Way = Annotated[
    tuple[Waypoint, ...],
    BeforeValidator(_waypoints),
    PlainSerializer(lambda way: [point if isinstance(point, str) else list(point) for point in way], when_used="json"),
    WithJsonSchema(
        {"type": "array", "minItems": 2, "items": {"anyOf": [_TEXT, {"type": "array", "items": {"type": "number"}}]}}
    ),
]


class RouteSection(Section):
    """A route: a way that is gone again and again at one speed; a bus, a patrol, a drone."""

    way: Way | None = Field(
        None,
        description='Waypoints with straight lines between them: names of sensors or of "places", or [x, y] in metres.',
    )
    line: FilePath = Field(None, description="Instead of a way: a GeoJSON file with one LineString.")
    places: FilePath = Field(None, description="Named places, CSV or GeoJSON as for sensors, for way and stops.")
    speed_mps: MetresPerSecond = Field(gt=0, le=1e6, alias="speed", description="How fast it goes.")
    stop_s: Seconds = Field(0.0, ge=0, alias="stop", description="How long it stops at every waypoint of a way.")
    stops: Stops = Field({}, description='How long it stops at places of the way: {gate = "2 min", pond = "30 s"}.')
    departures: Departures = Field(
        (), description="When it sets off, from its first waypoint or back from its last; left out: without resting."
    )
    apart_s: Seconds = Field(
        0.0, ge=0, alias="apart", description="Each node of the group sets off this much later than the one before it."
    )

    def violations(self) -> Iterator[Violation]:
        """A way twice, or not at all; times that do not go on."""
        if self.way is None and self.line is None:
            yield Violation(("way", "line"), 'needs waypoints, way = ["gate", "pond"], or a line = "round.geojson"')
        if self.way is not None and self.line is not None:
            yield Violation(("line", "way"), "either a way or a line, not both")
        if self.line is not None and self.stop_s > 0:
            yield Violation(("stop", "line"), "a line has no waypoints; name its stops, stops = {gate = ...}")
        if any(time_s < 0 for time_s in (*self.stops.values(), *self.departures)):
            yield Violation(
                ("stops" if min(self.stops.values(), default=0) < 0 else "departures",), "a time is below 0"
            )
        if list(self.departures) != sorted(set(self.departures)):
            yield Violation(("departures",), "each departure must be later than the one before it")


class SubscriberSection(Section):
    """The subscribers: they move through the field and collect events. May be repeated, one [[subscribers]] a group."""

    name: str | None = Field(None, description="What the group is called, if there are several.")
    count: int = Field(
        10,
        ge=0,
        le=10_000_000,
        description="How many there are; with tracks, the first so many, or all of them if left out.",
    )
    speed_min_mps: MetresPerSecond = Field(
        1.0,
        ge=0,
        alias="speed_min",
        description="Each leg has a new speed, above this one. At 0 a leg may be so slow that it lasts for hours.",
    )
    speed_max_mps: MetresPerSecond = Field(
        5.0, gt=0, le=1e6, alias="speed_max", description="Each leg has a new speed, at most this one."
    )
    pause_min_s: Seconds = Field(
        0.0, ge=0, alias="pause_min", description="A pause at a waypoint is at least this long."
    )
    pause_max_s: Seconds = Field(
        120.0, ge=0, alias="pause_max", description="A pause at a waypoint is at most this long."
    )
    start: Literal["cold", "steady"] = Field(
        "cold",
        description='"cold": all set off at time 0, from anywhere; "steady": as if they had moved for a long time.',
    )
    tracks: FilePath = Field(
        None,
        description="They follow the tracks of a file, one node each: GPX, Movebank, SUMO and what simulators write.",
    )
    nodes: str | None = Field(None, description='Which tracks of the file: "1-4, fox"; left out: all of them.')
    begin_s: Seconds | None = Field(
        None, alias="begin", description="The time of the file at which the run begins; left out: see docs/world.md."
    )
    gap_s: Seconds | None = Field(
        None,
        gt=0,
        alias="gap",
        description="Between two positions further apart in time than this a node is nowhere; left out: ten times the"
        " usual interval.",
    )
    route: RouteSection | None = Field(None, description="They follow a route.")
    repeat_s: Seconds | None = Field(
        None, gt=0, alias="repeat", description='Tracks and departures repeat after this time: "1 d".'
    )
    turning_m: Metres | None = Field(
        None,
        ge=0,
        alias="turning",
        description="Tracks and routes: where the path leaves a straight line by more than this, a new leg begins and"
        f' is announced; left out: "{TURNING_M:g} m".',
    )
    outside: Literal["refuse", "away"] | None = Field(
        None,
        description='Tracks that leave the field are refused (the default), or nodes are absent while outside: "away".',
    )
    only_carries: bool | None = Field(
        None, description="Whether they ask for nothing and only carry what others want (CET); left out: no."
    )
    where: SubscriptionTexts | None = Field(
        None, description="What the group asks for; left out: as [subscriptions] says."
    )

    @property
    def movement(self) -> Literal["walk", "tracks", "route"]:
        """How they move."""
        if self.tracks is not None:
            return "tracks"
        return "walk" if self.route is None else "route"

    @property
    def asked(self) -> int | None:
        """How many there are; None: as many as there are tracks."""
        return None if self.movement == "tracks" and "count" not in self.model_fields_set else self.count

    def violations(self) -> Iterator[Violation]:
        """Ranges the wrong way round, and settings of another movement."""
        if self.speed_min_mps > self.speed_max_mps:
            least, most = self.speed_min_mps, self.speed_max_mps
            problem = f"speed_min ({least:g} m/s) is above speed_max ({most:g} m/s)"
            yield Violation(("speed_min", "speed_max"), problem)
        if self.pause_min_s > self.pause_max_s:
            problem = f"pause_min ({self.pause_min_s:g} s) is above pause_max ({self.pause_max_s:g} s)"
            yield Violation(("pause_min", "pause_max"), problem)
        yield from self._of_another_movement()
        if self.name is not None and (self.name in self.all_keys() or not re.fullmatch(r"[A-Za-z][\w-]*", self.name)):
            yield Violation(
                ("name",), f'"{self.name}" cannot be a name: letters, digits, _ and -, and no key of a group'
            )
        if self.only_carries and self.where is not None:
            yield Violation(("where", "only_carries"), "who only carries asks for nothing")
        for place, error in misread(self.where or (), None):
            yield Violation((f"where.{place}",), error.message, error.position, error.width)

    def _of_another_movement(self) -> Iterator[Violation]:
        if self.tracks is not None and self.route is not None:
            yield Violation(("route", "tracks"), "either tracks or a route, not both")
        for keys, needed, fits in (
            (_WALKING, "tracks" if self.tracks is not None else "route", self.movement == "walk"),
            (_ON_TRACKS, "tracks", self.movement == "tracks"),
            (_GIVEN, "tracks", self.movement != "walk"),
        ):
            for key in keys:
                if not fits and self._is_set(key):
                    only = "only used by those who walk" if keys is _WALKING else f"only used with {_needs(keys)}"
                    yield Violation((key, needed), only)

    def _is_set(self, key: str) -> bool:
        field = next(name for name, field in type(self).model_fields.items() if key == (field.alias or name))
        return field in self.model_fields_set

    @classmethod
    def all_keys(cls) -> list[str]:
        """What a group can say."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    def as_written(self, written: dict[str, Any]) -> dict[str, Any]:
        """The group as TOML data, without the keys that are of no use to it."""
        useless = set(_WALKING) if self.movement != "walk" else set()
        if self.asked is None:
            useless.add("count")
        return {key: value for key, value in written.items() if key not in useless}


def _needs(keys: tuple[str, ...]) -> str:
    return 'tracks = "vehicles.gpx"' + (" or a route" if keys is _GIVEN else "")
