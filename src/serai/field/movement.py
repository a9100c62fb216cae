"""How the subscribers of a field move: each group by itself, then all of them side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.core.streams import MOVEMENT
from serai.field.routes import course_of, way_of
from serai.field.sections import FieldScenario
from serai.field.subscribers import TURNING_M, SubscriberSection
from serai.field.world import UNNAMED, People
from serai.traces import Adjustments, ContactTrace, TrackTrace, read_trace
from serai.traces.warnings import TO_MEND
from serai.world.courses import check_size, repeated, tracks_of_courses, with_absences, within_run
from serai.world.geography import Origin
from serai.world.grid import Floats, Grid
from serai.world.mobility import Tracks, random_waypoint
from serai.world.positions import origin_of_file

_ROUNDING_M = 0.01
_FILES_KEPT = 4  # in memory, for the next seed


class Places(NamedTuple):
    """What has a name and a place: the sensors."""

    names: tuple[str, ...]
    x_m: Floats
    y_m: Floats


class _Moving(NamedTuple):
    """A group: what its nodes are called, and where they are."""

    names: list[str]
    tracks: Tracks
    followed: Sequence[str] = ()  # the tracks of the file that it follows


def move(scenario: FieldScenario, seed: int, sensors: Places) -> tuple[Tracks, People]:
    """How all subscribers move under a seed, group by group, and who they are."""
    groups = [_move_group(scenario, group, seed, sensors) for group in scenario.groups]
    _check_names(scenario, groups, sensors)
    tracks = groups[0].tracks if len(groups) == 1 else _side_by_side([group.tracks for group in groups])
    sizes = [len(group.names) for group in groups]
    return tracks, People(
        tuple(name for group in groups for name in group.names),
        tuple(group.name or "" for group in scenario.groups),
        np.repeat(np.arange(len(groups), dtype=np.int32), sizes),
        np.repeat([turning_m(group) for group in scenario.groups], sizes),
        np.repeat([np.uint8(bool(group.only_carries)) for group in scenario.groups], sizes),
    )


def turning_m(group: SubscriberSection) -> float:
    """How far from a straight line the way of a group is still announced as one leg."""
    if group.movement == "walk":
        return 0.0
    return TURNING_M if group.turning_m is None else group.turning_m


def origin_in(scenario: FieldScenario) -> Origin | None:
    """Where on earth the field lies; None: nobody says."""
    if scenario.field.origin is not None:
        return Origin(*scenario.field.origin)
    return None if scenario.sensors.file is None else origin_of_file(scenario.sensors.file)


def _side_by_side(tracks: Sequence[Tracks]) -> Tracks:
    sizes = np.cumsum([0, *(len(one.time_s) for one in tracks)])
    start = [one.start[:-1] + before for one, before in zip(tracks, sizes[:-1], strict=True)]
    columns = (np.concatenate(column) for column in zip(*(one[1:] for one in tracks), strict=True))
    return Tracks(np.concatenate([*start, sizes[-1:]]).astype(np.int64), *columns)


def _move_group(scenario: FieldScenario, group: SubscriberSection, seed: int, sensors: Places) -> _Moving:
    """How the nodes of a group move."""
    area, named = scenario.field, group.name or UNNAMED
    grid = Grid(area.width_m, area.height_m, area.columns, area.rows)
    if group.movement == "tracks":
        names, courses = _recorded(scenario, group, grid)
        return _Moving([f"{named}-{name}" for name in names], tracks_of_courses(courses), names)
    names = [f"{named}-{number}" for number in range(group.count)]
    if group.movement == "route":
        return _Moving(names, tracks_of_courses(_on_route(scenario, group, grid, sensors)))
    own = [] if group.name is None else list(group.name.encode())
    walks = random_waypoint(
        grid,
        group.count,
        scenario.duration_s,
        speed=(group.speed_min_mps, group.speed_max_mps),
        pause=(group.pause_min_s, group.pause_max_s),
        start=group.start,
        seed=np.random.SeedSequence([seed, MOVEMENT, *own]),
    )
    return _Moving(names, walks)


# ---- routes


def _on_route(scenario: FieldScenario, group: SubscriberSection, grid: Grid, sensors: Places) -> list[Floats]:
    """The courses of a group's nodes along its route."""
    route = group.route
    assert route is not None
    way = way_of(
        route, grid, origin_in(scenario), dict(zip(sensors.names, zip(*sensors[1:], strict=True), strict=True))
    )
    _check_way(route.line or route.places, way, grid)
    courses = []
    for number in range(group.count):
        course = course_of(route, way, group.repeat_s, number * route.apart_s, scenario.duration_s)
        courses.append(within_run(course, scenario.duration_s))
        check_size(sum(one.shape[1] for one in courses))
    return courses


