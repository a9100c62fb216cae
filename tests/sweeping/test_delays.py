"""Delays in bins: what each bin holds, and that nothing is lost."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from serai.sweeping.delays import ENDS_S, GROWTH, count_delays

DELAYS = st.lists(st.one_of(st.floats(0, 1e6), st.sampled_from([0.0, 1.0, *ENDS_S[:300].tolist()])), max_size=200)


@given(DELAYS)
def test_counts_are_those_of_a_plain_loop(delays_s: list[float]) -> None:
    bins, counts = count_delays(np.array(delays_s, dtype=np.float64))
    expected: dict[int, int] = {}
    for delay in delays_s:
        number = next(place for place, end in enumerate(ENDS_S) if delay <= end)
        expected[number] = expected.get(number, 0) + 1
    assert dict(zip(bins.tolist(), counts.tolist(), strict=True)) == expected
    assert bins.tolist() == sorted(expected)


def test_bins_grow_by_two_percent() -> None:
    assert ENDS_S[0] == 1
    assert np.allclose(ENDS_S[1:] / ENDS_S[:-1], GROWTH, rtol=1e-12)
    assert ENDS_S[-1] > 1e10
    assert np.iinfo(np.int16).max > len(ENDS_S)


def test_what_is_beyond_all_bins_is_in_the_last() -> None:
    bins, counts = count_delays(np.array([1e300]))
    assert (bins.tolist(), counts.tolist()) == ([len(ENDS_S) - 1], [1])
