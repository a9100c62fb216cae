"""What small worlds never reach: pools that grow in the middle of a run, and more sessions than a word has bits."""

from itertools import product

import pytest

import serai
from serai.core.jit import kernel, lowest_bit
from serai.field.engine import setup
from serai.field.engine.state import BITS
from serai.world.grid import Grid
from tests.conftest import UNCOMPILED
from tests.field.naive import play
from tests.field.test_twins import assert_same
from tests.field.worlds import Shape, make_case, product_records

VARIANTS = {
    "ced": [{}, {"resend": "each-contact", "stranded": "kept"}, {"hops": "one", "relays": "open"}],
    "cet": [{"gamma": 100}, {"gamma": 100, "match": "sensor", "return_memory": "returner"}],
    "dg": [{}, {"resend": "each-contact", "budget": "link"}],
}
CROWD = Shape(
    grid=Grid(80.0, 40.0, 6, 3),
    slots=60,
    sensors=7,
    subscribers=BITS + 8,
    events=40,
    attributes=1,
    layout="trails",
    waypoint=True,
    seed=11,
)
CASES = [(protocol, settings) for protocol, variants in VARIANTS.items() for settings in variants]


@pytest.mark.parametrize(("protocol", "settings"), CASES)
def test_a_run_that_outgrows_its_pools_is_the_same_run(protocol, settings, monkeypatch):
    """Beginning with pools of one record, so that every one of them grows several times, changes nothing."""
    sets = ["events.quiet=0 s", "events.interval=20 s", "sensors.count=30", "field.cells=8"]
    sets.append(f"duration={140 if UNCOMPILED else 300} s")
    scenario = serai.load_scenario(protocol, [*sets, *(f"protocol.{key}={value}" for key, value in settings.items())])
    usual = serai.simulate(scenario, seed=5, full_log=True)
    sizes = []

    def grow(field):
        sizes.append(len(field.receptions))
        return grow_as_usual(field)

    grow_as_usual = setup.grow
    monkeypatch.setattr(setup, "grow", grow)
    monkeypatch.setattr(setup, "first_guess", lambda expected, most_in_a_slot: 1)
    assert serai.simulate(scenario, seed=5, full_log=True) == usual
    assert len(usual.ledger.reception_s) > 100
    assert len(sizes) > 1, "the pools never grew: the test shows nothing"


@pytest.mark.parametrize(("protocol", "settings"), CASES)
def test_more_subscribers_than_bits_in_a_word(protocol, settings):
    case = make_case(protocol, CROWD, settings, {}, key=7)
    naive = play(*case)
    assert len(case.world.low) > BITS
    assert max(row.subscriber for row in naive.receptions) >= BITS, "nobody beyond the first word"
    assert_same(product_records(*case), naive)


@kernel
def lowest_bit_compiled(bits: int) -> int:
    return lowest_bit(bits)


@pytest.mark.parametrize(("low", "high"), list(product((0, 1, 5, 31, 32, 61), (0, 40, 61))))
def test_lowest_bit(low, high):
    bits = (1 << low) | (1 << max(low, high))
    assert lowest_bit(bits) == lowest_bit_compiled(bits) == low