def _check_way(file: Path | None, way: Floats, grid: Grid) -> None:
    """Refuse a way that leads out of the field."""
    for x, y in way[:2].T.tolist():
        if not (0 <= x <= grid.width_m and 0 <= y <= grid.height_m):
            what = f"{file}: the route" if file else "subscribers.route.way"
            raise BadInput(f"{what} comes to x = {x:.0f} m, y = {y:.0f} m, outside the field ({_extent(grid)})")


def _extent(grid: Grid) -> str:
    return f"0 to {grid.width_m:g} m and 0 to {grid.height_m:g} m"


# ---- recorded tracks


def _recorded(scenario: FieldScenario, group: SubscriberSection, grid: Grid) -> tuple[list[str], list[Floats]]:
    """Names and courses of the tracks of a group."""
    file = group.tracks
    assert file is not None
    trace = read_tracks(file, group.nodes)
    names = list(trace.names)
    count = len(names) if group.asked is None else group.asked
    if count > len(names):
        which = f' called "{group.nodes}"' if group.nodes else ""
        raise BadInput(f"{file}: {len(names)} tracks{which}, but {group.name or 'subscribers'} are to be {count}")
    x, y = _in_field(scenario, file, trace)
    points = int(trace.tracks.start[count])
    inside = (x >= 0) & (x <= grid.width_m) & (y >= 0) & (y <= grid.height_m)
    if group.outside != "away" or not inside[:points].any():
        _check_inside(file, trace, (x, y), inside[:points], grid)
    begin_s = _begin_s(scenario, group, trace)
    gap_s = (math.inf if trace.stays else trace.usual_gap_s or math.inf) if group.gap_s is None else group.gap_s
    courses = []
    for first, end in list(pairwise(trace.tracks.start.tolist()))[:count]:
        course = np.stack((trace.tracks.time_s[first:end] - begin_s, x[first:end], y[first:end]))
        course = with_absences(course, inside[first:end], gap_s, trace.stays)
        if group.repeat_s is not None:
            course = repeated(course, group.repeat_s, scenario.duration_s)
        courses.append(within_run(course, scenario.duration_s))
        check_size(sum(one.shape[1] for one in courses))
    _check_time(file, courses, begin_s, trace)
    return names[:count], courses


def read_tracks(file: Path, nodes: str | None) -> TrackTrace:
    """The tracks of a file, or those of some nodes; a line that cannot be read is refused."""
    try:
        status = file.stat()
    except OSError as error:
        raise BadInput(f"{file}: cannot be read: {error.strerror}") from None
    try:
        trace = _read_once(file, nodes or "", status.st_mtime_ns, status.st_size)
    except BadInput as error:
        raise BadInput(str(error).replace(TO_MEND, "mend the line, or take it out")) from None
    if isinstance(trace, ContactTrace):
        raise BadInput(f"{file}: says who met whom, not who was where; tracks need positions")
    return trace


@lru_cache(maxsize=_FILES_KEPT)
def _read_once(file: Path, nodes: str, changed_ns: int, size: int) -> ContactTrace | TrackTrace:
    return read_trace(file, strict=True, wanted=Adjustments(nodes=nodes))


