"""Routes: a way that is gone again and again at one speed, with stops, by a timetable or without a rest."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from serai.core.errors import BadInput, did_you_mean
from serai.field.subscribers import RouteSection
from serai.world.courses import check_size
from serai.world.files import read_text
from serai.world.geography import Origin
from serai.world.grid import Floats, Grid
from serai.world.positions import read_positions

_NEAR_M = 50.0  # a stop farther from the line than this is none of it

Named = Mapping[str, tuple[float, float]]


def way_of(route: RouteSection, grid: Grid, origin: Origin | None, sensors: Named) -> Floats:
    """The points of a way as rows x, y, and how long to stop there."""
    named = dict(sensors)
    if route.places is not None:
        names, x, y = read_positions(route.places, grid, origin)
        named |= dict(zip(names, zip(x.tolist(), y.tolist(), strict=True), strict=True))
    if route.line is not None:
        return _with_stops(route, _line(route.line, origin), named)
    assert route.way is not None
    strange = [name for name in route.stops if name not in route.way]
    if strange:
        raise BadInput(f'subscribers.route.stops: "{strange[0]}" is no waypoint of the way')
    points = [(*_place(point, named), _stop_s(route, point)) for point in route.way]
    return np.array(points, np.float64).T.copy()


def _place(point: str | tuple[float, float], named: Named) -> tuple[float, float]:
    if not isinstance(point, str):
        return point
    if point not in named:
        raise BadInput(f'subscribers.route: no place is called "{point}"; {did_you_mean(point, list(named))}')
    return named[point]


def _stop_s(route: RouteSection, point: str | tuple[float, float]) -> float:
    return route.stops.get(point, route.stop_s) if isinstance(point, str) else route.stop_s


# ---- a line from a file


def _line(file: Path, origin: Origin | None) -> Floats:
    """The points of the one LineString in a GeoJSON file."""
    try:
        document = json.loads(read_text(file))
    except json.JSONDecodeError as error:
        raise BadInput(f"{file}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise BadInput(f"{file}: not JSON that can be read: {error}") from None
    lines = [one.get("coordinates") for one in _geometries(document) if one.get("type") == "LineString"]
    if len(lines) != 1:
        raise BadInput(f'{file}: {len(lines)} geometries of type "LineString"; a route is one')
    points = lines[0] if isinstance(lines[0], list) else []
    wrong = [number for number, point in enumerate(points, 1) if not _is_place(point)]
    if wrong or len(points) < 2:
        where = f"point {wrong[0]}: must be [longitude, latitude]" if wrong else "needs at least two points"
        raise BadInput(f"{file}: LineString: {where}")
    if origin is None:
        raise BadInput(
            f"{file}: has longitudes and latitudes, but nothing says where the field is; give field.origin ="
            " [longitude, latitude] of its lower left corner, or positions of sensors in degrees"
        )
    lon, lat = np.array([point[:2] for point in points], np.float64).T
    return np.stack(origin.metres(lon, lat))


def _geometries(document: Any) -> Iterator[dict[str, Any]]:
    """Every geometry of a GeoJSON document."""
    if isinstance(document, dict):
        features = document.get("features")
        if isinstance(features, list):
            for feature in features:
                yield from _geometries(feature)
        elif isinstance(document.get("geometry"), dict):
            yield document["geometry"]
        else:
            yield document


def _is_place(point: Any) -> bool:
    if not isinstance(point, list) or len(point) < 2 or any(type(axis) not in (int, float) for axis in point[:2]):
        return False
    return bool(abs(point[0]) <= 180 and abs(point[1]) <= 90)


def _with_stops(route: RouteSection, line: Floats, named: Named) -> Floats:
    """A line with its stops put in where they are nearest to it."""
    stops = []
    for name, stop_s in route.stops.items():
        place = np.array(_place(name, named))
        along, near = _nearest(line, place)
        if math.dist(near, place) > _NEAR_M:
            far = f"{math.dist(near, place):.0f} m away from the line"
            raise BadInput(f'subscribers.route.stops: "{name}" is {far}, at most {_NEAR_M:g} m are possible')
        stops.append((along, *near, stop_s))
    vertices = [(float(number), x, y, 0.0) for number, (x, y) in enumerate(line.T.tolist())]
    return np.array([row[1:] for row in sorted([*vertices, *stops])], np.float64).T.copy()


def _nearest(line: Floats, place: Floats) -> tuple[float, list[float]]:
    """Where a line is nearest to a place: after which point (2.5: half-way from the third to the fourth), and where."""
    begin, step = line[:, :-1], np.diff(line)
    length = np.maximum((step * step).sum(axis=0), 1e-300)
    share = np.clip(((place[:, None] - begin) * step).sum(axis=0) / length, 0.0, 1.0)
    near = begin + step * share
    best = int(np.argmin(((near - place[:, None]) ** 2).sum(axis=0)))
    return best + float(share[best]), [float(axis) for axis in near[:, best]]


# ---- from a way to a course


def course_of(route: RouteSection, way: Floats, period_s: float | None, late_s: float, duration_s: float) -> Floats:
    """Where a node of the route is at any time, up to the end of the run: rows time, x, y.

    A way that ends where it begins is gone round and round, any other there and back. A departure sets off from the end
    where the node is, or as soon as it has come there.
    """
    closed = bool((way[:2, 0] == way[:2, -1]).all())
    length_m = np.hypot(*np.diff(way[:2]))
    if not length_m.any():
        raise BadInput("subscribers.route: all points of the way are the same place")
    rows: list[tuple[float, float, float]] = [(0.0, *way[:2, 0].tolist())]
    now_s, forth = late_s, True
    for departs_s in _departures(route, period_s, late_s, duration_s):
        now_s = max(now_s, departs_s)
        if now_s >= duration_s:
            break
        order = range(way.shape[1]) if forth else range(way.shape[1] - 1, -1, -1)
        now_s = _go(rows, route, way[:, list(order)], length_m if forth else length_m[::-1], now_s)
        forth = closed or not forth
        check_size(len(rows))
    return np.array(rows).T.copy()


def _departures(route: RouteSection, period_s: float | None, late_s: float, duration_s: float) -> Iterator[float]:
    """When a node is to set off, until the run is over; without a timetable at once and always again."""
    begin_s = 0.0
    while begin_s < duration_s:
        yield from (begin_s + late_s + time_s for time_s in route.departures or (0.0,))
        if route.departures and period_s is None:
            return
        begin_s += period_s if route.departures and period_s is not None else 0.0


def _go(
    rows: list[tuple[float, float, float]], route: RouteSection, way: Floats, length_m: Floats, now_s: float
) -> float:
    """Go the way once, from the place of the last row at a time; when that is done."""
    x, y, stop_s = way.tolist()
    rows.append((now_s, x[0], y[0]))
    for point in range(1, len(x)):
        now_s += float(length_m[point - 1]) / route.speed_mps
        rows.append((now_s, x[point], y[point]))
        if stop_s[point] > 0:
            now_s += stop_s[point]
            rows.append((now_s, x[point], y[point]))
    return now_s
