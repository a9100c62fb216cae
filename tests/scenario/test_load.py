"""Loading: built-in scenarios, files, changes, and another protocol."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from serai.core.content import Attribute
from serai.core.errors import BadInput, BadScenario
from serai.field.sections import FieldScenario
from serai.lab import load_scenario, parse_scenario
from serai.scenario.load import builtin_names, builtin_text

REAL = (Attribute("A1", "real", 0.0, 10.0), Attribute("A2", "real", 0.0, 10.0))
INTEGER = (Attribute("A1", "integer", 0.0, 10.0), Attribute("A2", "integer", 0.0, 10.0))


def settings(scenario):
    """Everything but what the scenario is called."""
    return scenario.model_dump(exclude={"name", "title"})


def test_the_built_in_scenarios():
    assert set(builtin_names()) >= {"ced", "cet", "dg", "field", "tinymq"}
    for name in builtin_names():
        scenario = load_scenario(name)
        assert scenario.name == name
        assert scenario.title


@pytest.mark.parametrize(
    ("name", "protocol", "attributes"),
    [("ced", "ced", REAL), ("dg", "dg", REAL), ("cet", "cet", INTEGER), ("field", "ced", REAL)],
)
def test_a_built_in_scenario_is_the_papers_set_up(name, protocol, attributes):
    scenario = load_scenario(name)
    expected = parse_scenario(f'[protocol]\nname = "{protocol}"').model_dump(exclude={"name", "title", "events"})
    assert scenario.model_dump(exclude={"name", "title", "events"}) == expected
    assert scenario.events.attributes == attributes


def test_the_defaults_are_the_numbers_of_the_papers():
    scenario = parse_scenario("")
    assert scenario.duration_s == 7200
    assert type(scenario.duration_s) is int
    field = scenario.field
    assert (field.width_m, field.height_m, field.columns, field.rows) == (200.0, 200.0, 15, 15)
    sensors = scenario.sensors
    assert (sensors.count, sensors.placement, sensors.file, sensors.battery_j) == (100, "uniform", None, 10.0)
    assert sensors.queue == 200
    walkers = scenario.subscribers
    assert (walkers.count, walkers.speed_min_mps, walkers.speed_max_mps) == (10, 1.0, 5.0)
    assert (walkers.pause_min_s, walkers.pause_max_s, walkers.start) == (0.0, 120.0, "cold")
    events = scenario.events
    assert (events.interval_s, events.quiet_s, events.lifetime_s) == (100.0, 200.0, 2000.0)
    assert (events.size_bits, events.attributes) == (250, REAL)
    assert scenario.subscriptions.where == ("A1 < ? and A2 < ?",)
    radio = scenario.radio
    assert (radio.rate, radio.electronics_j_per_bit) == (20, 50e-9)
    assert (radio.free_space_j_per_bit_m2, radio.multipath_j_per_bit_m4) == (10e-12, 0.0013e-12)
    assert (radio.receive_costs, radio.control_costs) == (True, False)
    assert list(scenario.control.model_dump().values()) == [64, 96, 256, 64, 64, 64]
    assert scenario.protocol.name == "ced"


def test_a_scenario_is_frozen():
    scenario = load_scenario("field")
    with pytest.raises(ValidationError, match="frozen"):
        scenario.duration_s = 3
    with pytest.raises(ValidationError, match="frozen"):
        scenario.protocol.alpha = 3
    assert hash(scenario) == hash(load_scenario("field"))


def test_a_file_is_called_by_its_name_unless_it_says_otherwise(tmp_path):
    path = tmp_path / "meadow.toml"
    path.write_text("\ufeffduration = '1 min'\r\nevents.quiet = '0 s'\r\n", "utf-8")
    assert load_scenario(path).name == "meadow"
    assert load_scenario(str(path)).duration_s == 60
    path.write_text("name = 'hill'")
    assert load_scenario(path).name == "hill"


def test_units_and_shapes():
    scenario = parse_scenario("""
        [field]
        width = "0.3 km"
        cells = [15, 12]
        [events]
        size = "32 byte"
        attributes.height = {low = -1, high = 1.5}
        [subscriptions]
        where = ["height < 1", "0 < height"]
    """)
    assert scenario.field.width_m == 300.0
    assert (scenario.field.columns, scenario.field.rows) == (15, 12)
    assert scenario.events.size_bits == 256
    assert scenario.events.attributes == (Attribute("height", "real", -1.0, 1.5),)
    assert scenario.subscriptions.where == ("height < 1", "0 < height")


@pytest.mark.parametrize(
    ("override", "get", "value"),
    [
        ("protocol.alpha=10", lambda s: s.protocol.alpha, 10),
        ('subscribers.speed_max="11 m/s"', lambda s: s.subscribers.speed_max_mps, 11.0),
        ("subscribers.speed_max=11 m/s", lambda s: s.subscribers.speed_max_mps, 11.0),
        ("subscribers.speed_max = 11 m/s", lambda s: s.subscribers.speed_max_mps, 11.0),
        ("protocol.resend=each-contact", lambda s: s.protocol.resend, "each-contact"),
        ("radio.control_costs=true", lambda s: s.radio.control_costs, True),
        ("field.cells=[3, 4]", lambda s: s.field.cells, (3, 4)),
        ("title=a = b", lambda s: s.title, "a = b"),
        ("title=1\nname='x'", lambda s: (s.title, s.name), ("1\nname='x'", "field")),
        ("subscriptions.where=A1 < 3", lambda s: s.subscriptions.where, ("A1 < 3",)),
        ('subscriptions.where=["A1 < 3", "A2 = 1"]', lambda s: s.subscriptions.where, ("A1 < 3", "A2 = 1")),
        ("events.attributes.A2.high=3", lambda s: s.events.attributes[1].high, 3.0),
        ('events.attributes."a.b"={low=0,high=1}', lambda s: s.events.attributes[2].name, "a.b"),
        ("subscribers.count=0", lambda s: s.subscribers.count, 0),
        ("subscribers.speed_min=0 m/s", lambda s: s.subscribers.speed_min_mps, 0.0),
        ("subscribers.speed_max=1 m/s", lambda s: s.subscribers.speed_max_mps, 1.0),
    ],
)
def test_a_change(override, get, value):
    assert get(load_scenario("field", [override])) == value


def test_changes_come_in_order_as_a_text_or_as_a_mapping():
    assert load_scenario("field", ["protocol.alpha=1", "protocol.alpha=2"]).protocol.alpha == 2
    assert load_scenario("field", "protocol.alpha=3").protocol.alpha == 3
    changes = {"protocol.alpha": 4, "field.cells": (3, 4), "field.width": "1 km"}
    scenario = load_scenario("field", changes)
    assert (scenario.protocol.alpha, scenario.field.cells, scenario.field.width_m) == (4, (3, 4), 1000.0)


def test_a_mapping_is_held_to_the_same_rules():
    with pytest.raises(BadScenario) as caught:
        load_scenario("field", {"protocol.alpha": "x"})
    assert str(caught.value) == "protocol.alpha: expected a whole number such as 20  --> protocol.alpha = 'x'"


class TestAnotherProtocol:
    def test_keeps_what_differs_from_the_defaults(self):
        text = '[protocol]\nname = "ced"\nalpha = 10\nzone = "in-range"\nmatch = "sensor"'
        cet = parse_scenario(text, protocol="cet").protocol
        assert (cet.name, cet.alpha, cet.zone, cet.match, cet.gamma) == ("cet", 10, "in-range", "sensor", 4)
        dg = parse_scenario(text, protocol="dg").protocol
        assert (dg.name, dg.match, dg.resend) == ("dg", "sensor", "every-second")

    def test_does_not_take_a_default_for_a_wish(self):
        text = '[protocol]\nname = "ced"\nresend = "once"\nmatch = "sensor"'
        dg = parse_scenario(text, protocol="dg").protocol
        assert (dg.resend, dg.match) == ("every-second", "sensor")

    def test_drops_a_value_that_the_other_does_not_know(self):
        text = '[protocol]\nname = "dg"\nbudget = "link"\nresend = "once"'
        ced = parse_scenario(text, protocol="ced")
        assert settings(ced) == settings(parse_scenario(""))

    def test_is_the_same_by_argument_by_change_and_by_method(self):
        by_argument = load_scenario("cet", ["protocol.gamma=9"], protocol="cet").with_protocol("ced")
        by_change = load_scenario("cet", ["protocol.name=ced"])
        assert by_argument == by_change == load_scenario("cet", protocol="ced")

    def test_comes_before_changes(self):
        scenario = load_scenario("ced", ["protocol.silent_while_pausing=false"], protocol="dg")
        assert scenario.protocol.silent_while_pausing is False
        assert load_scenario("ced", ["protocol.gamma=2"], protocol="cet").protocol.gamma == 2

    def test_reads_settings_without_a_name_as_its_own(self):
        text = "[protocol]\ngamma = 9"
        assert parse_scenario(text, protocol="cet").protocol.gamma == 9
        with pytest.raises(BadScenario, match="a setting of cet and cet-plus, not of ced"):
            parse_scenario(text)

    def test_back_and_forth(self):
        scenario = load_scenario("cet", ["protocol.alpha=7", "protocol.theta=3 J"])
        assert scenario.with_protocol("cet") is not None
        assert scenario.with_protocol("cet").protocol is scenario.protocol
        assert scenario.with_protocol("ced").with_protocol("cet").protocol.alpha == 7

    def test_must_exist(self):
        with pytest.raises(BadInput, match=r'unknown protocol "gossip" .*\(field\); one of: dg, ced, cet'):
            load_scenario("ced").with_protocol("gossip")


class TestSensorFile:
    TEXT = '[sensors]\nplacement = "file"\nfile = "sensors.csv"'

    def test_is_looked_for_beside_the_scenario(self, tmp_path, monkeypatch):
        (tmp_path / "my.toml").write_text(self.TEXT)
        (tmp_path / "sensors.csv").touch()
        monkeypatch.chdir(tmp_path.parent)
        scenario = load_scenario(Path(tmp_path.name) / "my.toml")
        assert scenario.sensors.file == tmp_path / "sensors.csv"

    def test_of_a_change_is_looked_for_here(self, tmp_path, monkeypatch):
        (tmp_path / "here.csv").touch()
        monkeypatch.chdir(tmp_path)
        for changes in (
            {"sensors.file": Path("here.csv"), "sensors.placement": "file"},
            ["sensors.file=here.csv", "sensors.placement=file"],
        ):
            with pytest.raises(BadScenario, match="leave it out: the file of positions says how many"):
                load_scenario("field", changes)
            (tmp_path / "my.toml").write_text("")
            assert load_scenario("my.toml", changes).sensors.file == tmp_path / "here.csv"

    def test_must_exist(self, tmp_path):
        (tmp_path / "my.toml").write_text(self.TEXT)
        with pytest.raises(BadScenario) as caught:
            load_scenario(tmp_path / "my.toml")
        (problem,) = caught.value.problems
        assert (problem.where, problem.line, problem.column) == ("sensors.file", 3, 8)
        assert problem.message == f"no such file: {tmp_path / 'sensors.csv'}"
        (tmp_path / "sensors.csv").mkdir()
        with pytest.raises(BadScenario, match=r"a folder, not a file: .*sensors\.csv"):
            load_scenario(tmp_path / "my.toml")

    def test_may_have_gone_when_a_stored_text_is_read(self):
        assert parse_scenario(self.TEXT).sensors.file == Path("sensors.csv")


def test_the_text_of_a_built_in_scenario():
    assert builtin_text("cet").startswith("# The set-up of the CET paper")
    with pytest.raises(BadInput, match='no built-in scenario "nope"; one of: ced, cet, dg, dpsp, field'):
        builtin_text("nope")


def test_the_object_can_be_made_from_data_alone():
    scenario = FieldScenario.model_validate({"field": {"width": "1 km"}})
    assert scenario.field.width_m == 1000.0
