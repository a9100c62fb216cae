"""The line of turns: sensors with something to send, in the random order of their slot.

Only sensors that may have something to send stand in line. A copy that reaches a sensor whose turn is still to come in
this slot puts it in line at once; otherwise the sensor stands in line for the next slot.
"""

from serai.core.jit import step
from serai.core.order import key_in_slot
from serai.field.engine.state import Field

SENSOR_BITS = 31


@step
def line_up(field: Field, sensor: int) -> None:
    """Put the sensor in line: for this slot if its turn is still to come, else for the next."""
    who, clock = field.sensors[sensor], field.clock[0]
    # `scheduled` is the last slot it stood in line for; its place is drawn only when it is asked for.
    if who.scheduled > clock.slot:
        return
    scheduled = who.scheduled == clock.slot
    place = who.place if scheduled else place_of(field, sensor)
    if place <= clock.turn:
        who.scheduled = clock.slot + 1
        field.next_line[field.tally[0].next_in_line] = sensor
        field.tally[0].next_in_line += 1
    elif not scheduled:
        who.scheduled, who.place = clock.slot, place
        push_place(field, place)


@step
def place_of(field: Field, sensor: int) -> int:
    """The sensor's place in the line of this slot."""
    # The key decides, then the lower number: one whole number to compare, and the sensor can be read off it.
    return (key_in_slot(field.clock[0].key, sensor) << SENSOR_BITS) | int(sensor)


@step
def call_next_line(field: Field) -> None:
    """At the start of a slot: those who stood in line for it get their places."""
    for i in range(field.tally[0].next_in_line):
        sensor = field.next_line[i]
        field.sensors[sensor].place = place_of(field, sensor)
        push_place(field, field.sensors[sensor].place)
    field.tally[0].next_in_line = 0


@step
def push_place(field: Field, place: int) -> None:
    """Add a place to the line (a binary heap)."""
    line, i = field.line, field.tally[0].in_line
    field.tally[0].in_line += 1
    while i > 0 and line[(i - 1) >> 1] > place:
        line[i] = line[(i - 1) >> 1]
        i = (i - 1) >> 1
    line[i] = place


@step
def pop_place(field: Field) -> int:
    """Take the first place out of the line; its low bits are the sensor."""
    line = field.line
    first = line[0]
    field.tally[0].in_line -= 1
    count = field.tally[0].in_line
    last, i = line[count], 0  # the last place of the heap fills the gap, and sinks to where it belongs
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and line[child + 1] < line[child]:
            child += 1
        if line[child] >= last:
            break
        line[i] = line[child]
        i = child
    line[i] = last
    return int(first)


@step
def sensor_at(place: int) -> int:
    """The sensor that stands at a place."""
    return place & ((1 << SENSOR_BITS) - 1)
