"""Pruned floods: who of a community speaks, so that all of it hears something that one sensor was told.

Of the sensors that it has reached, the one with most unreached neighbours for its price speaks next; who reaches nobody
new keeps silent. All know the map, so all agree on who that is.
"""

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import step
from serai.field.engine.state import Field, Records

FLOODER = np.dtype([("price", "i8"), ("reached", "i8"), ("unreached", "i4"), ("key", "i4")], align=True)
_NOT_IN_LINE = 1 << 30


@step
def find_speakers(
    field: Field, floods: Records, line: NDArray[np.int32], speakers: NDArray[np.int32], first: int, stamp: int
) -> int:
    """Who speaks, in order, into `speakers`, and how many; `floods`: for each sensor a record with FLOODER's fields.

    `line` is scratch; `stamp` is a number that no flood had before. A loner has nobody to tell.
    """
    group = field.communities[field.sensors[first].community]
    for i in range(group.start, group.start + group.sensors):
        here = field.sensors[field.members[i]]
        floods[field.members[i]].unreached = here.end_edge - here.first_edge
    reach_in_flood(field, floods, first, stamp)
    reached, count = 1, 0
    waiting = line_up_speaker(floods, line, 0, first)
    while reached < group.sensors:
        speaker = line[0]
        waiting = drop_speaker(floods, line, waiting)
        if floods[speaker].unreached == 0:
            continue
        if floods[speaker].unreached != floods[speaker].key:  # others have spoken since: it may not be first any more
            waiting = line_up_speaker(floods, line, waiting, speaker)
            continue
        speakers[count] = speaker
        count += 1
        here = field.sensors[speaker]
        for n in range(here.first_edge, here.end_edge):
            if floods[field.neighbors[n]].reached != stamp:
                reached += 1
                reach_in_flood(field, floods, field.neighbors[n], stamp)
        for n in range(here.first_edge, here.end_edge):
            if floods[field.neighbors[n]].key == _NOT_IN_LINE:
                waiting = line_up_speaker(floods, line, waiting, field.neighbors[n])
    return count


@step
def reach_in_flood(field: Field, floods: Records, sensor: int, stamp: int) -> None:
    """The sensor has heard: for its neighbours one fewer is left to be reached."""
    floods[sensor].reached, floods[sensor].key = stamp, _NOT_IN_LINE
    here = field.sensors[sensor]
    for n in range(here.first_edge, here.end_edge):
        floods[field.neighbors[n]].unreached -= 1


@step
def speaks_first(floods: Records, one: int, other: int) -> bool:
    """Whether a sensor speaks before another: more unreached neighbours per price, then the lower number."""
    a, b = floods[one], floods[other]
    if a.key * b.price != b.key * a.price:
        return bool(a.key * b.price > b.key * a.price)
    return one < other


@step
def line_up_speaker(floods: Records, line: NDArray[np.int32], count: int, sensor: int) -> int:
    """Add a sensor to the line of speakers (a binary heap); how many stand in it now."""
    floods[sensor].key = floods[sensor].unreached
    i = count
    while i > 0 and speaks_first(floods, sensor, line[(i - 1) >> 1]):
        line[i] = line[(i - 1) >> 1]
        i = (i - 1) >> 1
    line[i] = sensor
    return count + 1


@step
def drop_speaker(floods: Records, line: NDArray[np.int32], count: int) -> int:
    """Take the first sensor out of the line of speakers; how many are left."""
    left = count - 1
    last, i = line[left], 0
    while 2 * i + 1 < left:
        child = 2 * i + 1
        if child + 1 < left and speaks_first(floods, line[child + 1], line[child]):
            child += 1
        if not speaks_first(floods, line[child], last):
            break
        line[i] = line[child]
        i = child
    line[i] = last
    return left
