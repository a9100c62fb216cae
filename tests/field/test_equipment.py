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


SUNNY = "id,x,y,battery,idle,harvest\ngate,10,10,2 J,10 mW,\npond,50,10,1 J,10 mW,13-14: 15 mW\noak,90,10,1 J,,1 mW\n"
FROM_NOON = 'harvest = {"12-13" = "8 mW"}\nwake = 0.2'


def test_what_the_sun_brings_comes_back_from_a_folder(tmp_path: Path) -> None:
    loaded = scenario(tmp_path, SUNNY, more=FROM_NOON).model_copy(update={"begin": 20 * 86_400 + 45_900.0})
    run = serai.simulate(loaded, seed=1, full_log=True)
    assert isinstance(run, FieldRun)
    assert run.world.harvest is not None
    assert run.world.harvest.since_midnight_s == 45_900  # a quarter to one
    assert run.world.harvest.watts[:, 12:14].tolist() == [[8e-3, 0.0], [0.0, 15e-3], [1e-3, 1e-3]]
    # The gate loses 2 mW, then 10 mW: after 900 s there are 200 mJ of 2 J, for 20 s. The pond's joule is gone after
    # 100 s; at one it begins to get 15 mJ a second, and 200 mJ are there after 14.
    assert run.ledger.naps is not None
    assert [column.tolist() for column in run.ledger.naps] == [[1], [99], [913]]
    assert run.ledger.died[1:].tolist() == [-1, -1]
    assert run.ledger.died[0] in (918, 919)  # it has sent something, too
    serai.write_run(run, tmp_path / "out")
    back = serai.read_run(tmp_path / "out")
    assert back == run
    assert serai.measure(back) == serai.measure(run)
    assert serai.measure(run).wakings == 1


def test_until_the_first_death_by_night_or_never(tmp_path: Path) -> None:
    """Two hours of sun at 20 mW keep the battery full; then 60 J last 6000 s at 10 mW. With 11 mW they always last."""
    sunny = 'battery = "60 J"\nidle = "10 mW"\nharvest = '
    run = serai.simulate(scenario(tmp_path, "id,x,y\ngate,10,10\n", more=sunny + '{"0-2" = "20 mW"}'), until_death=True)
    assert isinstance(run, FieldRun)
    assert run.ledger.ended_s == pytest.approx(13_200, abs=5)  # events cost a little, too
    with pytest.raises(BadInput) as error:
        serai.simulate(scenario(tmp_path, "id,x,y\ngate,10,10\n", more=sunny + '"11 mW"'), until_death=True)
    assert str(error.value) == "until death: with what they harvest no sensor is seen to die"


def test_a_battery_and_all_that_it_will_harvest_can_be_counted(tmp_path: Path) -> None:
    text = 'battery = "9000 kJ"\nharvest = "1 W"'
    in_file = "id,x,y,battery,harvest\ngate,10,10,9000 kJ,1 W\n"
    problem = (
        "the battery of a sensor and what it harvests in the whole run come to 9.001 MJ;"
        " at most 9 MJ can be counted: less power, or a shorter duration"
    )
    file = tmp_path / "sensors.csv"
    for loaded, where in (
        (scenario(tmp_path, HEADER + ROWS, more=text), "sensors.harvest"),
        (scenario(tmp_path, in_file), file),
    ):
        file.write_text(in_file if where == file else HEADER + ROWS, encoding="utf-8")
        with pytest.raises(BadInput) as error:
            build_world(loaded, 1)
        assert str(error.value) == f"{where}: {problem}"


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
