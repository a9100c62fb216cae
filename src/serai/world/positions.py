"""Sensor positions from a file: CSV (metres, or longitude and latitude) or GeoJSON points.

What else a file may say of a sensor is read by `serai.world.equipment`. Every problem of a file is told at once, with
its line. Longitude and latitude (WGS 84) become local metres by way of earth-centred coordinates: centimetres off over
tens of kilometres, where the usual shortcut (degrees times a constant) is metres off.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.world.equipment import Own, own_of
from serai.world.files import bad_file, csv_rows, read_text
from serai.world.geography import Origin, origin_of
from serai.world.grid import Floats, Grid

_NAME_COLUMNS = ("id", "name")
_AXES = (("x", "y"), ("lon", "lat"))
_ALIASES = {"longitude": "lon", "latitude": "lat"}
_DEGREES = {"lon": 180.0, "lat": 90.0}


class _Row(NamedTuple):
    """One sensor as it stands in the file: where ("line 3"), its name if any, its two coordinates, and all it says."""

    place: str
    name: str | None
    first: float
    second: float
    said: Mapping[str, Any]  # by column or property, in lower case


class Listed(NamedTuple):
    """The sensors of a file: names, metres from the field's lower left corner, and what each has of its own."""

    names: list[str]
    x_m: Floats
    y_m: Floats
    own: Own


class _Table(NamedTuple):
    """What a file holds: its rows, what the coordinates are, and all that is wrong so far."""

    rows: list[_Row]
    axes: tuple[str, str]
    problems: list[str]


def read_positions(path: Path, grid: Grid, origin: Origin | None = None) -> tuple[list[str], Floats, Floats]:
    """Names, x and y (metres from the field's lower left corner) of the sensors in a CSV or GeoJSON file.

    Sensors without a name are called s0, s1, ... by their number. Without an `origin`, of longitudes and latitudes the
    westernmost becomes x = 0 and the southernmost y = 0.
    """
    path = Path(path)
    return _checked(path, _read(path), [], grid, origin)


def read_sensors(path: Path, grid: Grid, origin: Origin | None = None) -> Listed:
    """The same, and what the file says of their batteries, queues and so on."""
    path = Path(path)
    table = _read(path)
    own, problems = own_of([(row.place, row.said) for row in table.rows])
    return Listed(*_checked(path, table, problems, grid, origin), own)


def _read(path: Path) -> _Table:
    text = read_text(path)
    return _read_geojson(path, text) if _is_json(path) else _read_csv(path, text)


def _checked(
    path: Path, table: _Table, more: Sequence[str], grid: Grid, origin: Origin | None
) -> tuple[list[str], Floats, Floats]:
    """Names, x and y of what was read; all that is wrong with it is told at once."""
    names = [f"s{number}" if row.name is None else row.name for number, row in enumerate(table.rows)]
    problems = [*table.problems, *more, *_repeated_names(names, table.rows)]
    if not table.rows and not problems:
        problems.append("no features in it" if _is_json(path) else "no rows below the header")
    x, y = _metres(table, origin)
    if not problems or table.axes == ("x", "y"):  # with rows missing, the corner of the others would be wrong
        problems += _outside(table.rows, x, y, grid)
    if problems:
        raise bad_file(path, problems)
    return names, x, y


def origin_of_file(path: Path) -> Origin | None:
    """Where on earth the field of a file of sensors lies; None: the file has metres, or none that can be used."""
    table = _read(path)
    if table.axes == ("x", "y") or not table.rows:
        return None
    return origin_of(*_columns_of(table))


def _is_json(path: Path) -> bool:
    return path.suffix.lower() in (".json", ".geojson")


def _columns_of(table: _Table) -> tuple[Floats, Floats]:
    return np.array([row.first for row in table.rows], np.float64), np.array(
        [row.second for row in table.rows], np.float64
    )


def _metres(table: _Table, origin: Origin | None) -> tuple[Floats, Floats]:
    """The rows' x and y in metres from the field's lower left corner."""
    first, second = _columns_of(table)
    if table.axes == ("x", "y") or not table.rows:
        return first, second
    return (origin or origin_of(first, second)).metres(first, second)


# ---- CSV


def _read_csv(path: Path, text: str) -> _Table:
    """The sensors of a CSV file with a header."""
    lines = csv_rows(path, text)
    if not lines:
        raise BadInput(f"{path}: the file is empty; expected a header with columns x, y (or lon, lat)")
    names, axes = _columns(path, lines[0][1])
    rows: list[_Row] = []
    problems: list[str] = []
    for line, cells in lines[1:]:
        row = _csv_row(f"line {line}", cells, names, axes, problems)
        if row is not None:
            rows.append(row)
    return _Table(rows, axes, problems)


def _columns(path: Path, header: Sequence[str]) -> tuple[list[str], tuple[str, str]]:
    """The columns' names in lower case, and which pair of them are the coordinates."""
    names = [_ALIASES.get(cell.strip().lower(), cell.strip().lower()) for cell in header]
    present = ", ".join(cell.strip() for cell in header)
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise BadInput(f"{path}: column {', '.join(twice)} stands twice in the header; it has: {present}")
    for axes in _AXES:
        if set(axes) <= set(names):
            return names, axes
    axes = next((pair for pair in _AXES if set(pair) & set(names)), _AXES[0])
    missing = ", ".join(axis for axis in axes if axis not in names)
    raise BadInput(f"{path}: missing column {missing} (need x, y or lon, lat); the header has: {present}")


