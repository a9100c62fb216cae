"""Scenarios of opportunistic networks: what is said about bad ones, and that good ones survive being written."""

from pathlib import Path

import pytest

from serai.core.errors import BadInput, BadScenario
from serai.lab import load_scenario, new_scenario_text, parse_scenario
from serai.opportunistic.sections import OpportunisticScenario
from serai.scenario.write import to_toml

DPSP = '[protocol]\nname = "dpsp"\n'


def problems_of(text: str, **how: object) -> list[str]:
    with pytest.raises(BadScenario) as caught:
        parse_scenario(text + DPSP, "my.toml", **how)  # type: ignore[arg-type]
    return [f"{problem.where}: {problem.message}" for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("table", "written", "said"),
    [
        ("contacts", 'source = "trace"', 'contacts.source: needs the file of the trace; write file = "contacts.txt"'),
        ("contacts", 'file = "a.txt"', 'contacts.file: only used with source = "trace"'),
        ("contacts", 'gap = "5 min"', 'contacts.gap: only used with source = "trace"'),
        ("contacts", 'format = "crawdat"', 'contacts.format: unknown value "crawdat"; did you mean "crawdad"?'),
        ("movement", 'model = "levy"', 'movement.model: unknown value "levy"; did you mean "levy-walk"?'),
        ("movement", 'speed_min = "9 m/s"', "movement.speed_min: speed_min (9) is above speed_max (1.5)"),
        ("movement", 'leg_max = "5 m"', "movement.leg_max: leg_min (10) is above leg_max (5)"),
        ("movement", 'model = "levy-walk"', "movement.model: a Levy walk needs a pause_min above 0"),
        ("nodes", "count = 1", "nodes.count: must be at least 2"),
        ("nodes", "sinks = 101", "nodes.sinks: there are only 100 nodes"),
        ("nodes", 'store = "5 m"', 'nodes.store: "m" is a unit of length; a size is needed, such as "10 kB"'),
        ("nodes", 'store = "3 bit"', "nodes.store: must be a whole number of bytes"),
        ("radio", 'rate = "0 bps"', "radio.rate: must be more than 0 bps"),
        ("channels", "each = 101", "channels.each: there are only 100 channels to subscribe to"),
        ("bundles", 'size_max = "10 B"', "bundles.size_max: size_min (1,000 byte) is above size_max (10 byte)"),
        ("bundles", 'quiet = "3 h"', "bundles.quiet: quiet (10800 s) is as long as the run (7200 s)"),
        ("bundles", 'interval = "1 ms"', None),
        ("subscriptions", 'where = "A1 <"', "subscriptions.where: expected a number or ?, found the end"),
        ("subscriptions", 'where = "B < 3"', 'subscriptions.where: unknown attribute "B"'),
        ("events", "cells = 3", "events: only used with ranges: subscriptions.where is not set"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(table: str, written: str, said: str | None) -> None:
    if said is None:
        assert isinstance(parse_scenario(f"[{table}]\n{written}\n{DPSP}"), OpportunisticScenario)
        return
    assert any(problem.startswith(said) for problem in problems_of(f"[{table}]\n{written}\n"))


def test_what_files_say_is_not_to_be_said_again() -> None:
    text = '[contacts]\nsource = "trace"\nfile = "a.txt"\n[nodes]\ncount = 5\n'
    assert problems_of(text) == ["nodes.count: leave it out: the trace says how many nodes there are"]
    text = '[bundles]\nfile = "m.txt"\n[subscriptions]\nwhere = "A1 < 3"\n'
    assert problems_of(text) == ["subscriptions.where: a file of bundles has channels, so ranges match nothing"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'[contacts]\nsource = "trace"\nfile = "gone.txt"\n{DPSP}')
    with pytest.raises(BadScenario, match=r"contacts.file: no such file: .*gone.txt"):
        load_scenario(path)


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["movement.model=levy-walk", "movement.pause_min=1 s"],
        ["movement.model=community", "movement.homes=[3, 2]", "nodes.sources=5", "nodes.carriers=others"],
        ["subscriptions.where=A1 < ?", "events.cells=3"],
    ],
)
@pytest.mark.parametrize("name", ["dpsp", "flooding"])
def test_a_scenario_survives_being_written(name: str, overrides: list[str]) -> None:
    scenario = load_scenario(name, overrides)
    assert isinstance(scenario, OpportunisticScenario)
    written = to_toml(scenario)
    assert parse_scenario(written) == scenario
    assert to_toml(parse_scenario(written)) == written


def test_a_trace_survives_being_written() -> None:
    text = '[contacts]\nsource = "trace"\nfile = "a.txt"\nbegin = "5 s"\n[bundles]\nfile = "m.txt"\n' + DPSP
    for more in ("", '[movement]\nwidth = "5 m"\n'):
        scenario = parse_scenario(more + text)
        assert parse_scenario(to_toml(scenario)) == scenario


def test_a_new_file_explains_every_key() -> None:
    text = new_scenario_text("dpsp")
    assert "# Mean time between two publications in the whole network." in text
    assert isinstance(parse_scenario(text), OpportunisticScenario)


def test_both_built_in_worlds_are_the_same() -> None:
    dpsp, flooding = load_scenario("dpsp"), load_scenario("flooding")
    same = {"title": "", "name": "", "protocol": None}
    assert dpsp.model_copy(update=same) == flooding.model_copy(update=same)


def test_a_protocol_of_the_field_is_refused_here() -> None:
    with pytest.raises(BadInput, match="networks of another kind"):
        load_scenario("dpsp", protocol="ced")
