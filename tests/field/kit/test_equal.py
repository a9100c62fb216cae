"""Written with the API as in examples/protocols: DG and CED give the same rows as the compiled ones, floods and
visitors that carry the same as their obvious versions."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import serai
from serai.core.streams import order_key
from serai.field.kit.family import SENSORS
from serai.field.simulation import build_world, limits_of
from serai.own.loading import find_own, own_protocol
from serai.world.grid import Grid
from tests.conftest import UNCOMPILED
from tests.field.naive.field import Network
from tests.field.naive.flood import Carried, Flood
from tests.field.naive.parts import Records
from tests.field.test_twins import assert_same, settled
from tests.field.twin_words import as_records
from tests.field.worlds import Case, Shape, cases, make_case, product_records

EXAMPLES = Path(__file__).parents[3] / "examples" / "protocols" / "sensors.py"
OWN = {
    "dg": own_protocol(find_own(EXAMPLES, "DirectGathering", [SENSORS])),
    "ced": own_protocol(find_own(EXAMPLES, "Ced", [SENSORS])),
}


def own_records(case: Case, until_death: bool = False) -> Records:
    """What the class in the examples does in a world."""
    own = OWN[case.scenario.protocol.name]
    chosen = case.scenario.protocol.model_dump(mode="json", by_alias=True, exclude={"name", "floods"})
    limits = limits_of(case.world, case.scenario, case.key, full_log=True, until_death=until_death)
    return as_records(*own.simulate(case.world, limits, own.settings(**chosen)))


FLOODS: dict[str, type[Network]] = {"CommunityFlood": Flood, "Carried": Carried}
FLOODED = {name: own_protocol(find_own(EXAMPLES, name, [SENSORS])) for name in FLOODS}


def flooded(name: str, case: Case, until_death: bool = False) -> Records:
    """What a flood in the examples does in a world of DG's."""
    own, given = FLOODED[name], case.scenario.protocol
    limits = limits_of(case.world, case.scenario, case.key, full_log=True, until_death=until_death)
    chosen = own.settings(reach=given.reach, silent_while_pausing=given.silent_while_pausing)
    return as_records(*own.simulate(case.world, limits, chosen))


def floods_whole(case: Case) -> bool:
    """The plain engine knows no pruned floods."""
    return bool(case.scenario.protocol.floods == "whole")


many = settings(max_examples=20 if UNCOMPILED else 2 * settings().max_examples)


@many
@given(cases("dg"))
def test_dg_written_in_python_is_dg(case: Case) -> None:
    assert_same(product_records(*case), own_records(case))


@many
@given(cases("ced").filter(floods_whole))
def test_ced_written_in_python_is_ced(case: Case) -> None:
    assert_same(product_records(*case), own_records(case))


def test_sessions_that_the_dead_take_along_end_together() -> None:
    """Relayed copies in what is left of a community are dropped as their own subscribers', not as each other's."""
    shape = Shape(
        grid=Grid(200 / 3, 160 / 3, columns=5, rows=4),
        slots=54,
        sensors=4,
        subscribers=2,
        events=71,
        attributes=1,
        layout="trails",
        waypoint=False,
        seed=1271,
    )
    others = {
        "sensors": {"battery": "1 mJ", "queue": 200},
        "events": {"lifetime": "2000 s"},
        "radio": {"rate": 20, "receive_costs": False},
    }
    case = make_case("ced", shape, {"relays": "open", "stranded": "deleted"}, others, 0)
    product = product_records(*case)
    lost = {(drop.time_s, addressee) for drop, (addressee, *_) in settled(product) if drop.reason == "stranded"}
    assert {(20, 4), (20, 5)} & lost == {(20, 4)}
    assert_same(product, own_records(case))


@many
@given(cases("ced").filter(floods_whole))
def test_the_first_death_is_the_same(case: Case) -> None:
    assert_same(product_records(*case, until_death=True), own_records(case, until_death=True))


@many
@given(cases("dg", sun=True))
def test_those_who_wake_under_dg_are_played_alike(case: Case) -> None:
    assert_same(product_records(*case), own_records(case))


@many
@given(cases("ced", sun=True).filter(floods_whole))
def test_those_who_wake_under_ced_are_played_alike(case: Case) -> None:
    assert_same(product_records(*case), own_records(case))


@pytest.mark.parametrize("name", list(FLOODS))
@given(case=st.booleans().flatmap(lambda sun: cases("dg", sun)))
def test_floods_are_what_the_obvious_version_does(name: str, case: Case) -> None:
    assert_same(flooded(name, case), FLOODS[name](*case).run())


@pytest.mark.parametrize("protocol", list(OWN))
def test_the_papers_set_up_is_the_same(protocol: str) -> None:
    scenario = serai.load_scenario(protocol).model_copy(update={"duration_s": 720})
    case = Case(build_world(scenario, 1), scenario, order_key(1))
    assert_same(product_records(*case), own_records(case))
