"""Which of many boxes hold each of many events: grids over the attributes that narrow the boxes down.

Boxes are sorted into groups by the attributes that are narrow in them, so that a box which leaves an attribute
free is never spread over it. Each group has a grid over its narrow attributes, whose cells list the boxes that
touch them. An event looks up one cell per group and is compared with the boxes listed there. Edges of cells
lie at bounds of boxes: where boxes are dense, cells are small, and events need not be known beforehand.

The kernel sorts a batch of events by cell before it compares them: the lists then come from the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.content import matches
from serai.core.jit import kernel, rule

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

MOST_GROUPS = 16  # every event looks up a cell in each of them
NARROW = 0.5  # a range over less than this part of an attribute's bounds can tell boxes apart
MOST_CELLS = 1 << 22  # 16 MiB of starts
MOST_LISTED_PER_BOX = 64  # together with `LISTED_AT_LEAST` the limit of a grid's memory: 4 bytes a listing
LISTED_AT_LEAST = 1 << 22
_SAMPLE = 4096  # boxes that a grid is planned with
_MOST_BOUNDS = 1 << 15
_SLOTS_PER_EDGE = 4  # where edges lie evenly a slot holds one at most, so that a bin is found with one comparison
_BUCKETS = 4096  # cells are gathered into so many buckets for sorting: their ends fit the first-level cache
_COMPARED_NS, _LISTED_NS = 1.5, 10.0  # measured; they only steer the choice of a grid
_FEWEST_OUT = 1 << 16


class Grid(NamedTuple):
    """The boxes of one group, and for each cell those that touch it."""

    axes: Places  # [axis] attribute
    edges: Numbers  # of all axes; edges[edge_start[a]:edge_start[a + 1]] cut axis a into bins, ascending
    edge_start: Places  # [axis + 1]
    slots: Places  # of all axes: how many edges of the axis lie below each slot, see `_bin`
    slot_start: Places  # [axis + 1]
    origin: Numbers  # [axis] value at which slot 0 begins
    scale: Numbers  # [axis] slots per unit
    stride: Places  # [axis] cells from one bin to the next
    shift: int  # cell >> shift is its bucket
    cell_start: NDArray[np.int32]  # [cell + 1]
    listed: NDArray[np.int32]  # boxes of cell c: listed[cell_start[c]:cell_start[c + 1]]
    bounds: Numbers  # [box, 0: low, 1: high, attribute]
    number: NDArray[np.int32]  # [box] place of the box among all boxes


class BoxIndex(NamedTuple):
    """Boxes made ready to be asked which of them hold an event."""

    width: int  # attributes
    boxes: int
    grids: tuple[Grid, ...]

    @property
    def nbytes(self) -> int:
        """How much memory the index takes."""
        return sum(part.nbytes for grid in self.grids for part in grid if isinstance(part, np.ndarray))


# --- Building


def build_index(low: Numbers, high: Numbers, expected_events: int = 1 << 20) -> BoxIndex:
    """The index of the boxes low[B, K] .. high[B, K]; boxes that nothing can match are left out."""
    possible = _possible(low, high)
    width = low.shape[1]
    spans = _spans(low[possible], high[possible])
    grids = [
        _build_grid(low, high, possible[members], axes, expected_events)
        for axes, members in _groups(spans, width)
        if len(members)
    ]
    return BoxIndex(width, len(low), tuple(grids))


def expected_work(low: Numbers, high: Numbers, expected_events: int = 1 << 20) -> tuple[float, list[list[int]]]:
    """How many boxes an event will be compared with, and the bins of each grid; without building them."""
    possible = _possible(low, high)
    compared, grids = 0.0, []
    for axes, members in _groups(_spans(low[possible], high[possible]), low.shape[1]):
        lows, highs = low[np.ix_(possible[members], axes)], high[np.ix_(possible[members], axes)]
        bounds = [_finite_bounds(lows[:, a], highs[:, a]) for a in range(len(axes))]
        bins, met = _choose_bins(lows, highs, bounds, expected_events)
        grids.append(bins)
        compared += met
    return compared, grids


def _possible(low: Numbers, high: Numbers) -> Places:
    """The boxes that something can lie in: no range is empty, no bound NaN."""
    return np.flatnonzero((low <= high).all(axis=1))


def _spans(low: Numbers, high: Numbers) -> Numbers:
    """What part of each attribute's bounds each box spans: 0 for a point, 1 for an attribute it leaves free."""
    spans = np.ones(low.shape)
    for k in range(low.shape[1]):
        bounds = _finite_bounds(low[:, k], high[:, k])
        if len(bounds):
            inside = np.searchsorted(bounds, high[:, k], "right") - np.searchsorted(bounds, low[:, k], "left")
            free = (low[:, k] == -np.inf) & (high[:, k] == np.inf)
            # A box's own two bounds always lie inside it; a part of the bounds rather than of the length, as cells
            # will be cut by bounds, too.
            spans[:, k] = np.where(free, 1.0, (inside - 2) / len(bounds))
    return spans


