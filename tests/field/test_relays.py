"""Relays: sensors at which nothing happens, beside those that are there."""

import numpy as np
import pytest

from serai.core.errors import BadScenario
from serai.field.simulation import build_world
from serai.lab import load_scenario, parse_scenario, simulate
from serai.scenario.write import to_toml

SMALL = ["duration=30 min", "sensors.count=20", "field.width=300 m", "radio.range=40 m"]
TWO = [*SMALL, "sensors.relays=[[10, 20], [299.5, 0]]"]


def test_relays_leave_the_world_of_the_others_as_it_was() -> None:
    without, with_two = (build_world(load_scenario("ced", settings), 7) for settings in (SMALL, TWO))
    assert with_two.sensor_names[20:] == ("relay 1", "relay 2")
    assert (with_two.sensor_x[20:].tolist(), with_two.sensor_y[20:].tolist()) == ([10.0, 299.5], [20.0, 0.0])
    assert np.array_equal(with_two.sensor_x[:20], without.sensor_x)
    for column in ("event_sensor", "event_time_s", "event_values"):
        assert np.array_equal(getattr(with_two, column), getattr(without, column))


def test_a_relay_makes_one_community_of_two() -> None:
    text = """
    duration = "1 h"
    field = {width = "200 m", height = "10 m"}
    radio = {range = "60 m"}
    sensors = {placement = "grid", count = 2RELAYS}
    protocol = {name = "ced"}
    """
    apart, joined = (
        simulate(parse_scenario(text.replace("RELAYS", relays)), seed=1) for relays in ("", ", relays = [[100, 5]]")
    )
    assert [len(run.world.communities.size) for run in (apart, joined)] == [2, 1]
    assert len(joined.ledger.died) == 3
    assert joined.ledger.sent[2] > 0


def test_written_and_read_again() -> None:
    scenario = load_scenario("ced", TWO)
    assert scenario.sensors.relays == ((10.0, 20.0), (299.5, 0.0))
    assert parse_scenario(to_toml(scenario)).sensors == scenario.sensors
    assert "relays = [" not in to_toml(load_scenario("ced"))


@pytest.mark.parametrize(
    ("relays", "message"),
    [
        ("3", "expected places in metres such as [[120, 80], [40, 15.5]]"),
        ("[[1, 2, 3]]", "expected places in metres"),
        ('[["a", 2]]', "expected places in metres"),
        ("[[1, 2], 3]", "expected places in metres"),
        ("[[1, inf]]", "expected places in metres"),
        ("[[1, 2], [301, 2]]", "[301, 2] is outside the field, which reaches from 0 to 300 m across, 0 to 200 m up"),
    ],
)
def test_places_that_cannot_be(relays: str, message: str) -> None:
    with pytest.raises(BadScenario) as error:
        load_scenario("ced", [*SMALL, f"sensors.relays={relays}"])
    assert message in str(error.value)
    assert "sensors.relays" in str(error.value)
