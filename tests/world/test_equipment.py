"""What a file of sensors says of each one's battery and so on: as it is meant, or one line that says why not."""

import json
from pathlib import Path
from typing import Any

import pytest

from serai.core.errors import BadInput
from serai.world.grid import Grid
from serai.world.positions import Listed, read_positions, read_sensors

FIELD = Grid(200.0, 100.0, 15, 15)


def read(folder: Path, header: str, *rows: str) -> Listed:
    path = folder / "sensors.csv"
    path.write_text("\n".join([header, *rows]), encoding="utf-8")
    return read_sensors(path, FIELD)


def geojson(folder: Path, *properties: dict[str, Any]) -> Path:
    features = [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [11.0, 48.0]}, "properties": said}
        for said in properties
    ]
    path = folder / "sensors.geojson"
    path.write_text(json.dumps({"type": "FeatureCollection", "features": features}), encoding="utf-8")
    return path


def test_columns_of_a_csv(tmp_path: Path) -> None:
    rows = "gate,1,2,20 J,15 min,50,60 m,60 uW", "pond,3,4,,,,,", "oak,5,6, 2 kJ ,0.5 s,1000000,1 km,0 W"
    own = read(tmp_path, "id,x,y,Battery,interval,QUEUE,range,idle", *rows).own
    assert own.battery_j == (20.0, None, 2000.0)
    assert own.interval_s == (900.0, None, 0.5)
    assert own.queue == (50, None, 1_000_000)
    assert own.range_m == (60.0, None, 1000.0)
    assert own.idle_w == (60e-6, None, 0.0)
    assert own.places == ("line 2", "line 3", "line 4")


def test_properties_of_a_geojson(tmp_path: Path) -> None:
    path = geojson(tmp_path, {"battery": "20 J", "queue": 50}, {"queue": "7", "Range": "60 m"}, {"battery": None})
    own = read_sensors(path, FIELD).own
    assert (own.battery_j, own.queue, own.range_m) == ((20.0, None, None), (50, 7, None), (None, 60.0, None))
    assert own.places == ("feature 1", "feature 2", "feature 3")


def test_harvest_by_the_hour(tmp_path: Path) -> None:
    rows = "gate,1,2,2 mW", "pond,3,4,", "oak,5,6,6-8: 2 mW; 20-21: 0.5 mW"
    sun = tuple({6: 2e-3, 7: 2e-3, 20: 0.5e-3}.get(hour, 0.0) for hour in range(24))
    assert read(tmp_path, "id,x,y,harvest", *rows).own.harvest_w == ((2e-3,) * 24, None, sun)
    path = geojson(tmp_path, {"harvest": {"6-8": "2 mW", "20-21": "0.5 mW"}}, {"harvest": ["2 mW"] * 24}, {})
    assert read_sensors(path, FIELD).own.harvest_w == (sun, (2e-3,) * 24, None)


def test_other_columns_are_ignored_and_other_files_have_none(tmp_path: Path) -> None:
    own = read(tmp_path, "id,x,y,colour,batteries", "gate,1,2,red,many").own
    assert own == own.nothing(("line 2",))
    path = tmp_path / "places.csv"
    path.write_text("id,x,y,battery\nstop,1,2,flat\n", encoding="utf-8")
    assert read_positions(path, FIELD)[0] == ["stop"]  # of a route, where batteries are nobody's business


@pytest.mark.parametrize(
    ("column", "written", "problem"),
    [
        ("battery", "20", 'an energy needs a unit; write "20 J"'),
        ("battery", "20 m", '"m" is a unit of length; an energy is needed, such as "10 J"'),
        ("battery", "full", '"full" is not an energy; write it like "10 J"'),
        ("battery", "nan J", '"nan J" is not an energy; write it like "10 J"'),
        ("battery", "-1 J", '"-1 J" is not above 0 and at most 9 MJ'),
        ("battery", "0 J", '"0 J" is not above 0 and at most 9 MJ'),
        ("battery", "10 MWh", 'unknown unit "MWh"; did you mean "mWh"?'),
        ("battery", "9001 kJ", '"9001 kJ" is not above 0 and at most 9 MJ'),
        ("interval", "5", 'a time needs a unit; write "5 h"'),
        ("interval", "0 s", '"0 s" is not above 0 and at most 1e12 s'),
        ("interval", "1e400 s", "1e400 is too large"),
        ("idle", "60", 'a power needs a unit; write "60 mW"'),
        ("idle", "60 uJ", '"uJ" is a unit of energy; a power is needed, such as "2 mW"'),
        ("idle", "-1 uW", '"-1 uW" is not between 0 and 1000 W'),
        ("idle", "2 kW", '"2 kW" is not between 0 and 1000 W'),
        ("idle", "inf W", '"inf W" is not a power; write it like "2 mW"'),
        ("harvest", "60", 'a power needs a unit; write "60 mW"'),
        ("harvest", "2 kW", '"2 kW" is not between 0 and 1000 W'),
        ("harvest", "6-18: 2 mW; 8-9: 1 mW", "the hour from 8 to 9 is there twice"),
        ("harvest", "18-6.5: 2 mW", '"18-6.5" is not a span of hours; write it like "6-18", from 0 to 24'),
        ("queue", "0", '"0" is not a whole number from 1 to 1,000,000'),
        ("queue", "-3", '"-3" is not a whole number from 1 to 1,000,000'),
        ("queue", "2.5", '"2.5" is not a whole number from 1 to 1,000,000'),
        ("queue", "1000001", '"1000001" is not a whole number from 1 to 1,000,000'),
        ("queue", "many", '"many" is not a whole number from 1 to 1,000,000'),
        ("range", "60", 'a length needs a unit; write "60 m"'),
        ("range", "-60 m", '"-60 m" is not above 0 and at most 10,000 km'),
    ],
)
def test_what_cannot_be_used_is_told_with_its_line(tmp_path: Path, column: str, written: str, problem: str) -> None:
    with pytest.raises(BadInput) as error:
        read(tmp_path, f"id,x,y,{column}", "gate,1,2,", f"pond,3,4,{written}")
    assert str(error.value) == f"{tmp_path / 'sensors.csv'}: line 3: {column}: {problem}"


def test_everything_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadInput) as error:
        read_sensors(geojson(tmp_path, {"battery": 20, "queue": True}, {"range": ["1 m"], "queue": 1.0}), FIELD)
    assert [line.partition(": ")[2] for line in str(error.value).splitlines()] == [
        'feature 1: battery: an energy needs a unit; write "20 J"',
        "feature 1: queue: true is not a whole number from 1 to 1,000,000",
        "feature 2: queue: 1.0 is not a whole number from 1 to 1,000,000",
        'feature 2: range: expected a length such as "200 m"',
    ]
