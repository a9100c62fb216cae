"""Events and subscriptions of files: a world written to files is the same, and wanted is what the definition says."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import serai
from serai.core.content import matches
from serai.core.errors import BadInput, BadScenario
from serai.field.simulation import build_world, check_files_field
from serai.lab import load_scenario, parse_scenario
from serai.scenario.write import to_toml
from serai.world.grid import Grid
from tests.field.wishes import as_recorded
from tests.field.worlds import Case, Shape, fill, make_case, shapes

DRAWN = """\
duration = "20 min"
[field]
width = "100 m"
height = "80 m"
cells = [8, 6]
[sensors]
count = 12
[[subscribers]]
name = "rangers"
count = 3
[[subscribers]]
name = "bus"
count = 1
only_carries = true
[events]
interval = "50 s"
[events.attributes]
A1 = {low = 0, high = 10}
A2 = {kind = "integer", low = 0, high = 5}
[subscriptions]
where = ["A1 < ? and A2 >= ?", "A2 = ?"]
"""
FILES = '[events]\nfile = "readings.csv"\n[subscriptions]\nfile = "wishes.csv"\n'


def written(folder: Path, seed: int) -> Path:
    """What is drawn under a seed, as files of events and subscriptions, and a scenario that names them."""
    world = build_world(parse_scenario(DRAWN), seed)
    with (folder / "readings.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["time", "sensor", *world.attribute_names])
        for sensor, time_s, values in zip(world.event_sensor, world.event_time_s, world.event_values, strict=True):
            rows.writerow([repr(float(time_s)), world.sensor_names[sensor], *map(repr, values.tolist())])
    with (folder / "wishes.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["subscriber", "where", "from", "until"])
        rows.writerows([name, text, "", ""] for name, text in zip(world.people.names, world.where, strict=True) if text)
    (folder / "mine.toml").write_text(DRAWN.partition("[events]")[0] + FILES)
    return folder / "mine.toml"


@pytest.mark.parametrize("protocol", ["dg", "ced", "cet", "cet-plus", "serai"])
def test_a_drawn_world_read_from_files_is_the_same_run(tmp_path: Path, protocol: str) -> None:
    mine = written(tmp_path, 3)
    drawn = serai.simulate(parse_scenario(DRAWN).with_protocol(protocol), seed=3, full_log=True)
    read = serai.simulate(load_scenario(mine, protocol=protocol), seed=3, full_log=True)
    told, ours = drawn.tables, read.tables
    assert told.keys() == ours.keys()
    for name, table in told.items():
        assert table.equals(ours[name]), name
    assert serai.measure(drawn, upper_bound=True) == serai.measure(read, upper_bound=True)


def test_a_run_from_files_is_kept_and_read_back(tmp_path: Path) -> None:
    mine = written(tmp_path, 1)
    with (tmp_path / "wishes.csv").open("a") as file:
        file.write("rangers-0,A1 > 8 or A2 = 0,200,900\nrangers-1,A1 > 9,,\n")
    run = serai.simulate(load_scenario(mine), seed=1, full_log=True)
    serai.write_run(run, tmp_path / "kept")
    again = serai.read_run(tmp_path / "kept")
    assert np.array_equal(again.world.event_values, run.world.event_values)
    assert np.array_equal(again.world.low, run.world.low)
    assert again.metrics == run.metrics
    assert len(run.tables["subscriptions"]) == 6  # or: two boxes
    for name, table in run.tables.items():
        assert table.equals(again.tables[name]), name


def test_the_log_has_the_texts_of_readings(tmp_path: Path) -> None:
    mine = written(tmp_path, 1)
    with (tmp_path / "readings.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    sites = ["", "São", "north", "a,b"]
    rows = sorted(([*row, sites[n % 4]] for n, row in enumerate(rows)), key=lambda row: float(row[0]))
    with (tmp_path / "readings.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[*head, "site"], *rows])
    with (tmp_path / "wishes.csv").open("a") as file:
        file.write("rangers-0,site = 'São',,\n")
    run = serai.simulate(load_scenario(mine), seed=1)
    place = serai.write_run(run, tmp_path / "kept")
    assert serai.read_run(place).texts == run.texts == {"site": ("São", "a,b", "north")}
    events = pq.ParquetFile(place / "events.parquet").read()
    texts = json.loads(events.schema.metadata[b"texts"])["site"]
    told = ["" if math.isnan(values[2]) else texts[int(values[2])] for values in events["values"].to_pylist()]
    assert told == [row[-1] for row in rows]
    assert json.loads((place / "run.json").read_text())["texts"] == {"site": texts}
    assert "texts" not in serai.simulate(load_scenario(written(tmp_path, 1)), seed=1).description()


def test_wanted_is_what_the_log_says(tmp_path: Path) -> None:
    """From the tables alone, pair by pair, as docs/log.md defines it."""
    mine = written(tmp_path, 2)
    (tmp_path / "wishes.csv").write_text(
        "subscriber,where,from,until\nrangers,A1 < 2,100,300\nrangers-0,A2 = 3,,\nrangers-2,A1 >= 9 or A2 != 2,500,\n"
    )
    run = serai.simulate(load_scenario(mine, {"events.lifetime": "5 min"}), seed=2)
    tables, pairs = run.tables, set()
    for event in tables["events"].to_pylist():
        for asked in tables["subscriptions"].to_pylist():
            alive = max(event["time_s"], asked["from_s"]) < min(event["time_s"] + event["lifetime_s"], asked["to_s"])
            if alive and matches(event["values"], np.array(asked["low"]), np.array(asked["high"])):
                pairs.add((event["event"], asked["node"]))
    assert run.metrics.wanted_pairs == len(pairs)
    received = {(row["event"], row["node"]): row["wanted"] for row in tables["deliveries"].to_pylist()}
    assert all((pair in pairs) == wanted for pair, wanted in received.items())


@given(shapes(), st.sampled_from([5.0, 40.0, 1000.0]))
def test_marks_are_the_plain_definition(shape: Shape, lifetime_s: float) -> None:
    plain = fill(shape)
    if not shape.subscribers:
        return
    world = as_recorded(plain, shape.slots, shape.seed, lifetime_s)
    wishes = world.wishes
    assert wishes is not None
    for event, (born_s, values) in enumerate(zip(plain.event_time_s, plain.event_values, strict=True)):
        for subscriber in range(len(world.low)):
            wanted = any(
                wishes.node[row] == subscriber
                and matches(values, wishes.low[row], wishes.high[row])
                and max(born_s, wishes.from_s[row]) < min(born_s + lifetime_s, wishes.until_s[row])
                for row in range(len(wishes.node))
            )
            assert matches(world.event_values[event], world.low[subscriber], world.high[subscriber]) == wanted


def test_the_cases_have_subscriptions_of_all_kinds() -> None:
    """Random worlds of the twins: some subscribers have marks, and some nothing to ask for."""
    shape = Shape(Grid(60.0, 40.0, 6, 4), 60, 5, 4, 60, 1, "trails", True, 5, recorded=True)
    case: Case = make_case("ced", shape, {}, {}, 1)
    assert case.world.event_values.shape[1] > len(case.world.attribute_names)
    assert case.world.people.carries.any()
    assert math.isfinite(float(case.world.contents.sum()))


def test_files_stand_in_what_is_written(tmp_path: Path) -> None:
    scenario = load_scenario(written(tmp_path, 1), {"events.every": "30 s", "events.on_change": {"A1": 2.5}})
    (tmp_path / "again.toml").write_text(to_toml(scenario))
    assert load_scenario(tmp_path / "again.toml").model_dump() == scenario.model_dump()
    fewer, all_of_them = build_world(scenario, 1), build_world(load_scenario(tmp_path / "mine.toml"), 1)
    assert 0 < len(fewer.event_sensor) < len(all_of_them.event_sensor)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('events.interval="3 s"', "events.interval: leave it out: the file says what happens"),
        ('subscriptions.where="A1 < 3"', "subscriptions.where: either texts or a file of subscriptions, not both"),
        ('subscribers.rangers.where="A1 < 3"', "leave it out: the file of subscriptions says who asks for what"),
        ("events.on_change={A1 = -1}", "a change is at least 0, not -1"),
    ],
)
def test_what_does_not_stand_beside_files(tmp_path: Path, change: str, said: str) -> None:
    mine = written(tmp_path, 1)
    with pytest.raises(BadScenario) as caught:
        load_scenario(mine, [change])
    assert said in str(caught.value)


def test_thinning_needs_a_file() -> None:
    with pytest.raises(BadScenario, match="only used with a file of events"):
        parse_scenario('[events]\nevery = "3 s"')


def test_what_files_cannot_say(tmp_path: Path) -> None:
    mine = written(tmp_path, 1)
    (tmp_path / "wishes.csv").write_text("subscriber,where\nbus,A1 < 3\n")
    with pytest.raises(BadInput, match="only_carries says that they do not"):
        check_files_field(load_scenario(mine))
    (tmp_path / "wishes.csv").write_text("subscriber,where\nrangers,A3 < 3\n")
    with pytest.raises(BadInput, match='line 2: where: unknown attribute "A3"'):
        check_files_field(load_scenario(mine))
    (tmp_path / "wishes.csv").write_text("subscriber,where,from\nrangers,A1 < 3,2026-05-04\n")
    with pytest.raises(BadInput, match="nothing says when the run begins; write begin"):
        check_files_field(load_scenario(mine))
    with pytest.raises(BadInput, match="the events of a file end with it"):
        serai.simulate(load_scenario(mine), seed=1, until_death=True)
    assert not list(tmp_path.glob("kept*"))
