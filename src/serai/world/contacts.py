"""When nodes that move are within radio range of each other: exact times, or as a simulator of ticks sees them.

Time is cut into windows, so short that a node hardly moves further than the radio reaches. In each window
only nodes whose boxes (all that they pass through) come near are compared, and those exactly: between two
turning points both move on straight lines, so the moments at which they come within range and lose each other
are the roots of a quadratic. The length of a window changes how long the search takes and nothing else.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.core.jit import kernel, rule, step
from serai.world.grid import Floats, Numbers
from serai.world.mobility import Tracks
from serai.world.orders import order_of
from serai.world.ranges import within_range
from serai.world.tables import with_room

_MOST_CELLS = 64  # a box over more cells than this is compared with everybody's instead
_REACHES_PER_WINDOW = 1.0  # how far the mean node moves in a window, in radio ranges
_FASTEST = 100.0  # times the usual speed: whoever seems faster does not make windows any shorter
_MOST_WORK = 10_000_000  # windows x nodes: some seconds


class Contacts(NamedTuple):
    """Contacts between nodes by (up, a, b), a < b; each lasts from `up_s` up to, but not including, `down_s`."""

    a: Numbers
    b: Numbers
    up_s: Floats
    down_s: Floats

    def at(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> "Contacts":
        """Only these contacts, in this order."""
        return Contacts(self.a[rows], self.b[rows], self.up_s[rows], self.down_s[rows])


class Journeys(NamedTuple):
    """Where nodes are over time, as far as anybody knows."""

    tracks: Tracks
    gap_s: float = math.inf  # between points further apart in time than this a node is nowhere
    stays: bool = True  # before its first and after its last point: there, or else nowhere


def contacts_by_range(journeys: Journeys, range_m: float, duration_s: float) -> Contacts:
    """When any two nodes are at most `range_m` apart: exact times, from 0 to `duration_s`."""
    if not 0 < range_m < math.inf:
        raise BadInput(f"radio range {range_m} m: must be above 0")
    if journeys.tracks.time_s.size == 0:
        return no_contacts()
    whole = Journeys(journeys.tracks.writable(), float(journeys.gap_s), bool(journeys.stays))
    window_s = min(_window_s(whole, range_m, float(duration_s)), float(duration_s))
    rows = _find_contacts(whole, float(range_m), float(duration_s), window_s)
    rows = rows[rows[:, 3] > rows[:, 2]]
    a, b = rows[:, :2].T.astype(np.int32)
    return in_order(Contacts(a, b, rows[:, 2], rows[:, 3]))


def no_contacts() -> Contacts:
    """Nobody ever meets."""
    return Contacts(*np.empty((2, 0), np.int32), *np.empty((2, 0)))


def in_order(contacts: Contacts) -> Contacts:
    """The same contacts by (up, a, b)."""
    up_s, pair = contacts.up_s, pair_of(contacts.a, contacts.b)
    later, same = up_s[1:] > up_s[:-1], up_s[1:] == up_s[:-1]
    if np.all(later | (same & (pair[1:] >= pair[:-1]))):
        return contacts
    order = order_of(up_s)
    tie = np.zeros(up_s.size + 1, bool)
    tie[1:-1] = up_s[order[1:]] == up_s[order[:-1]]
    tied = np.flatnonzero(tie[1:] | tie[:-1])
    among = order[tied]
    among = among[order_of(pair[among])]
    order[tied] = among[order_of(up_s[among])]
    return contacts.at(order)


def pair_of(a: Numbers, b: Numbers) -> NDArray[np.int64]:
    """One number for each pair of nodes, in the order of (a, b)."""
    return a.astype(np.int64) * (int(b.max(initial=0)) + 1) + b


def merged(contacts: Contacts) -> Contacts:
    """Contacts of the same two nodes that overlap or touch made one."""
    by_pair = contacts.at(order_of(pair_of(contacts.a, contacts.b)))
    return in_order(by_pair.at(slice(_merge_rows(*by_pair))))


def at_ticks(contacts: Contacts, step_s: float, duration_s: float) -> Contacts:
    """What a simulator sees that looks every `step_s`: up at the first tick within range, down at the first outside."""
    first, last = np.ceil(contacts.up_s / step_s), np.floor(contacts.down_s / step_s)
    seen = (first <= last) & (first * step_s < duration_s)
    down_s = np.minimum((last[seen] + 1) * step_s, duration_s)
    return merged(Contacts(contacts.a[seen], contacts.b[seen], first[seen] * step_s, down_s))


def _window_s(journeys: Journeys, range_m: float, duration_s: float) -> float:
    """How long a window should be: until the mean node has moved about as far as the radio reaches.

    One node that seems to fly to the moon and back, or one time far behind all others, must not make windows so
    short or so many that the search never ends; both happen in files.
    """
    tracks = journeys.tracks
    inner = np.ones(tracks.time_s.size - 1, bool)
    inner[tracks.start[1:-1][(tracks.start[1:-1] > 0) & (tracks.start[1:-1] < tracks.time_s.size)] - 1] = False
    spent_s = np.diff(tracks.time_s)
    inner &= spent_s <= journeys.gap_s
    moved_m, spent_s = np.hypot(np.diff(tracks.x_m), np.diff(tracks.y_m))[inner], spent_s[inner]
    moving = (moved_m > 0) & (spent_s > 0)
    if moving.any():
        moved_m = np.minimum(moved_m, _FASTEST * np.median(moved_m[moving] / spent_s[moving]) * spent_s)
    speed_mps = moved_m.sum() / max(spent_s.sum(), 1e-9)
    window_s = float(_REACHES_PER_WINDOW * range_m / max(speed_mps, 1e-9))
    most = max(_MOST_WORK, 100 * tracks.time_s.size) / max(tracks.start.size - 1, 1)
    return max(window_s, duration_s / most)


@kernel
def _merge_rows(a: Numbers, b: Numbers, up_s: Floats, down_s: Floats) -> int:
    """Merge rows that stand by (a, b, up), in place; how many are left."""
    count = 0
    for row in range(a.size):
        last = count - 1
        if count > 0 and a[last] == a[row] and b[last] == b[row] and up_s[row] <= down_s[last]:
            down_s[last] = max(down_s[last], down_s[row])
            continue
        a[count], b[count], up_s[count], down_s[count] = a[row], b[row], up_s[row], down_s[row]
        count += 1
    return count


class _Search(NamedTuple):
    """The state of the search: for each node its segment at the start of the window, where it was then, its box."""

    segment: NDArray[np.int64]
    x: Floats
    y: Floats
    here: NDArray[np.bool_]  # whether it was anywhere then
    box: Floats  # [nodes, 4] left, bottom, right, top; left > right: nowhere in this window
    newest: NDArray[np.int64]  # the row of the contact with a higher node that began last and goes on; -1


class _Cells(NamedTuple):
    """Boxes sorted into cells; those of cell c are nodes[start[c] : start[c + 1]], ascending."""

    start: NDArray[np.int64]
    nodes: Numbers
    span: Numbers  # [nodes, 4] first column, first row, last column, last row; -1: in no cell
    wide: Numbers  # nodes whose boxes are too large for cells
    columns: int


@kernel
def _find_contacts(journeys: Journeys, range_m: float, duration_s: float, window_s: float) -> Floats:
    """Rows a, b, up, down and (of use in the search only) the next running contact of a."""
    tracks = journeys.tracks
    count = tracks.start.size - 1
    search = _Search(
        tracks.start[:-1] - 1, np.empty(count), np.empty(count), np.zeros(count, np.bool_), np.empty((count, 4)),
        np.full(count, -1, np.int64),
    )  # fmt: skip
    rows = np.empty((1024, 5))
    found = 0
    for window in range(math.ceil(duration_s / window_s)):
        begin_s, end_s = window * window_s, min((window + 1) * window_s, duration_s)
        for node in range(count):
            _draw_box(journeys, search, node, begin_s, end_s)
        for pair in _pairs_near(search.box, range_m):
            rows, found = _compare(journeys, search, (pair[0], pair[1]), (begin_s, end_s, range_m), rows, found)
        for node in range(count):
            _move_on(journeys, search, node, end_s)
    for row in range(found):
        if rows[row, 3] < 0.0:
            rows[row, 3] = duration_s
    return rows[:found]


@step
def _segment_end(tracks: Tracks, node: int, segment: int) -> float:
    """When a segment ends; the one before the first point is numbered one less than that point."""
    return np.inf if segment + 1 >= tracks.start[node + 1] else tracks.time_s[segment + 1]


@step
def _is_here(journeys: Journeys, node: int, segment: int) -> bool:
    """Whether anybody knows where a node is on a segment."""
    tracks = journeys.tracks
    first, last = tracks.start[node], tracks.start[node + 1] - 1
    if segment < first or segment >= last:
        return journeys.stays and first <= last
    return bool(tracks.time_s[segment + 1] - tracks.time_s[segment] <= journeys.gap_s)


@step
def _place(tracks: Tracks, node: int, segment: int, time_s: float) -> tuple[float, float]:
    """Where a node is at a time on a segment; exactly at its turning points, so that segments agree about them."""
    first, last = tracks.start[node], tracks.start[node + 1] - 1
    if segment < first or segment >= last:
        point = max(min(segment, last), first)
        return tracks.x_m[point], tracks.y_m[point]
    after = segment + 1
    begin_s, end_s = tracks.time_s[segment], tracks.time_s[after]
    if time_s >= end_s:
        return tracks.x_m[after], tracks.y_m[after]
    share = max((time_s - begin_s) / (end_s - begin_s), 0.0)
    x0, y0 = tracks.x_m[segment], tracks.y_m[segment]
    return x0 + (tracks.x_m[after] - x0) * share, y0 + (tracks.y_m[after] - y0) * share


@step
def _draw_box(journeys: Journeys, search: _Search, node: int, begin_s: float, end_s: float) -> None:
    """Find the segment of a node at the start of the window, and the box of all places it is at in it."""
    tracks, box = journeys.tracks, search.box[node]
    box[0], box[1], box[2], box[3] = np.inf, np.inf, -np.inf, -np.inf
    if search.here[node]:  # a contact may go on that it leaves at once
        _stretch(box, search.x[node], search.y[node])
    segment = search.segment[node]
    while _segment_end(tracks, node, segment) <= begin_s:
        segment += 1
    search.segment[node] = segment
    time_s = begin_s
    while True:
        until_s = min(_segment_end(tracks, node, segment), end_s)
        if _is_here(journeys, node, segment):
            x, y = _place(tracks, node, segment, time_s)
            _stretch(box, x, y)
            x, y = _place(tracks, node, segment, until_s)
            _stretch(box, x, y)
        if until_s >= end_s:
            break
        time_s = until_s
        segment += 1


@step
def _stretch(box: Floats, x: float, y: float) -> None:
    """Make a box hold a point."""
    box[0], box[1] = min(box[0], x), min(box[1], y)
    box[2], box[3] = max(box[2], x), max(box[3], y)


@step
def _move_on(journeys: Journeys, search: _Search, node: int, end_s: float) -> None:
    """Remember where a node is at the end of the window."""
    tracks, segment = journeys.tracks, search.segment[node]
    while _segment_end(tracks, node, segment) < end_s:
        segment += 1
    search.here[node] = _is_here(journeys, node, segment)
    if search.here[node]:
        search.x[node], search.y[node] = _place(tracks, node, segment, end_s)


@rule
def _sort_into_cells(box: Floats, range_m: float) -> _Cells:
    """Boxes, each half a radio range wider on every side, by the cells that they lie in."""
    count = box.shape[0]
    low_x, low_y, high_x, high_y, extent, known = np.inf, np.inf, -np.inf, -np.inf, 0.0, 0
    for node in range(count):
        if box[node, 0] <= box[node, 2]:
            low_x, low_y = min(low_x, box[node, 0]), min(low_y, box[node, 1])
            high_x, high_y = max(high_x, box[node, 2]), max(high_y, box[node, 3])
            extent += box[node, 2] - box[node, 0] + box[node, 3] - box[node, 1]
            known += 1
    # Cells as large as the mean box, and not many more of them than nodes.
    side = range_m + extent / (2 * max(known, 1))
    if known > 0:
        side = max(side, math.sqrt((high_x - low_x) * (high_y - low_y) / (4.0 * known)))
        side = max(side, max(high_x - low_x, high_y - low_y) / (4.0 * known))
    columns = int((high_x - low_x + range_m) / side) + 1 if known > 0 else 1
    rows = int((high_y - low_y + range_m) / side) + 1 if known > 0 else 1
    span = np.full((count, 4), -1, np.int32)
    start = np.zeros(columns * rows + 1, np.int64)
    wide = np.empty(count, np.int32)
    wides = 0
    for node in range(count):
        if box[node, 0] > box[node, 2]:
            continue
        left, right = int((box[node, 0] - low_x) / side), int((box[node, 2] - low_x + range_m) / side)
        bottom, top = int((box[node, 1] - low_y) / side), int((box[node, 3] - low_y + range_m) / side)
        if (right - left + 1) * (top - bottom + 1) > _MOST_CELLS:
            wide[wides] = node
            wides += 1
            continue
        span[node, 0], span[node, 1], span[node, 2], span[node, 3] = left, bottom, right, top
        for row in range(bottom, top + 1):
            for column in range(left, right + 1):
                start[row * columns + column + 1] += 1
    for cell in range(columns * rows):
        start[cell + 1] += start[cell]
    nodes = np.empty(start[-1], np.int32)
    _fill_cells(span, start, nodes, columns)
    return _Cells(start, nodes, span, wide[:wides], columns)


@rule
def _fill_cells(span: Numbers, start: NDArray[np.int64], nodes: Numbers, columns: int) -> None:
    """Enter every node into its cells."""
    free = start[:-1].copy()
    for node in range(span.shape[0]):
        if span[node, 0] < 0:
            continue
        for row in range(span[node, 1], span[node, 3] + 1):
            for column in range(span[node, 0], span[node, 2] + 1):
                cell = row * columns + column
                nodes[free[cell]] = node
                free[cell] += 1


@rule
def _pairs_near(box: Floats, range_m: float) -> Numbers:
    """The pairs of nodes, the lower first, whose boxes come within range of each other."""
    cells = _sort_into_cells(box, range_m)
    pairs = np.empty((1024, 2), np.int32)
    count = 0
    for cell in range(cells.start.size - 1):
        for i in range(cells.start[cell], cells.start[cell + 1]):
            for j in range(i + 1, cells.start[cell + 1]):
                a, b = cells.nodes[i], cells.nodes[j]
                if _is_their_cell(cells, cell, a, b) and _boxes_near(box, a, b, range_m):
                    pairs = with_room(pairs, count)
                    pairs[count, 0], pairs[count, 1] = a, b
                    count += 1
    for a in cells.wide:
        for b in range(box.shape[0]):
            if (b > a or cells.span[b, 0] >= 0) and _boxes_near(box, a, b, range_m):
                pairs = with_room(pairs, count)
                pairs[count, 0], pairs[count, 1] = min(a, b), max(a, b)
                count += 1
    return pairs[:count]


@step
def _is_their_cell(cells: _Cells, cell: int, a: int, b: int) -> bool:
    """Whether a cell is the one, of all that two nodes share, in which they are compared."""
    column, row = max(cells.span[a, 0], cells.span[b, 0]), max(cells.span[a, 1], cells.span[b, 1])
    return bool(cell == row * cells.columns + column)


@step
def _boxes_near(box: Floats, a: int, b: int, range_m: float) -> bool:
    """Whether two boxes come within range; rounding must not lose anybody."""
    dx = max(box[a, 0] - box[b, 2], box[b, 0] - box[a, 2], 0.0)
    dy = max(box[a, 1] - box[b, 3], box[b, 1] - box[a, 3], 0.0)
    return bool(dx * dx + dy * dy <= range_m * range_m * (1 + 1e-9))


@rule
def _compare(
    journeys: Journeys,
    search: _Search,
    pair: tuple[int, int],
    window: tuple[float, float, float],
    rows: Floats,
    found: int,
) -> tuple[Floats, int]:
    """Begin and end the contacts of two nodes in a window (begin, end, range); the table and how many rows it has."""
    tracks, (a, b), (begin_s, end_s, range_m) = journeys.tracks, pair, window
    segment_a, segment_b = search.segment[a], search.segment[b]
    running = _running_contact(search.newest, rows, a, b)
    time_s = begin_s
    while time_s < end_s:
        a_ends_s, b_ends_s = _segment_end(tracks, a, segment_a), _segment_end(tracks, b, segment_b)
        until_s = min(a_ends_s, b_ends_s, end_s)
        if until_s > time_s:
            enter, leave, remains = 1.0, 0.0, False
            if _is_here(journeys, a, segment_a) and _is_here(journeys, b, segment_b):
                ax0, ay0 = _place(tracks, a, segment_a, time_s)
                bx0, by0 = _place(tracks, b, segment_b, time_s)
                ax1, ay1 = _place(tracks, a, segment_a, until_s)
                bx1, by1 = _place(tracks, b, segment_b, until_s)
                line = (ax0 - bx0, ay0 - by0, ax1 - bx1, ay1 - by1)
                enter, leave, remains = within_range(line, 0.0, 0.0, range_m)
            if running >= 0 and enter > 0.0:
                _end_contact(search.newest, rows, a, running, time_s)
                running = -1
            if enter <= leave and running < 0:
                rows = with_room(rows, found)
                running = found
                _begin_contact(search.newest, rows, pair, running, time_s + enter * (until_s - time_s))
                found += 1
            if enter <= leave and not remains:
                _end_contact(search.newest, rows, a, running, time_s + leave * (until_s - time_s))
                running = -1
        time_s = until_s
        segment_a += a_ends_s <= until_s
        segment_b += b_ends_s <= until_s
    return rows, found


@step
def _running_contact(newest: NDArray[np.int64], rows: Floats, a: int, b: int) -> int:
    """The row of the contact between two nodes that goes on; -1 if none does."""
    row = int(newest[a])
    while row >= 0 and rows[row, 1] != b:
        row = int(rows[row, 4])
    return row


@step
def _begin_contact(newest: NDArray[np.int64], rows: Floats, pair: tuple[int, int], row: int, time_s: float) -> None:
    """Write down that two nodes have come within range, as the newest contact of the first."""
    rows[row, 0], rows[row, 1] = pair
    rows[row, 2], rows[row, 3], rows[row, 4] = time_s, -1.0, newest[pair[0]]
    newest[pair[0]] = row


@step
def _end_contact(newest: NDArray[np.int64], rows: Floats, a: int, row: int, time_s: float) -> None:
    """Write down that two nodes have lost each other, and take the contact from the chain of those that go on."""
    rows[row, 3] = time_s
    if newest[a] == row:
        newest[a] = int(rows[row, 4])
        return
    before = newest[a]
    while int(rows[before, 4]) != row:
        before = int(rows[before, 4])
    rows[before, 4] = rows[row, 4]