def _in_field(scenario: FieldScenario, file: Path, trace: TrackTrace) -> tuple[Floats, Floats]:
    """The x and y of a trace's positions as the field has them."""
    if trace.degrees is None:
        return trace.tracks.x_m, trace.tracks.y_m
    origin = origin_in(scenario)
    if origin is None:
        raise BadInput(
            f"{file}: has longitudes and latitudes, but nothing says where the field is; give field.origin ="
            " [longitude, latitude] of its lower left corner, or positions of sensors in degrees"
        )
    east, north = origin.metres(*trace.degrees)
    return _off_edge(east, scenario.field.width_m), _off_edge(north, scenario.field.height_m)


def _off_edge(at: Floats, limit: float) -> Floats:
    """Places that rounding has carried a little beyond the edges of the field, on them."""
    return np.where(np.abs(at - np.clip(at, 0.0, limit)) <= _ROUNDING_M, np.clip(at, 0.0, limit), at)


def _check_inside(
    file: Path,
    trace: TrackTrace,
    place: tuple[Floats, Floats],
    inside: np.ndarray[tuple[int], np.dtype[np.bool_]],
    grid: Grid,
) -> None:
    """Refuse tracks that leave the field, or that lie somewhere else altogether."""
    outside = np.flatnonzero(~inside)
    if not len(outside):
        return
    line = f"line {trace.line[outside[0]]}: " if trace.line is not None else ""
    x, y = (float(column[outside[0]]) for column in place)
    if len(outside) == len(inside):
        dx = np.maximum(np.maximum(-place[0], place[0] - grid.width_m), 0.0)[: len(inside)]
        dy = np.maximum(np.maximum(-place[1], place[1] - grid.height_m), 0.0)[: len(inside)]
        away_m = float(np.hypot(dx, dy).min())
        far = f"{away_m / 1000:,.1f} km" if away_m >= 1000 else f"{away_m:.0f} m"
        raise BadInput(
            f"{file}: {line}no position is in the field ({_extent(grid)}), the nearest is {far} away from it; are the"
            " tracks of another place than the sensors, or is field.origin wrong?"
        )
    node = trace.names[int(np.searchsorted(trace.tracks.start, outside[0], side="right")) - 1]
    raise BadInput(
        f'{file}: {line}"{node}" is at x = {x:.0f} m, y = {y:.0f} m, outside the field ({_extent(grid)}), as are'
        f" {len(outside):,} of {len(inside):,} positions; enlarge the field (and move field.origin), or write outside ="
        ' "away" if nobody is there meanwhile'
    )


def _begin_s(scenario: FieldScenario, group: SubscriberSection, trace: TrackTrace) -> float:
    """The time of the file at which the run begins."""
    if group.begin_s is not None:
        return group.begin_s
    if trace.epoch_s is not None:
        return 0.0 if scenario.begin is None else scenario.begin - trace.epoch_s
    from_zero = abs(trace.begin_s) <= max(trace.end_s - trace.begin_s, 0.0)
    return 0.0 if from_zero else trace.begin_s


def _check_time(file: Path, courses: Sequence[Floats], begin_s: float, trace: TrackTrace) -> None:
    """Refuse tracks of which nobody is anywhere in the time of the run."""
    if courses and not any(np.isfinite(course[1]).any() for course in courses):
        raise BadInput(
            f"{file}: nobody is anywhere in the time of the run, which begins at {begin_s:g} s of the file; the tracks"
            f" last from {trace.begin_s:g} to {trace.end_s:g} s"
        )


# ---- who is who


def _check_names(scenario: FieldScenario, groups: Sequence[_Moving], sensors: Places) -> None:
    """Refuse two nodes of one name, or one track that two groups follow."""
    owner: dict[tuple[Path, str], str] = {}
    for group, moving in zip(scenario.groups, groups, strict=True):
        for track in moving.followed:
            assert group.tracks is not None
            before = owner.setdefault((group.tracks.resolve(), track), group.name or "subscribers")
            if before != (group.name or "subscribers"):
                raise BadInput(
                    f'{group.tracks}: track "{track}" is in two groups, {before} and {group.name}; say which tracks'
                    ' each group has: nodes = "..."'
                )
    known = set(sensors.names)
    for name in (name for moving in groups for name in moving.names):
        if name in known:
            raise BadInput(f'two nodes are called "{name}"; give the group another name')
        known.add(name)