def _csv_row(
    place: str, cells: Sequence[str], names: list[str], axes: tuple[str, str], problems: list[str]
) -> _Row | None:
    """One line as a row; None, and what is wrong with it, if it cannot be used."""
    if len(cells) != len(names):
        problems.append(f"{place}: {len(cells)} values, but the header has {len(names)} columns")
        return None
    by_name = dict(zip(names, cells, strict=True))
    name_column = next((column for column in _NAME_COLUMNS if column in by_name), None)
    name = by_name[name_column].strip() if name_column is not None else None
    if name == "":
        problems.append(f"{place}: {name_column} is empty")
    first, second = (_number(place, axis, by_name[axis].strip(), (str,), problems) for axis in axes)
    return None if first is None or second is None else _Row(place, name, first, second, by_name)


def _number(place: str, axis: str, written: Any, kinds: tuple[type, ...], problems: list[str]) -> float | None:
    """The coordinate that is written there; None, and what is wrong with it, if it cannot be used."""
    try:
        if type(written) not in kinds:
            raise ValueError
        number = float(written)
    except (ValueError, OverflowError):
        problems.append(f"{place}: {axis} is {json.dumps(written)[:40]}, not a number")
        return None
    limit = _DEGREES.get(axis, math.inf)
    if not math.isfinite(number):
        problems.append(f"{place}: {axis} is {number}, not a finite number")
    elif abs(number) > limit:
        problems.append(f"{place}: {axis} is {number:g}, outside {-limit:g} to {limit:g} degrees")
    else:
        return number
    return None


# ---- GeoJSON (RFC 7946)


def _read_geojson(path: Path, text: str) -> _Table:
    """The sensors of a GeoJSON FeatureCollection of points."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"{path}: line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise BadInput(f"{path}: not JSON that can be read: {error}") from None
    if not isinstance(document, dict) or document.get("type") != "FeatureCollection":
        raise BadInput(f'{path}: expected a GeoJSON object with "type": "FeatureCollection"')
    features = document.get("features")
    if not isinstance(features, list):
        raise BadInput(f'{path}: "features" must be a list')
    problems = _foreign_coordinates(document.get("crs"))
    rows = [_feature(f"feature {number}", feature, problems) for number, feature in enumerate(features, 1)]
    return _Table([row for row in rows if row is not None], ("lon", "lat"), problems)


def _foreign_coordinates(crs: object) -> list[str]:
    """What is wrong with the coordinates' system: GeoJSON of 2008 allowed others, today's does not."""
    if crs is None or any(known in json.dumps(crs) for known in ("CRS84", "4326")):
        return []
    return ["crs: only longitude and latitude in degrees (WGS 84) can be read; for metres use CSV with x, y"]


def _feature(place: str, feature: Any, problems: list[str]) -> _Row | None:
    """One feature as a row; None, and what is wrong with it, if it cannot be used."""
    geometry = feature.get("geometry") if isinstance(feature, dict) else None
    if not isinstance(geometry, dict) or geometry.get("type") != "Point":
        found = geometry.get("type") if isinstance(geometry, dict) else None
        problems.append(f'{place}: geometry must be a "Point", found {json.dumps(found)[:40]}')
        return None
    coordinates = geometry.get("coordinates")
    if not isinstance(coordinates, list) or len(coordinates) < 2:
        problems.append(f"{place}: coordinates must be [longitude, latitude]")
        return None
    name = _feature_name(place, feature, problems)
    first, second = (
        _number(place, axis, value, (int, float), problems)
        for axis, value in zip(("lon", "lat"), coordinates[:2], strict=True)
    )
    inner = feature.get("properties")
    said = {str(key).lower(): value for key, value in inner.items()} if isinstance(inner, dict) else {}
    return None if first is None or second is None else _Row(place, name, first, second, said)


def _feature_name(place: str, feature: dict[str, Any], problems: list[str]) -> str | None:
    """A feature's id or name: properties.id, id, properties.name, whichever comes first."""
    properties = feature.get("properties")
    inner = properties if isinstance(properties, dict) else {}
    candidates = (inner.get("id"), feature.get("id"), inner.get("name"))
    name = next((candidate for candidate in candidates if candidate is not None), None)
    if name is None:
        return None
    if type(name) not in (str, int, float):
        problems.append(f"{place}: id is {json.dumps(name)[:40]}, neither text nor a number")
    elif not str(name).strip():
        problems.append(f"{place}: id is empty")
    return str(name).strip()


# ---- what only shows when all rows are known


def _repeated_names(names: Iterable[str], rows: Iterable[_Row]) -> list[str]:
    """Names that more than one sensor has."""
    first_place: dict[str, str] = {}
    problems = []
    for name, row in zip(names, rows, strict=True):
        if name in first_place and name:
            problems.append(f'{row.place}: id "{name}" was used before, by {first_place[name]}')
        first_place.setdefault(name, row.place)
    return problems


def _outside(rows: Sequence[_Row], x: Floats, y: Floats, grid: Grid) -> list[str]:
    """Sensors that do not stand in the field."""
    problems = []
    for axis, metres, limit in (("x", x, grid.width_m), ("y", y, grid.height_m)):
        for number in np.flatnonzero((metres < 0) | (metres > limit)).tolist():
            where = f"{rows[number].place}: {axis} = {metres[number]:g} m"
            problems.append(f"{where} is outside the field, which reaches from 0 to {limit:g} m")
    return problems
