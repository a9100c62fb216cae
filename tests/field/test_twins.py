"""The compiled protocols and their naive twins give the same ledger and full log, in any small world."""

from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import serai
from serai.core import energy
from serai.field.sections import RadioSection
from serai.field.simulation import build_world, order_key
from serai.scenario.load import builtin_names
from tests.conftest import UNCOMPILED
from tests.field.naive import PROTOCOLS as TWINS
from tests.field.naive import play
from tests.field.naive.parts import DEAD, EXPIRED, STRANDED, Drop, Records, receive_pj, transmit_pj
from tests.field.worlds import Case, any_cases, cases, product_records


def settled(records: Records) -> list[tuple[Drop, tuple[int, bool, int]]]:
    """The drops with an order where they have none: expiry and the end of a session drop all at once."""
    drops, rows = zip(records.drops, records.whose, strict=True), []
    for (_, reason), group in groupby(drops, key=lambda row: (row[0].time_s, row[0].reason)):
        step = list(group)
        rows += sorted(step) if reason in (EXPIRED, STRANDED, DEAD) else step
    return rows


def assert_same(product: Records, naive: Records) -> None:
    """Number for number, the most telling difference first."""
    assert product.died == naive.died
    assert product.transfers == naive.transfers
    assert product.kept == naive.kept
    assert settled(product) == settled(naive)
    assert product.drops_by_reason == naive.drops_by_reason
    assert product.receptions == naive.receptions
    assert product.transmissions == naive.transmissions
    assert product.sent == naive.sent
    assert product.received == naive.received
    assert product.event_pj == naive.event_pj
    assert product.control_messages == naive.control_messages
    assert product.control_bits == naive.control_bits
    assert product.control_pj == naive.control_pj
    assert sorted(product.naps) == sorted(naive.naps)
    assert product.idle_pj == naive.idle_pj
    assert product.harvested_pj == naive.harvested_pj
    assert product.wasted_pj == naive.wasted_pj
    assert product.steady_pj == naive.steady_pj
    if product.watched is not None and naive.watched is not None:
        for name in ("control", "sessions", "heads", "spent"):  # those of one second in any order
            assert sorted(getattr(product.watched, name)) == sorted(getattr(naive.watched, name)), name


many = settings(max_examples=4 * settings().max_examples)  # small worlds are quick, and often dull


@many
@given(cases("ced"))
def test_ced_is_its_naive_twin(case: Case) -> None:
    assert_same(product_records(*case), play(*case))


@many
@given(cases("cet"))
def test_cet_is_its_naive_twin(case: Case) -> None:
    assert_same(product_records(*case), play(*case))


@many
@given(cases("dg"))
def test_dg_is_its_naive_twin(case: Case) -> None:
    assert_same(product_records(*case), play(*case))


@many
@given(st.sampled_from(["ced", "cet", "dg"]).flatmap(lambda protocol: cases(protocol, sun=True)))
def test_sensors_that_die_and_wake_are_played_alike(case: Case) -> None:
    assert_same(product_records(*case), play(*case))


@given(any_cases, st.floats(0.01, 1.1))
def test_until_the_first_death_is_played_alike(case: Case, share: float) -> None:
    """With a battery that holds a share of what the busiest sensor spends: it dies early, late or not at all."""
    world, scenario, key = case
    whole = play(world._replace(battery_j=np.full(len(world.sensor_x), 9e6)), scenario, key)
    spent = whole.event_pj
    if scenario.radio.control_costs:
        spent = [events + control for events, control in zip(spent, whole.control_pj, strict=True)]
    battery_j = max(round(share * max(spent)), 1) / 1e12
    dying = world._replace(battery_j=np.full(len(world.sensor_x), battery_j))
    assert_same(product_records(dying, scenario, key, until_death=True), play(dying, scenario, key, until_death=True))


@pytest.mark.parametrize("protocol", list(TWINS))
def test_the_papers_set_up_is_played_alike(protocol: str) -> None:
    """A tenth of the built-in scenario's two hours: queues and communities as large as they get."""
    source = protocol if protocol in builtin_names() else "field"
    scenario = serai.load_scenario(source, protocol=protocol).model_copy(
        update={"duration_s": 300 if UNCOMPILED else 720}
    )
    case = build_world(scenario, 1), scenario, order_key(1)
    assert_same(product_records(*case), play(*case))


energies = st.sampled_from([0.0, 50e-9, 10e-12, 0.0013e-12, 1.7e-10])


@given(energies, energies, energies, st.booleans(), st.integers(0, 100_000), st.floats(0, 1000))
def test_radio_energy(
    electronics: float, free_space: float, multipath: float, receive_costs: bool, bits: int, distance_m: float
) -> None:
    """d0 is where the two amplifier terms are equal: choosing by distance is taking the larger one."""
    product = energy.Radio(electronics, free_space, multipath, receive_costs)
    naive = RadioSection.model_construct(
        electronics_j_per_bit=electronics,
        free_space_j_per_bit_m2=free_space,
        multipath_j_per_bit_m4=multipath,
        receive_costs=receive_costs,
    )
    assert energy.receive_pj(product, bits) == receive_pj(naive, bits)
    assert energy.transmit_pj(product, bits, distance_m) == transmit_pj(naive, bits, distance_m)