def _finite_bounds(low: Numbers, high: Numbers) -> Numbers:
    """Where a box begins or where one has just ended, ascending; of very many boxes, of every n-th."""
    step = 1 + len(low) // _MOST_BOUNDS
    # Boxes are closed, bins half open: an edge just after `high` has all of the box on one side.
    with np.errstate(over="ignore"):
        bounds = np.concatenate([low[::step], np.nextafter(high[::step], np.inf)])
    return np.sort(bounds[np.isfinite(bounds)])


def _groups(spans: Numbers, width: int) -> Iterator[tuple[Places, Places]]:
    """Attributes that narrow a group of boxes, and the boxes of the group; every box is in one group."""
    known = min(width, 62)  # bits of a signature
    codes = (spans[:, :known] < NARROW) @ (1 << np.arange(known, dtype=np.int64))
    signatures, member_of, sizes = np.unique(codes, return_inverse=True, return_counts=True)
    axes_of = [tuple(k for k in range(known) if signature >> k & 1) for signature in signatures.tolist()]
    # Only common signatures get a grid. A box of a rare one goes to a grid over some of its narrow attributes: it is
    # compared with more events than need be there, but never missed.
    kept = [axes_of[s] for s in np.argsort(-sizes, kind="stable")[:MOST_GROUPS]]
    home: dict[tuple[int, ...], list[Places]] = {}
    for s, axes in enumerate(axes_of):
        members = np.flatnonzero(member_of == s)
        if axes and axes not in kept:  # boxes narrow in nothing have to stay apart: they may accept missing values
            axes = max((other for other in kept if set(other) <= set(axes)), key=len, default=())
            if not axes:  # none of the kept groups will do: by its narrowest attribute, alone
                axes = (int(np.argmin(spans[members].mean(axis=0))),)
        home.setdefault(axes, []).append(members)
    for axes, parts in home.items():
        yield np.array(axes, np.int64), np.sort(np.concatenate(parts))


def _build_grid(low: Numbers, high: Numbers, members: Places, axes: Places, expected_events: int) -> Grid:
    lows, highs = low[np.ix_(members, axes)], high[np.ix_(members, axes)]
    bounds = [_finite_bounds(lows[:, a], highs[:, a]) for a in range(len(axes))]
    bins, _ = _choose_bins(lows, highs, bounds, expected_events)
    edges = [_cut(bounds[a], bins[a]) for a in range(len(axes))]
    slots, origin, scale = _slot_tables(edges)
    counts = np.array([len(cut) + 1 for cut in edges], np.int64)
    stride = np.cumprod(np.concatenate([[1], counts]))[:-1].astype(np.int64)
    cells = int(counts.prod())
    first, last = np.zeros((2, *lows.shape), np.int64)
    for a in range(len(axes)):
        first[:, a] = np.searchsorted(edges[a], lows[:, a], "right")
        last[:, a] = np.searchsorted(edges[a], highs[:, a], "right")
    by_place = np.argsort(first @ stride, kind="stable")  # neighbours in the field are neighbours in memory
    members, first, last = members[by_place], first[by_place], last[by_place]
    cell_start, listed = _list_boxes(first, last, stride, cells)
    return Grid(
        axes=axes,
        edges=np.concatenate([*edges, np.empty(0)]),
        edge_start=_starts(edges),
        slots=np.concatenate([*slots, np.empty(0, np.int64)]),
        slot_start=_starts(slots),
        origin=origin,
        scale=scale,
        stride=stride,
        shift=max(0, (cells - 1).bit_length() - (_BUCKETS.bit_length() - 1)),
        cell_start=cell_start,
        listed=listed,
        bounds=np.stack([low[members], high[members]], axis=1),
        number=members.astype(np.int32),
    )


def _starts(parts: list[NDArray[np.generic]] | list[Numbers] | list[Places]) -> Places:
    return np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)


