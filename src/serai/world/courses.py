"""Courses: the movement of nodes that do not walk at random, from positions at times; and the legs that it falls into.

A course is three rows, time, x and y. It is a track with one more thing to say: a point that is nowhere (NaN) says that
from then on nobody is there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.core.jit import kernel, rule
from serai.world.grid import Floats, Numbers
from serai.world.mobility import Tracks, is_leg

_MOST_POINTS = 200_000_000  # of all courses together: 5 GB


def with_absences(course: Floats, known: NDArray[np.bool_], gap_s: float, stays: bool) -> Floats:
    """The known points of a course, nowhere between two that have others between them or are further apart than a gap.

    Unless it `stays` where it is first and last known, the node is nowhere before and after that.
    """
    kept = np.flatnonzero(known)
    points, last = course[:, kept], len(kept) - 1
    if last < 0:
        return np.array([[0.0], [math.nan], [math.nan]])
    lost = (np.diff(kept) > 1) | (np.diff(points[0]) > gap_s)
    before = np.append(not (stays and kept[0] == 0), lost)
    after = np.append(lost, not (stays and kept[-1] == course.shape[1] - 1))
    which, extra = np.nonzero(np.column_stack((before, np.ones(last + 1, bool), after)))
    made = points[:, which]
    made[1:, extra != 1] = math.nan
    if made[0, 0] > 0:  # what holds at its first point holds from the beginning
        made = np.concatenate((made[:, :1], made), axis=1)
        made[0, 0] = 0.0
    return made


def repeated(course: Floats, period_s: float, duration_s: float) -> Floats:
    """A course that begins anew after each period, in a jump if need be, for as long as the run lasts."""
    first = max(int(np.searchsorted(course[0], 0.0, side="right")) - 1, 0)
    last = int(np.searchsorted(course[0], period_s, side="left")) - 1
    begin, end = _after(course, first, 0.0), _after(course, last, period_s)
    once = np.concatenate((begin, course[:, first + 1 : last + 1], end), axis=1)
    times = math.ceil(duration_s / period_s)
    check_size(times * once.shape[1])
    made = np.tile(once, times)
    made[0] += np.repeat(period_s * np.arange(times), once.shape[1])
    return made


def _after(course: Floats, point: int, time_s: float) -> Floats:
    """The place of a course at a time after one of its points and not after the next."""
    here, there = course[:, point], course[:, min(point + 1, course.shape[1] - 1)]
    share = (time_s - here[0]) / (there[0] - here[0]) if there[0] > here[0] else 0.0
    x, y = here[1:] + (there[1:] - here[1:]) * share
    return np.array([[time_s], [x], [y]])


def within_run(course: Floats, duration_s: float) -> Floats:
    """A course from its last point at or before time 0 to its first one at or after the end of the run."""
    first = max(int(np.searchsorted(course[0], 0.0, side="right")) - 1, 0)
    end = int(np.searchsorted(course[0], duration_s, side="left")) + 1
    return course[:, first:end]


def check_size(points: int) -> None:
    """Refuse courses that no memory holds."""
    if points > _MOST_POINTS:
        raise BadInput(
            f"tracks of {points:,} positions in all, with what is repeated: at most {_MOST_POINTS:,} can be kept;"
            " take a shorter run, or a coarser track"
        )


def tracks_of_courses(courses: Sequence[Floats]) -> Tracks:
    """Courses one after the other, as the tracks of as many nodes."""
    start = np.cumsum([0, *(course.shape[1] for course in courses)]).astype(np.int64)
    points = np.concatenate([np.empty((3, 0)), *courses], axis=1)
    return Tracks(start, *points)


# ---- what is announced as one way


def legs_of(tracks: Tracks, turning_m: Floats) -> Numbers:
    """The leg of each segment, named by its first point, where each subscriber has a tolerance of its own.

    A leg goes on as long as all points between its ends are where they would be at that time on the straight line from
    end to end, give or take the tolerance to the east and to the north. With a tolerance of 0 each segment is a leg. A
    pause is never part of one, nor is a time in which the subscriber is nowhere.
    """
    legs = np.arange(tracks.time_s.size, dtype=np.int32)
    if turning_m.any():
        _join_legs(tracks.writable(), np.ascontiguousarray(turning_m, np.float64), legs)
    return legs


@kernel
def _join_legs(tracks: Tracks, turning_m: Floats, legs: Numbers) -> None:
    """Name each segment by the first one of its leg: of the speeds that fit all points so far, few are left."""
    for subscriber in range(tracks.start.size - 1):
        last, off = tracks.start[subscriber + 1] - 1, turning_m[subscriber]
        first = tracks.start[subscriber]
        while first < last:
            west = south = -math.inf
            east = north = math.inf
            end = first + 1
            while off > 0.0 and end < last and _goes_on(tracks, subscriber, first, end):
                passed_s = tracks.time_s[end] - tracks.time_s[first]
                dx, dy = tracks.x_m[end] - tracks.x_m[first], tracks.y_m[end] - tracks.y_m[first]
                west, east = max(west, (dx - off) / passed_s), min(east, (dx + off) / passed_s)
                south, north = max(south, (dy - off) / passed_s), min(north, (dy + off) / passed_s)
                passed_s = tracks.time_s[end + 1] - tracks.time_s[first]
                to_east = (tracks.x_m[end + 1] - tracks.x_m[first]) / passed_s
                to_north = (tracks.y_m[end + 1] - tracks.y_m[first]) / passed_s
                if not (west <= to_east <= east and south <= to_north <= north):
                    break
                legs[end] = first
                end += 1
            first = end


@rule
def _goes_on(tracks: Tracks, subscriber: int, first: int, segment: int) -> bool:
    """Whether a segment may belong to the leg before it: both lead somewhere, and neither is a jump."""
    return (
        is_leg(tracks, subscriber, first)
        and is_leg(tracks, subscriber, segment)
        and tracks.time_s[first + 1] > tracks.time_s[first]
        and tracks.time_s[segment + 1] > tracks.time_s[segment]
    )
