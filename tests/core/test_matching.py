"""Who wants what: the rule `matches`, and the bitmaps that count with it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serai.core import interested
from serai.core.content import matches
from serai.core.interested import count_interested

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("value", "low", "high", "wanted"),
    [
        (3.0, 3.0, 3.0, True),
        (3.0, -INF, 3.0, True),
        (3.0, -INF, math.nextafter(3.0, -INF), False),
        (3.0, 3.5, INF, False),
        (-0.0, 0.0, 1.0, True),
        (0.0, -1.0, -0.0, True),
        (3.0, 5.0, 1.0, False),
        (3.0, -INF, INF, True),
        (NAN, -INF, INF, True),
        (NAN, 0.0, INF, False),
        (NAN, -INF, 0.0, False),
        (INF, 0.0, INF, True),
        (-INF, -INF, 0.0, True),
        (INF, -INF, 0.0, False),
        (0.0, NAN, 1.0, False),
        (0.0, -INF, NAN, False),
    ],
)
def test_one_attribute(value, low, high, wanted):
    assert matches(np.array([value]), np.array([low]), np.array([high])) is wanted
    counted = count_interested(np.array([[value]]), np.array([[low]]), np.array([[high]]))
    assert counted.tolist() == [wanted]


def test_every_attribute_must_match():
    low, high = np.array([0.0, 5.0]), np.array([1.0, 6.0])
    assert matches(np.array([0.5, 5.5]), low, high)
    assert not matches(np.array([0.5, 7.0]), low, high)
    assert not matches(np.array([2.0, 5.5]), low, high)


def test_without_attributes_everything_matches():
    assert matches(np.empty(0), np.empty(0), np.empty(0))


def counted_one_by_one(values, low, high):
    return [sum(matches(event, low[p], high[p]) for p in range(len(low))) for event in values]


# Few distinct numbers, so that values and bounds often coincide.
NUMBERS = st.sampled_from([-INF, -1.0, -5e-324, -0.0, 0.0, 1.0, math.nextafter(1.0, 2.0), 2.0, INF, NAN])


@st.composite
def worlds(draw):
    width = draw(st.integers(0, 3))
    events, boxes = draw(st.integers(0, 6)), draw(st.integers(0, 70))
    values, low, high = (
        np.array(draw(st.lists(NUMBERS, min_size=n * width, max_size=n * width)), np.float64).reshape(n, width)
        for n in (events, boxes, boxes)
    )
    if draw(st.booleans()):  # half-open ranges, the usual case, leave most attributes free
        low[:] = -INF
    return values, low, high


@settings(deadline=None)
@given(worlds(), st.sampled_from([1, 5, 64, 2048]))
def test_counting_by_bitmaps_is_counting_one_by_one(world, block):
    values, low, high = world
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interested, "_BLOCK", block)
        counted = count_interested(values, low, high)
    assert counted.dtype == np.int64
    assert counted.tolist() == counted_one_by_one(values, low, high)


def test_a_crowd_is_counted_block_by_block():
    rng = np.random.default_rng(7)
    values = rng.integers(0, 11, (40, 2)).astype(float)
    low, high = np.sort(rng.integers(0, 11, (2, 5000, 2)).astype(float), axis=0)
    inside = (low[None] <= values[:, None]) & (values[:, None] <= high[None])
    np.testing.assert_array_equal(count_interested(values, low, high), inside.all(2).sum(1))


def test_the_arrays_may_be_of_any_layout_and_are_left_alone():
    values = np.asfortranarray(np.array([[1, 2], [3, 4]]))
    low, high = np.full((2, 3), NAN).T, np.full((2, 3), 9.0).T
    low[:, :] = 2.0
    before = low.copy(), high.copy()
    assert count_interested(values, low, high).tolist() == [0, 3]
    np.testing.assert_array_equal(low, before[0])
    np.testing.assert_array_equal(high, before[1])
