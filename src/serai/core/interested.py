"""How many of many subscriptions match each of many events, without comparing all of them with all.

`serai.core.content.matches` decides; this counts the same by sets of subscriptions, kept as bits.
"""

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
        order = np.argsort(lows[block], axis=0), np.argsort(highs[block], axis=0)
        _add_interested(events, lows[block], highs[block], *order, counts)
    return counts


@kernel
def _add_interested(
    values: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    by_low: NDArray[np.int64],
    by_high: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Add to each event's count how many of the boxes match it; by_low[:, k] orders them by their low in k.

    begun[k, rank] is the set (as bits) of the boxes with the `rank` smallest lows in attribute k,
    lasting[k, rank] all but those with the `rank` smallest highs. A value's ranks among the lows and highs
    pick two sets per attribute, and the boxes in all of them match.
    """
    boxes, width = low.shape
    everyone = np.zeros((boxes + 63) // 64, np.uint64)
    for box in range(boxes):
        everyone[box // 64] |= _bit(box)
    begun = np.zeros((width, boxes + 2, len(everyone)), np.uint64)
    lasting = np.zeros((width, boxes + 1, len(everyone)), np.uint64)
    ranks = np.empty((width, 2, len(values)), np.int32)
    for k in range(width):
        lasting[k, 0] = everyone
        _fill_sets(begun[k], lasting[k], by_low[:, k], by_high[:, k])
        for box in range(boxes):
            if low[box, k] == -np.inf and high[box, k] == np.inf:
                begun[k, -1, box // 64] |= _bit(box)  # the set that a missing value picks
        _rank_values(ranks[k], values[:, k], low[by_low[:, k], k], high[by_high[:, k], k])
    wanted = np.empty_like(everyone)
    for event in range(len(values)):
        wanted[:] = everyone
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
    by_low: NDArray[np.int64],
    by_high: NDArray[np.int64],
) -> None:
    """Fill in the sets of one attribute, one box after the other in the order of their bounds."""
    for rank in range(len(by_low)):
        begun[rank + 1] |= begun[rank]
        begun[rank + 1, by_low[rank] // 64] |= _bit(by_low[rank])
        lasting[rank + 1] = lasting[rank]
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
