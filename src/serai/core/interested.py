"""How many of many subscriptions match each of many events, without comparing all of them with all.

`serai.core.content.matches` decides; this counts the same by sets of subscriptions, kept as bits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import kernel, rule

_BLOCK = 2048  # subscriptions at a time: bounds the tables, whatever the number of subscriptions
_ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_ONE = np.uint64(1)
_EVERY_2ND = np.uint64(0x5555_5555_5555_5555)
_TWO_OF_4 = np.uint64(0x3333_3333_3333_3333)
_FOUR_OF_8 = np.uint64(0x0F0F_0F0F_0F0F_0F0F)


def count_interested(
    values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.int64]:
    """How many of the boxes low[P, K] .. high[P, K] match each of the events values[E, K]."""
    counts = np.zeros(len(values), np.int64)
    events = np.ascontiguousarray(values, np.float64)
    never = np.isnan(low) | np.isnan(high)
    # inf .. -inf matches nothing as well, and has a place in the order.
    lows = np.ascontiguousarray(np.where(never, np.inf, low))
    highs = np.ascontiguousarray(np.where(never, -np.inf, high))
    for start in range(0, len(low), _BLOCK):
        block = slice(start, start + _BLOCK)
        by_low, by_high = _Bounds.sorted(lows[block]), _Bounds.sorted(highs[block])
        free = np.isneginf(lows[block]) & np.isposinf(highs[block])
        _add_interested(events, by_low, by_high, free, counts)
    return counts


class _Bounds(NamedTuple):
    """The lows (or highs) of the boxes, ascending within each attribute: [attribute, rank]."""

    value: NDArray[np.float64]
    box: NDArray[np.int64]  # whose it is

    @classmethod
    def sorted(cls, bounds: NDArray[np.float64]) -> "_Bounds":
        """The bounds [box, attribute] in order."""
        by_attribute = np.ascontiguousarray(bounds.T)
        order = np.argsort(by_attribute, axis=1)
        return cls(np.take_along_axis(by_attribute, order, axis=1), order)


@kernel
def _add_interested(
    values: NDArray[np.float64],
    by_low: _Bounds,
    by_high: _Bounds,
    free: NDArray[np.bool_],
    counts: NDArray[np.int64],
) -> None:
    """Add to each event's count how many of the boxes match it; `free[box, k]`: the box asks nothing of attribute k.

    Asking `matches` of every box and event takes boxes x events x attributes comparisons. Instead, all possible
    answers are worked out beforehand: between two neighbouring bounds every value of an attribute lies in the same
    boxes. begun[k, rank] is the set of the boxes with the `rank` smallest lows in attribute k, those that begin at or
    before a value of that rank; lasting[k, rank] is all but those with the `rank` smallest highs, those that do not
    end before it. So a value's two ranks, found by bisection, pick two sets per attribute, and the boxes in all of
    them match. A set is a row of bits, 64 boxes to a word, and that is what makes it fast.
    """
    boxes, width = free.shape
    everyone = np.zeros((boxes + 63) // 64, np.uint64)
    for box in range(boxes):
        everyone[box // 64] |= _bit(box)
    begun = np.zeros((width, boxes + 2, len(everyone)), np.uint64)
    lasting = np.zeros((width, boxes + 1, len(everyone)), np.uint64)
    ranks = np.empty((width, 2, len(values)), np.int32)
    for k in range(width):
        _fill_sets(begun[k], lasting[k], everyone, by_low.box[k], by_high.box[k])
        for box in range(boxes):
            # A missing value is not ranked like a number: it picks the set behind all of those, of the boxes that ask
            # nothing of this attribute, and from `lasting` everyone.
            if free[box, k]:
                begun[k, boxes + 1, box // 64] |= _bit(box)
        _rank_values(ranks[k], values[:, k], by_low.value[k], by_high.value[k])
    wanted = np.empty_like(everyone)
    for event in range(len(values)):
        # Words in the inner loop: they lie side by side, so several are combined by one instruction.
        for word in range(len(wanted)):
            wanted[word] = everyone[word]
        for k in range(width):
            first, second = ranks[k, 0, event], ranks[k, 1, event]
            for word in range(len(wanted)):
                wanted[word] &= begun[k, first, word] & lasting[k, second, word]
        for word in range(len(wanted)):
            counts[event] += _bits_in(wanted[word])


@rule
def _fill_sets(
    begun: NDArray[np.uint64],
    lasting: NDArray[np.uint64],
    everyone: NDArray[np.uint64],
    by_low: NDArray[np.int64],
    by_high: NDArray[np.int64],
) -> None:
    """Fill in the sets of one attribute: each is the one before it with one box more, or one less.

    Words are copied one by one. For `begun[rank + 1] = begun[rank]` numba compiles what raises an error about shapes,
    and with it all that it takes to write a number as text: 3 s.
    """
    for word in range(len(everyone)):
        lasting[0, word] = everyone[word]
    for rank in range(len(by_low)):
        for word in range(len(everyone)):
            begun[rank + 1, word] = begun[rank, word]
            lasting[rank + 1, word] = lasting[rank, word]
        begun[rank + 1, by_low[rank] // 64] |= _bit(by_low[rank])
        lasting[rank + 1, by_high[rank] // 64] &= _ALL ^ _bit(by_high[rank])


@rule
def _rank_values(
    ranks: NDArray[np.int32],
    values: NDArray[np.float64],
    lows: NDArray[np.float64],
    highs: NDArray[np.float64],
) -> None:
    """Fill in for each value how many lows are <= it and how many highs are < it."""
    for event in range(len(values)):
        if np.isnan(values[event]):
            ranks[0, event], ranks[1, event] = len(lows) + 1, 0
        else:
            ranks[0, event] = _rank(lows, values[event], True)
            ranks[1, event] = _rank(highs, values[event], False)


@rule
def _rank(bounds: NDArray[np.float64], value: float, with_equal: bool) -> int:
    """How many of the ascending bounds are below the value, or equal to it if `with_equal`."""
    first, last = 0, len(bounds)
    while first < last:
        middle = (first + last) // 2
        if bounds[middle] < value or (with_equal and bounds[middle] == value):
            first = middle + 1
        else:
            last = middle
    return first


@rule
def _bit(box: int) -> np.uint64:
    return _ONE << np.uint64(box % 64)


@rule
def _bits_in(word: np.uint64) -> np.int64:
    """How many bits are set. All in uint64: mixed with int64 it would turn into a float."""
    word = word - ((word >> np.uint64(1)) & _EVERY_2ND)
    word = (word & _TWO_OF_4) + ((word >> np.uint64(2)) & _TWO_OF_4)
    word = (word + (word >> np.uint64(4))) & _FOUR_OF_8
    word = word + (word >> np.uint64(8))
    word = word + (word >> np.uint64(16))
    word = word + (word >> np.uint64(32))
    return np.int64(word & np.uint64(0x7F))


def who_wants(values: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which of the boxes low[P, K] .. high[P, K] match each of the events values[E, K], as `matches` says: [E, P]."""
    wanted = np.ones((len(values), len(low)), np.bool_)
    for k in range(values.shape[1]):
        value = values[:, k, None]
        free = np.isneginf(low[:, k]) & np.isposinf(high[:, k])
        wanted &= ((low[:, k] <= value) & (value <= high[:, k])) | free
    return wanted
