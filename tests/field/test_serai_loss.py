"""Events that are lost on the air under SERAI: sent again until they are acknowledged, four times at most."""

from collections import Counter

import pytest

import serai
from serai.core.errors import BadInput
from serai.core.order import is_lost, slot_key
from tests.field.naive.parts import RELAY, SOURCE, Drop, Records, Transfer
from tests.field.test_serai import (
    AMPLIFIER,
    CARRIER,
    ELECTRONICS,
    FORK,
    LONER_AND_PAIR,
    SEEN,
    bits,
    played,
    row_of,
    standing,
)
from tests.field.worlds import Happening

KEY = 0  # of `played`


def tries(time_s: int, sender: int, receiver: int, event: int, loss: float) -> int:
    """How often an event is sent over a link in a second; 5: it is not heard in four times."""
    key = slot_key(KEY, time_s)
    return next((n + 1 for n in range(4) if not is_lost(key, sender, receiver, event, n, loss)), 5)


def test_as_many_are_lost_as_should_be() -> None:
    draws = [
        is_lost(slot_key(7, time_s), sender, receiver, event, nth, 0.1)
        for time_s in range(20)
        for sender in range(5)
        for receiver in range(5, 10)
        for event in range(10)
        for nth in range(4)
    ]
    assert sum(draws) / len(draws) == pytest.approx(0.1, abs=0.006)  # three standard errors
    assert not any(is_lost(1, 2, 3, 4, nth, 0.0) for nth in range(4))


@pytest.mark.parametrize("birth_s", [1.5, 2.5, 3.5, 4.5, 5.5])
def test_each_hop_is_tried_until_it_is_acknowledged(birth_s: float) -> None:
    """Two hops to the sensor beside the subscriber, and one to the subscriber; rows, energy and bits by hand."""
    loss, at = 0.5, int(birth_s + 1)
    records = played(row_of(3), [standing(3)], [Happening(0, birth_s)], slots=at + 1, radio={"loss": loss})
    hops = [tries(at, 0, 1, 0, loss), tries(at, 1, 2, 0, loss)]
    expected = []
    for sender, kind in ((0, SOURCE), (1, RELAY)):
        expected += [Transfer(at, 0, sender, sender + 1, 3, kind, False)] * min(hops[sender] - 1, 4)
        if hops[sender] == 5:
            break
        expected.append(Transfer(at, 0, sender, sender + 1, 3, kind, True))
    assert records.transfers == expected
    assert records.transmissions == [len(expected)]
    sent = Counter(row.sender for row in expected)
    heard = {row.receiver for row in expected if row.accepted}
    to_send, to_hear = 250 * (ELECTRONICS + AMPLIFIER * 100), 250 * ELECTRONICS
    assert records.event_pj == [sent[sensor] * to_send + (sensor in heard) * to_hear for sensor in range(3)]
    assert bits(records).get("ack", 0) == 16 * len(heard)
    assert not records.drops


def alone_with(loss: float, slots: int) -> Records:
    return played(row_of(3), [standing(3)], [Happening(0, 1.5)], slots=slots, radio={"loss": loss})


def test_what_is_never_heard_stays_with_the_source() -> None:
    """Four tries as it is born; it is for the subscriber's next path, and nothing of it is lost."""
    records = alone_with(1 - 1e-12, 10)
    assert records.transfers == [Transfer(2, 0, 0, 1, 3, SOURCE, False)] * 4
    assert not records.drops
    assert "ack" not in bits(records)


def test_a_sensor_beside_the_subscriber_tries_again_in_the_next_second() -> None:
    records = played(row_of(1), [standing(1)], [Happening(0, 1.5)], slots=5, radio={"loss": 1 - 1e-12})
    assert [row.time_s for row in records.transfers] == [2] * 4 + [3] * 4 + [4] * 4
    assert not any(row.accepted for row in records.transfers)


def test_a_branch_that_is_not_heard_stays_where_it_was() -> None:
    """Somewhere in many keys a branch of a fork fails: the middle keeps a copy, and nothing is dropped or doubled."""
    events = [Happening(0, 1.5 + second) for second in range(60)]
    records = played(FORK, [standing(4, 0), standing(4, 2)], events, slots=70, radio={"loss": 0.6})
    rows = records.transfers
    failed = Counter((row.event, row.sender, row.receiver) for row in rows if not row.accepted)
    stuck = [link for link, count in failed.items() if count == 4 and link[2] < 5]
    assert {sender for _, sender, _ in stuck} >= {0, 1, 2}, "not every sensor on the way was left with something"
    assert Drop not in map(type, records.drops) or all(drop.reason == "spent" for drop in records.drops)
    received = Counter((row.event, row.subscriber) for row in records.receptions)
    assert set(received.values()) == {1}


def test_a_carrier_keeps_what_nobody_hears() -> None:
    """It tries to leave the event again in the next second, for as long as it is there."""
    whole = played(LONER_AND_PAIR, [CARRIER, standing(7)], [Happening(0, 20.5)], SEEN, slots=60)
    left = [row for row in whole.transfers if row.kind == "return"]
    lossy = played(LONER_AND_PAIR, [CARRIER, standing(7)], [Happening(0, 20.5)], SEEN, slots=60, radio={"loss": 0.97})
    tried = [row for row in lossy.transfers if row.kind == "return"]
    assert len(left) == 1
    assert len(tried) > 4, "one second was enough"
    assert [row.accepted for row in tried].count(True) == 1
    assert tried[-1].accepted


@pytest.mark.parametrize("protocol", ["ced", "cet", "cet-plus", "dg"])
def test_who_acknowledges_nothing_is_not_run_with_loss(protocol: str) -> None:
    with pytest.raises(BadInput, match="acknowledges nothing"):
        serai.load_scenario("field", ["radio.loss=0.1"], protocol)
