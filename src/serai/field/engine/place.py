"""The place of a run: where sensors stand, who of them hears whom and at what cost, and whom subscribers will meet."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serai.core.energy import distance, receive_pj, transmit_pj
from serai.core.jit import kernel
from serai.field.engine.flooding import FLOODER
from serai.field.engine.state import IN_RANGE, NONE, REACHABLE, SENSOR, Limits, Records, records
from serai.field.world import World
from serai.world.grid import Grid


def lay_out_place(world: World, limits: Limits) -> dict[str, Any]:
    """What stands still: the fields of a state that only the sensors and who hears whom decide."""
    grid, communities = world.grid, world.communities
    sensors, cells = len(world.sensor_x), 0 if limits.in_metres else grid.columns * grid.rows
    here = np.empty(0, np.int32) if limits.in_metres else world.sensor_cell
    cell_start, cell_sensors = sensors_by_cell(here, cells)
    placed = sensor_records(world, limits)
    broadcast_m = broadcast_ranges(world)
    return {
        "sensors": placed,
        "neighbors": communities.neighbors.copy(),  # they lose the dead
        "neighbor_member": placed.member[communities.neighbors],
        "hop_pj": hop_costs(world.sensor_x, world.sensor_y, communities.neighbor_start, communities.neighbors, limits),
        "members": communities.members.copy(),  # they are put in another order when communities part
        "cell_start": cell_start,
        "cell_sensors": cell_sensors,
        "passing_m": np.empty(0) if world.ranges is None else world.ranges.passing_m,
        "broadcast_m": broadcast_m,
        "hello_pj": hello_costs(broadcast_m, limits),
        "tree_order": np.zeros(sensors, np.int32),
        "stamps": np.zeros(sensors if limits.in_metres else cells, np.int64),
        "path": np.zeros(grid.columns + grid.rows, np.int32),
        "near": np.zeros(most_communities(world), np.int32),
        "listeners": np.zeros(most_listeners(world), np.int32),
        "frontier": np.zeros(sensors, np.int32),
        "floods_now": records(sensors, FLOODER, price=1),
        "speakers": np.zeros(sensors, np.int32),
    }


def most_listeners(world: World) -> int:
    """How many sensors hear one subscriber at a time, at most."""
    if world.ranges is not None:
        return max(world.passes.most, 1)
    return max(int(sensors_in_touch(world.sensor_cell, world.grid).max()), 1)


def most_communities(world: World) -> int:
    """How many communities are in reach of a subscriber at a time, at most, whatever sensors die."""
    if world.ranges is None:
        return REACHABLE
    # With ranges that differ there may be as many as sensors: a near one with a short range is alone beside far ones.
    return IN_RANGE if np.ptp(world.ranges.sensors_m) == 0 else most_listeners(world)


def broadcast_ranges(world: World) -> NDArray[np.float64]:
    """How far each sensor sends a control message: its range, or the longest distance that touches."""
    if world.ranges is not None:
        return world.ranges.sensors_m
    grid = world.grid
    two_diagonals_m = 2.0 * math.hypot(grid.width_m / grid.columns, grid.height_m / grid.rows)
    return np.full(len(world.sensor_x), two_diagonals_m)


def sensor_records(world: World, limits: Limits) -> Records:
    """The sensors, nothing in their queues."""
    made = records(len(world.sensor_x), SENSOR, stored=NONE, waiting=NONE, scheduled=NONE, parent=NONE, died=NONE)
    made.left_pj = np.rint(world.battery_j * 1e12).astype(np.int64)
    made.capacity = limits.queue if world.queue is None else world.queue
    made.x, made.y = world.sensor_x, world.sensor_y
    if world.ranges is None:
        made.cell = world.sensor_cell
        made.row, made.column = np.divmod(world.sensor_cell, world.grid.columns)
    else:
        made.cell = np.arange(len(made))
    made.community = world.communities.of_sensor
    made.first_edge, made.end_edge = world.communities.neighbor_start[:-1], world.communities.neighbor_start[1:]
    start = world.communities.member_start
    made.member[world.communities.members] = np.arange(len(made)) - np.repeat(start[:-1], np.diff(start))
    return made


def starts(groups: NDArray[np.int32], count: int) -> NDArray[np.int32]:
    """Where each group begins when members are sorted by group."""
    start = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(groups, minlength=count), out=start[1:])
    return start


def sensors_by_cell(cells: NDArray[np.int32], count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The sensors in each cell: starts, and sensors by cell and number."""
    return starts(cells, count), np.argsort(cells, kind="stable").astype(np.int32)