def _choose_bins(lows: Numbers, highs: Numbers, bounds: list[Numbers], expected_events: int) -> tuple[list[int], float]:
    """How many bins each axis gets, doubled where that saves most; and how many boxes an event then meets.

    Per event it costs a comparison with each box of its cell; per box a listing in each cell it touches. Bins hold
    equal numbers of bounds, and events are taken to be spread evenly over the cells. Greedy, one doubling at a
    time: the combinations of all axes would be too many to try.
    """
    boxes, axes = lows.shape
    some = np.linspace(0, boxes - 1, min(boxes, _SAMPLE)).astype(np.int64)
    each = boxes / max(1, len(some))
    begin = [np.searchsorted(bounds[a], lows[some, a], "left") / max(1, len(bounds[a])) for a in range(axes)]
    end = [np.searchsorted(bounds[a], highs[some, a], "right") / max(1, len(bounds[a])) for a in range(axes)]

    def cost(bins: list[int]) -> tuple[float, float]:
        touched = np.ones(len(some))
        for a in range(axes):
            # A box that ends exactly at an edge does not touch the bin that begins there.
            past = np.maximum(end[a] * bins[a] - 1e-9, begin[a] * bins[a])
            touched *= np.minimum(np.floor(past) - np.floor(begin[a] * bins[a]) + 1, bins[a])
        listed, cells = float(touched.sum()) * each, float(np.prod(bins))
        if listed > max(LISTED_AT_LEAST, MOST_LISTED_PER_BOX * boxes) or cells > max(MOST_CELLS, 4 * boxes):
            return np.inf, listed / cells
        build = (listed + cells) * _LISTED_NS / expected_events
        return _COMPARED_NS * listed / cells + build, listed / cells

    bins = [1] * axes
    best = cost(bins)
    while finer := [[*bins[:a], 2 * bins[a], *bins[a + 1 :]] for a in range(axes) if bins[a] < len(bounds[a]) + 1]:
        costs = [cost(tried) for tried in finer]
        if min(costs)[0] >= best[0] * 0.99:  # a larger grid for less than a per cent is not worth its memory
            break
        best = min(costs)
        bins = finer[costs.index(best)]
    return bins, best[1]


def _cut(bounds: Numbers, bins: int) -> Numbers:
    """Edges that cut an axis into so many bins with equal numbers of bounds in each, or fewer if bounds repeat."""
    if bins <= 1 or bins > len(bounds):
        return np.unique(bounds) if bins > 1 else np.empty(0)
    return np.unique(bounds[np.linspace(0, len(bounds) - 1, bins + 1)[1:-1].astype(np.int64)])


def _slot_tables(edges: list[Numbers]) -> tuple[list[Places], Numbers, Numbers]:
    """For each axis a table that leads from a value to the few edges near it."""
    slots, origins, scales = [], [], []
    for cut in edges:
        count = _SLOTS_PER_EDGE * len(cut) if len(cut) > 1 else 1
        origin = float(cut[0]) if len(cut) else 0.0
        reach = float(cut[-1]) - origin if len(cut) else 0.0
        scale = count / reach if reach > 0 and count / reach < np.inf else 0.0
        place = [_slot(edge, origin, scale, count) for edge in cut.tolist()]
        slots.append(np.searchsorted(np.array(place, np.int64), np.arange(count + 1), "left").astype(np.int64))
        origins.append(origin)
        scales.append(scale)
    return slots, np.array(origins, np.float64), np.array(scales, np.float64)


