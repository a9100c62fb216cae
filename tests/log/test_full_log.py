"""The full log adds up to the ledger."""

from dataclasses import replace

import numpy as np

from serai.field.log import Ledger
from serai.field.metrics import aggregate_full_log
from tests.log import hand_made

# 250 bits cost 12.5 µJ of electronics, and the amplifier 2.5 nJ a square metre.
ELECTRONICS_PJ, PER_SQUARE_METRE_PJ = 12_500_000, 2_500


def assert_same_ledger(one: Ledger, other: Ledger) -> None:
    for name in Ledger._fields:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
        assert getattr(getattr(one, name), "dtype", None) == getattr(getattr(other, name), "dtype", None), name


def test_known_answer():
    run = hand_made.lively()
    # At 3 s the walker is at x = 8, at 4 s at 9, at 28 s at 33; s1 (x = 15) accepts nothing from s0.
    spent = [
        2 * ELECTRONICS_PJ + (3**2 + 10**2) * PER_SQUARE_METRE_PJ,
        ELECTRONICS_PJ + 6**2 * PER_SQUARE_METRE_PJ,
        2 * ELECTRONICS_PJ + (0**2 + 2**2) * PER_SQUARE_METRE_PJ,
    ]
    # The steady part of the minute is 15 s to 37 s and 37 s to 60 s: what happened at 28 s is in its first half.
    steady = np.array([[0, 0, ELECTRONICS_PJ + 2**2 * PER_SQUARE_METRE_PJ], [0, 0, 0]])
    nothing = np.array([0, 0, 0])
    expected = run.ledger._replace(event_pj=np.array(spent), steady_event_pj=steady, received=nothing)
    assert_same_ledger(aggregate_full_log(run.full, run), expected)


def test_only_the_first_reception_counts():
    run = hand_made.lively()
    again = hand_made.full_log([(5, 1, 1, 4, 4, 0, 0), (6, 0, 0, 3, 3, 0, 0), (7, 1, 1, 4, 4, 0, 0)], [])
    ledger = aggregate_full_log(again, run)
    assert ledger.reception_event.tolist() == [1, 0]
    assert ledger.reception_subscriber.tolist() == [1, 0]
    assert ledger.reception_s.tolist() == [5, 6]
    assert ledger.reception_wanted.tolist() == [True, True]
    assert ledger.transmissions.tolist() == [1, 2, 0]


def test_a_return_is_paid_by_its_receiver_alone():
    run = hand_made.lively()
    ledger = aggregate_full_log(hand_made.full_log([(5, 0, 4, 2, -1, 2, 0)], []), run)
    assert ledger.event_pj.tolist() == [0, 0, ELECTRONICS_PJ]
    assert (ledger.sent.tolist(), ledger.received.tolist()) == ([0, 0, 0], [0, 0, 1])
    assert ledger.transmissions.tolist() == [1, 0, 0]
    assert len(ledger.reception_event) == 0


def test_receiving_may_be_free():
    scenario = hand_made.scenario(radio={"receive_costs": False})
    run = replace(hand_made.lively(), scenario=scenario)
    assert aggregate_full_log(hand_made.full_log([(5, 0, 4, 2, -1, 2, 0)], []), run).event_pj.tolist() == [
        0,
        0,
        0,
    ]


def test_nothing_happened():
    run = hand_made.lively()
    ledger = aggregate_full_log(hand_made.full_log([], []), run)
    assert ledger.drops == dict.fromkeys(("expired", "spent", "full", "stranded", "dead"), 0)
    assert ledger.transmissions.tolist() == [0, 0, 0]
    assert ledger.reception_wanted.dtype == bool