def sensors_in_touch(cells: NDArray[np.int32], grid: Grid) -> NDArray[np.int64]:
    """How many sensors touch each cell."""
    crowd = np.bincount(cells, minlength=grid.rows * grid.columns).reshape(grid.rows, grid.columns)
    around = np.lib.stride_tricks.sliding_window_view(np.pad(crowd, 1), (3, 3))
    counts: NDArray[np.int64] = around.sum(axis=(2, 3)).ravel()
    return counts


@kernel
def communities_in_reach(
    cell_start: NDArray[np.int32],
    cell_sensors: NDArray[np.int32],
    of_sensor: NDArray[np.int32],
    columns: int,
    rows: int,
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The communities in touch with each cell, by number."""
    start = np.zeros(columns * rows + 1, np.int32)
    reach = np.empty(columns * rows * REACHABLE, np.int32)
    total = 0
    for cell in range(columns * rows):
        row, column = cell // columns, cell % columns
        for near_row in range(max(row - 1, 0), min(row + 2, rows)):
            for near_column in range(max(column - 1, 0), min(column + 2, columns)):
                near = near_row * columns + near_column
                if cell_start[near] == cell_start[near + 1]:
                    continue
                community = of_sensor[cell_sensors[cell_start[near]]]  # all sensors of a cell are in one
                i = total
                while i > start[cell] and reach[i - 1] > community:
                    i -= 1
                if i > start[cell] and reach[i - 1] == community:
                    continue
                for n in range(total, i, -1):
                    reach[n] = reach[n - 1]
                reach[i] = community
                total += 1
        start[cell + 1] = total
    return start, reach[:total].copy()


def who_will_meet(
    world: World, visits: Records, place: dict[str, Any], silent_while_pausing: bool
) -> NDArray[np.int64]:
    """The pairs (community * subscribers + subscriber) that may ever meet, sorted: who walks where is known."""
    groups, subscribers = world.communities, len(world.low)
    if world.ranges is not None:
        community = groups.of_sensor[world.passes.sensor].astype(np.int64)
        return np.unique(community * subscribers + world.passes.subscriber)
    near = communities_in_reach(
        place["cell_start"], place["cell_sensors"], groups.of_sensor, world.grid.columns, world.grid.rows
    )
    # Sorted by subscriber, so that one mark per community tells whether the pair is known.
    audible = visits.moving.astype(bool) | (not silent_while_pausing)
    heard = visits[audible & (visits.cell >= 0)]
    order = np.argsort(heard.subscriber, kind="stable")
    return np.sort(pairs_that_meet(heard.subscriber[order], heard.cell[order], *near, len(groups.size), subscribers))


@kernel
def pairs_that_meet(
    subscriber: NDArray[np.int32],
    cell: NDArray[np.int32],
    reach_start: NDArray[np.int32],
    reach: NDArray[np.int32],
    communities: int,
    subscribers: int,
) -> NDArray[np.int64]:
    """The pairs that meet, each once; the visits are sorted by subscriber."""
    last_met = np.full(communities, NONE, np.int64)
    pairs = np.empty(len(cell) * REACHABLE, np.int64)
    count = 0
    for i in range(len(cell)):
        for n in range(reach_start[cell[i]], reach_start[cell[i] + 1]):
            if last_met[reach[n]] != subscriber[i]:
                last_met[reach[n]] = subscriber[i]
                pairs[count] = np.int64(reach[n]) * subscribers + subscriber[i]
                count += 1
    return pairs[:count].copy()


def hello_costs(broadcast_m: NDArray[np.float64], limits: Limits) -> NDArray[np.int64]:
    """What it costs each sensor to hear a Hello and to reply, in picojoules."""
    hear = receive_pj(limits.radio, limits.hello_bits)
    distinct_m, which = np.unique(broadcast_m, return_inverse=True)
    reply = [transmit_pj(limits.radio, limits.reply_bits, range_m) for range_m in distinct_m.tolist()]
    return hear + np.array(reply, np.int64)[which]


@kernel
def hop_costs(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    neighbor_start: NDArray[np.int32],
    neighbors: NDArray[np.int32],
    limits: Limits,
) -> NDArray[np.int64]:
    """What sending one event to each neighbour costs, in picojoules."""
    costs = np.empty(len(neighbors), np.int64)
    for sensor in range(len(x)):
        for n in range(neighbor_start[sensor], neighbor_start[sensor + 1]):
            other = neighbors[n]
            costs[n] = transmit_pj(limits.radio, limits.bits, distance(x[sensor], y[sensor], x[other], y[other]))
    return costs
