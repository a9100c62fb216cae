"""Events and subscriptions of files in an overlay."""

from pathlib import Path

import pytest

import serai
from serai.core.errors import BadInput, BadScenario
from serai.kinds import kind_of
from serai.lab import load_scenario, parse_scenario
from serai.overlay.log import OverlayRun
from serai.scenario.write import to_toml

DRAWN = """\
[nodes]
count = 60
placement = "grid"
[field]
width = "100 m"
height = "60 m"
[roots]
count = 2
[events]
count = 200
[subscriptions]
count = 15
where = ["A1 < ? and A2 >= ?", "A2 < 0.5"]
[protocol]
name = "tinymq"
"""
ATTRIBUTES = "[events.attributes]\nA1 = {low = 0, high = 1}\nA2 = {low = 0, high = 1}\n"
FILES = DRAWN.partition("[events]")[0] + '[events]\nfile = "e.csv"\n' + ATTRIBUTES + '[subscriptions]\nfile = "s.csv"\n'
FILES += '[protocol]\nname = "tinymq"\n'


def written(folder: Path, run: OverlayRun) -> Path:
    network = run.network
    events = enumerate(zip(network.publisher, network.values.tolist(), strict=True))
    rows = [f"{n},{network.names[who]},x,{a!r},{b!r}" for n, (who, (a, b)) in events]
    (folder / "e.csv").write_text("\n".join(["time,sensor,note,A1,A2", *rows]))
    asked = [f"{network.names[who]},{text}" for who, text in zip(network.subscriber, network.where, strict=True)]
    (folder / "s.csv").write_text("\n".join(["subscriber,where", *asked]))
    (folder / "mine.toml").write_text(FILES)
    return folder / "mine.toml"


@pytest.mark.parametrize("protocol", ["tinymq", "pub2sub"])
def test_a_drawn_network_read_from_files_is_the_same_run(tmp_path: Path, protocol: str) -> None:
    drawn = serai.simulate(parse_scenario(DRAWN, protocol=protocol), seed=2, full_log=True)
    assert isinstance(drawn, OverlayRun)
    mine = written(tmp_path, drawn)
    read = serai.simulate(load_scenario(mine, protocol=protocol), seed=2, full_log=True)
    for name, table in drawn.tables.items():
        assert table.equals(read.tables[name]), name
    assert read.metrics == drawn.metrics
    serai.write_run(read, tmp_path / "kept")
    assert serai.read_run(tmp_path / "kept").metrics == drawn.metrics
    (tmp_path / "again.toml").write_text(to_toml(load_scenario(mine)))
    assert load_scenario(tmp_path / "again.toml").model_dump() == load_scenario(mine).model_dump()


def refusal(folder: Path, events: str, asked: str) -> str:
    (folder / "mine.toml").write_text(FILES)
    (folder / "e.csv").write_text(events)
    (folder / "s.csv").write_text(asked)
    scenario = load_scenario(folder / "mine.toml")
    with pytest.raises(BadInput) as caught:
        kind_of(scenario).check_files(scenario)
    return str(caught.value).replace(f"{folder}/", "")


GOOD, ASKED = "time,sensor,A1,A2\n0,s1,0.5,1\n", "subscriber,where\ns0,A1 < 1\n"


@pytest.mark.parametrize(
    ("events", "asked", "said"),
    [
        ("time,sensor,A1\n0,s1,0.5\n", ASKED, "e.csv: no column A2, which events.attributes has; one of: A1"),
        ("time,sensor,A1,A2\n0,s1,0.5,a\n", ASKED, "A2 holds texts"),
        (GOOD + "1,s2,,7\n", ASKED, "e.csv: line 3: A1 is missing; events.attributes says 0 to 1"),
        (GOOD + "1,s2,,7\n", ASKED, "e.csv: line 3: A2 is 7; events.attributes says 0 to 1"),
        (GOOD, "subscriber,where,until\ns0,A1 < 1,9\n", "s.csv: an overlay has no time; leave out from and until"),
        (GOOD, "subscriber,where\ns0,A1 < 1 or A2 > 0.5\n", "write a row for each of the alternatives"),
        (GOOD, "subscriber,where\nboat,A1 < 1\n", 's.csv: line 2: nobody is called "boat"'),
    ],
)
def test_what_an_overlay_cannot_take(tmp_path: Path, events: str, asked: str, said: str) -> None:
    assert said in refusal(tmp_path, events, asked)


@pytest.mark.parametrize("change", ["events.count=3", "subscriptions.count=3", "subscriptions.widest=0.5"])
def test_what_does_not_stand_beside_files(tmp_path: Path, change: str) -> None:
    (tmp_path / "e.csv").write_text(GOOD)
    (tmp_path / "s.csv").write_text(ASKED)
    (tmp_path / "mine.toml").write_text(FILES)
    with pytest.raises(BadScenario, match="leave it out"):
        load_scenario(tmp_path / "mine.toml", [change])