def _list_boxes(first: Places, last: Places, stride: Places, cells: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The boxes that touch each cell: where a cell's list starts, and all lists one after the other."""
    sizes = np.prod(last - first + 1, axis=1)
    total = int(sizes.sum())
    if total >= 1 << 31:
        raise ValueError(f"{total} listings in one grid; cut the boxes into parts")
    return _fill_lists(first, last, stride, cells, total)


@kernel
def _fill_lists(
    first: Places, last: Places, stride: Places, cells: int, total: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    # A counting sort. Counts stand two places further, so that after summing up start[cell + 1] is where the list of
    # `cell` begins; filling moves it to where the list ends, which is where the next one begins: start[:-1] is right.
    start = np.zeros(cells + 2, np.int32)
    listed = np.empty(total, np.int32)
    at = np.empty(len(stride), np.int64)
    for turn in range(2):  # count, then fill
        for box in range(len(first)):
            at[:] = first[box]
            more = True
            while more:
                cell = 0
                for a in range(len(stride)):
                    cell += at[a] * stride[a]
                if turn == 0:
                    start[cell + 2] += 1
                else:
                    listed[start[cell + 1]] = box
                    start[cell + 1] += 1
                more = _advance(at, first[box], last[box])
        if turn == 0:
            for cell in range(cells):
                start[cell + 2] += start[cell + 1]
    return start[:-1], listed


@rule
def _advance(at: Places, first: Places, last: Places) -> bool:
    """Move to the next cell between first and last; False after the last one."""
    for a in range(len(at)):
        if at[a] < last[a]:
            at[a] += 1
            return True
        at[a] = first[a]
    return False


# --- Asking


@rule
def _slot(value: float, origin: float, scale: float, count: int) -> int:
    """The slot of a value: never falls as the value rises, so that edges and values meet in it.

    However the product is rounded, an edge in a lower slot is below the value, and one in a higher slot above it.
    """
    place = (value - origin) * scale
    if place >= count:
        return count - 1
    if place > 0:
        return int(place)
    return 0


@rule
def _bin(value: float, grid: Grid, a: int) -> int:
    """How many edges of axis `a` are at or below the value: a binary search among those that share its slot."""
    first_slot, count = grid.slot_start[a], grid.slot_start[a + 1] - grid.slot_start[a] - 1
    slot = first_slot + _slot(value, grid.origin[a], grid.scale[a], count)
    begin, end, edge = int(grid.slots[slot]), int(grid.slots[slot + 1]), grid.edge_start[a]
    while begin < end:
        middle = (begin + end) // 2
        if grid.edges[edge + middle] <= value:
            begin = middle + 1
        else:
            end = middle
    return begin


class Found(NamedTuple):
    """Some pairs that match: row of the event in the batch, place of the box among all boxes."""

    row: NDArray[np.int32]
    box: NDArray[np.int32]


def find_pairs(
    index: BoxIndex, values: Numbers, matched: NDArray[np.bool_], *, one_each: bool = False, most: int = 1 << 20
) -> Iterator[Found]:
    """Every pair of an event values[E, K] and a box that holds it, some `most` at a time; marks `matched` rows.

    With `one_each` only the first pair found of each event that was not marked before.
    """
    for grid in index.grids:
        order, cells, ordered = sort_by_cell(values, grid)
        longest = int(np.diff(grid.cell_start).max(initial=0))
        room = max(_FEWEST_OUT, longest, min(most, 2 * len(values)))
        row, box = np.empty(room, np.int32), np.empty(room, np.int32)
        begin = 0
        while begin < len(order):
            begin, found = _compare(ordered, grid, order, cells, begin, one_each, matched, row, box)
            yield Found(row[:found].copy(), box[:found].copy())


@kernel
def sort_by_cell(values: Numbers, grid: Grid) -> tuple[NDArray[np.int32], NDArray[np.int32], Numbers]:
    """The events that have anything to be compared with, near cells together; the cell of each, and its values.

    A counting sort by bucket, not by cell: the write positions of all buckets stay in the first-level cache, those of
    millions of cells would not, and within a bucket the lists of boxes are near enough to each other. Values are
    copied along, since comparing then reads them in order.
    """
    events, width = values.shape
    cell_of = np.empty(events, np.int32)
    buckets = ((len(grid.cell_start) - 2) >> grid.shift) + 1
    end = np.zeros(buckets + 1, np.int64)
    for event in range(events):
        cell = _cell(values, event, grid)
        if cell >= 0 and grid.cell_start[cell] == grid.cell_start[cell + 1]:
            cell = -1  # nobody asks for anything there
        cell_of[event] = cell
        if cell >= 0:
            end[(cell >> grid.shift) + 1] += 1
    for bucket in range(buckets):
        end[bucket + 1] += end[bucket]
    order = np.empty(end[buckets], np.int32)
    cells = np.empty(end[buckets], np.int32)
    ordered = np.empty((end[buckets], width))
    for event in range(events):
        cell = cell_of[event]
        if cell >= 0:
            place = end[cell >> grid.shift]
            end[cell >> grid.shift] = place + 1
            order[place], cells[place] = event, cell
            for k in range(width):
                ordered[place, k] = values[event, k]
    return order, cells, ordered


@rule
def _cell(values: Numbers, event: int, grid: Grid) -> int:
    """The cell of an event; -1 if it misses a value that every box of the group asks for."""
    cell = 0
    for a in range(len(grid.axes)):
        value = values[event, grid.axes[a]]
        if np.isnan(value):
            return -1
        cell += _bin(value, grid, a) * grid.stride[a]
    return cell


@kernel
def _compare(
    ordered: Numbers,
    grid: Grid,
    order: NDArray[np.int32],
    cells: NDArray[np.int32],
    begin: int,
    one_each: bool,
    matched: NDArray[np.bool_],
    row: NDArray[np.int32],
    box: NDArray[np.int32],
) -> tuple[int, int]:
    """Write down the pairs of the events from place `begin` on while there is room: (next place, pairs)."""
    found = 0
    for place in range(begin, len(order)):
        event, cell = order[place], cells[place]
        first, last = grid.cell_start[cell], grid.cell_start[cell + 1]
        if found + (last - first) > len(row):  # all of the cell might match: the caller makes room first
            return place, found
        if one_each and matched[event]:
            continue
        for listing in range(first, last):
            candidate = grid.listed[listing]
            if matches(ordered[place], grid.bounds[candidate, 0], grid.bounds[candidate, 1]):
                row[found], box[found] = event, grid.number[candidate]
                found += 1
                matched[event] = True
                if one_each:
                    break
    return len(order), found
