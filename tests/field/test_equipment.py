"""Sensors that differ: what their file says of them is what they have, in the world, in a run and in its log."""

from pathlib import Path

import numpy as np
import pytest

import serai
from serai.core.errors import BadInput
from serai.field.log import FieldRun
from serai.field.sections import FieldScenario
from serai.field.simulation import build_world

IN_METRES = 'range = "60 m"'
HEADER = "id,x,y,battery,interval,queue,range\n"
ROWS = "gate,10,10,20 mJ,1 h,,80 m\npond,50,10,,,3,30 m\noak,90,10,,2 s,,\n"


def scenario(folder: Path, text: str = HEADER + ROWS, radio: str = IN_METRES, more: str = "") -> FieldScenario:
    """Three sensors in a row, 40 m apart."""
    (folder / "sensors.csv").write_text(text, encoding="utf-8")
    path = folder / "mine.toml"
    path.write_text(
        'title = "mine"\nduration = "1000 s"\n[field]\nwidth = "100 m"\nheight = "20 m"\n'
        f'[sensors]\nplacement = "file"\nfile = "sensors.csv"\n{more}\n[subscribers]\ncount = 4\n[radio]\n{radio}\n',
        encoding="utf-8",
    )
    loaded = serai.load_scenario(path)
    assert isinstance(loaded, FieldScenario)
    return loaded


def test_each_has_what_its_file_says_and_relays_what_all_have(tmp_path: Path) -> None:
    world = build_world(scenario(tmp_path, more="relays = [[95, 15]]"), 1)
    assert world.battery_j.tolist() == [0.02, 10.0, 10.0, 10.0]
    assert world.queue is not None
    assert world.queue.tolist() == [200, 3, 200, 200]
    assert world.ranges is not None
    assert world.ranges.sensors_m.tolist() == [80.0, 30.0, 60.0, 60.0]
    # A link needs both ends: the pond hears nobody, though gate and oak would hear it.
    assert world.communities.of_sensor.tolist() == [0, 1, 2, 2]
    assert world.ranges.passing_m.tolist() == [60.0, 30.0, 60.0, 60.0]


def test_intervals_leave_the_others_events_alone(tmp_path: Path) -> None:
    texts = HEADER + ROWS, "id,x,y\ngate,10,10\npond,50,10\n"
    own, alike = (build_world(scenario(tmp_path, text), 1) for text in texts)
    born = np.bincount(own.event_sensor, minlength=3)
    assert born[0] <= 3
    assert abs(born[2] - 400) < 80
    of_the_pond = [world.event_time_s[world.event_sensor == 1].tolist() for world in (own, alike)]
    assert of_the_pond[0] == of_the_pond[1]


def test_a_run_comes_back_from_its_folder(tmp_path: Path) -> None:
    run = serai.simulate(scenario(tmp_path), seed=1, full_log=True)
    serai.write_run(run, tmp_path / "out")
    back = serai.read_run(tmp_path / "out")
    assert isinstance(run, FieldRun)
    assert isinstance(back, FieldRun)
    assert back.world.battery_j.tolist() == run.world.battery_j.tolist()
    assert back.world.queue is not None
    assert back.world.queue.tolist() == [200, 3, 200]
    assert back.world.ranges is not None
    assert back.world.ranges.sensors_m.tolist() == [80.0, 30.0, 60.0]
    assert serai.measure(back) == serai.measure(run)


@pytest.mark.parametrize(
    ("text", "radio", "problem"),
    [
        (
            "id,x,y,range\na,1,1,\nb,2,2,5 m\n",
            "",
            'line 3: range: only with reach in metres: write radio.range = "60 m", or leave it out',
        ),
        ("id,x,y,interval\na,1,1,1e-9 s\n", "", "about 8e+11 events would be born; at most 1,000,000,000 are possible"),
    ],
)
def test_what_does_not_fit_the_scenario(tmp_path: Path, text: str, radio: str, problem: str) -> None:
    loaded = scenario(tmp_path, text, radio=radio)
    with pytest.raises(BadInput) as error:
        build_world(loaded, 1)
    assert str(error.value) == f"{tmp_path / 'sensors.csv'}: {problem}"
