"""Readings and subscriptions of files in opportunistic networks: the files of a field, and exactly what they ask."""

import csv
from pathlib import Path

import numpy as np
import pytest

import serai
from serai.core.conditions import Kind, read_conditions, wanted
from serai.core.errors import BadInput, BadScenario
from serai.kinds import kind_of
from serai.lab import load_scenario, parse_scenario
from serai.opportunistic.log import OpportunisticRun
from serai.scenario.write import to_toml

DRAWN = """\
duration = "30 min"
[movement]
width = "150 m"
height = "150 m"
[nodes]
count = 12
[radio]
rate = "1000 Mbps"
[bundles]
interval = "30 s"
lifetime = "10 min"
[subscriptions]
where = ["A1 < ? and A2 < ?", "A1 >= ?"]
[protocol]
name = "flooding"
"""
FILES = DRAWN.replace('interval = "30 s"\n', "").replace(
    'where = ["A1 < ? and A2 < ?", "A1 >= ?"]', 'file = "wishes.csv"'
)
FILES += '[events]\nfile = "readings.csv"\n'
WISHES = """\
subscriber,where,from,until
n0,A1 < 5 or site = 'b',,
n0,A2 > 9,300,900
n1,not A1 < 5,600,
n2,"site in ('a', 'b')",,700
"""
KINDS: dict[str, Kind] = {"A1": "real", "A2": "real", "site": "text"}


def drawn_run(seed: int, protocol: str = "flooding") -> OpportunisticRun:
    return serai.simulate(parse_scenario(DRAWN, protocol=protocol), seed=seed)  # type: ignore[return-value]


def write_readings(folder: Path, run: OpportunisticRun) -> list[dict[str, str]]:
    """The bundles of a run as readings, with a text besides."""
    rows = [
        {"time": repr(float(time_s)), "sensor": run.names[source], "A1": repr(a), "A2": repr(b), "site": "abc"[n % 3]}
        for n, (time_s, source, (a, b)) in enumerate(
            zip(run.world.bundles.created_s, run.world.bundles.source, run.published.values.tolist(), strict=True)
        )
    ]
    with (folder / "readings.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    (folder / "mine.toml").write_text(FILES)
    return rows


@pytest.mark.parametrize("seed", [1, 2])
def test_a_drawn_world_read_from_files_is_the_same_run(tmp_path: Path, seed: int) -> None:
    """Flooding brings everything everywhere, and the radio is so fast that it does not matter what goes first."""
    drawn = drawn_run(seed)
    write_readings(tmp_path, drawn)
    rows = zip(drawn.wanted.sinks.tolist(), drawn.wanted.where, strict=True)
    (tmp_path / "wishes.csv").write_text(
        "subscriber,where\n" + "".join(f"{drawn.names[n]},{text}\n" for n, text in rows)
    )
    read = serai.simulate(load_scenario(tmp_path / "mine.toml"), seed=seed)
    ours, theirs = ({(bundle, node): delay_s for bundle, node, delay_s in pairs(run)} for run in (read, drawn))
    assert ours.keys() == theirs.keys()
    assert all(abs(ours[pair] - theirs[pair]) < 0.1 for pair in ours)
    assert len(ours) > 50
    for metric in ("wanted_pairs", "delivered_pairs", "transfers_relayed"):
        assert getattr(read.metrics, metric) == getattr(drawn.metrics, metric), metric


def pairs(run: OpportunisticRun) -> list[tuple[int, int, float]]:
    from serai.opportunistic.pairs import delivered_pairs

    found = delivered_pairs(run)
    return list(zip(found.bundle.tolist(), found.node.tolist(), found.delay_s.tolist(), strict=True))


@pytest.mark.parametrize("protocol", ["dpsp", "flooding", "direct", "prophet"])
def test_wanted_is_what_the_definition_says(tmp_path: Path, protocol: str) -> None:
    rows = write_readings(tmp_path, drawn_run(3))
    (tmp_path / "wishes.csv").write_text(WISHES)
    run = serai.simulate(load_scenario(tmp_path / "mine.toml", protocol=protocol), seed=3)
    asked = list(csv.DictReader((tmp_path / "wishes.csv").read_text().splitlines()))
    expected = set()
    for number, row in enumerate(rows):
        born_s, values = float(row["time"]), {"A1": float(row["A1"]), "A2": float(row["A2"]), "site": row["site"]}
        for wish in asked:
            from_s, until_s = float(wish["from"] or "-inf"), float(wish["until"] or "inf")
            holds = max(born_s, from_s) < min(born_s + 600, until_s)
            own = row["sensor"] == wish["subscriber"]
            if holds and not own and wanted(read_conditions(wish["where"], KINDS), values):
                expected.add((number, wish["subscriber"]))
    assert run.metrics.wanted_pairs == len(expected)
    delivered = {(bundle, run.names[node]) for bundle, node, _ in pairs(run)}
    assert delivered <= expected
    assert delivered
    serai.write_run(run, tmp_path / "kept")
    assert serai.read_run(tmp_path / "kept").metrics == run.metrics


def test_files_stand_in_what_is_written(tmp_path: Path) -> None:
    write_readings(tmp_path, drawn_run(1))
    (tmp_path / "wishes.csv").write_text(WISHES)
    scenario = load_scenario(tmp_path / "mine.toml", {"events.every": "5 min"})
    (tmp_path / "again.toml").write_text(to_toml(scenario))
    assert load_scenario(tmp_path / "again.toml").model_dump() == scenario.model_dump()
    fewer = serai.simulate(scenario, seed=1)
    assert len(fewer.world.bundles.source) < 60
    apart = [np.diff(fewer.world.bundles.created_s[fewer.world.bundles.source == node]) for node in range(12)]
    assert min(gaps.min() for gaps in apart if len(gaps)) >= 300


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('bundles.interval="3 s"', "bundles.interval: leave it out: the file of events says it"),
        ("events.cells=3", "events.cells: leave it out"),
        ("channels.each=3", "channels.each: leave it out"),
        ('events.attributes={A1 = {low = 0, high = 1}}', "events.attributes: leave it out"),
    ],
)  # fmt: skip
def test_what_does_not_stand_beside_files(tmp_path: Path, change: str, said: str) -> None:
    write_readings(tmp_path, drawn_run(1))
    (tmp_path / "wishes.csv").write_text(WISHES)
    with pytest.raises(BadScenario) as caught:
        load_scenario(tmp_path / "mine.toml", [change])
    assert said in str(caught.value)


def test_files_are_checked(tmp_path: Path) -> None:
    write_readings(tmp_path, drawn_run(1))
    (tmp_path / "wishes.csv").write_text("subscriber,where\nn99,A1 < 3\nn1,A3 < 3\n")
    scenario = load_scenario(tmp_path / "mine.toml")
    with pytest.raises(BadInput) as caught:
        kind_of(scenario).check_files(scenario)
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == ["line 2", "line 3"]
    with pytest.raises(BadScenario, match=r"needs subscriptions\.file"):
        parse_scenario('[protocol]\nname = "dpsp"\n[events]\nfile = "r.csv"\n')
