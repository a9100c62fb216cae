"""Groups of subscribers in a scenario: what can be said, how a group is addressed, and what is refused."""

import itertools
import tomllib
from pathlib import Path

import numpy as np
import pytest

from serai.core.errors import BadInput, BadScenario
from serai.field.simulation import build_world
from serai.lab import load_scenario, parse_scenario
from serai.scenario.write import to_toml
from serai.sweeping.plan import plan_sweep

GROUPS = """\
duration = "10 min"

[[subscribers]]
name = "rangers"
count = 3
where = "A1 < 5"

[[subscribers]]
name = "bus"
count = 2
only_carries = true
repeat = "5 min"
[subscribers.route]
way = [[0, 10], [100, 10], [100, 60]]
speed = "10 m/s"
stops = {}
departures = ["1 min"]
apart = "10 s"
"""
GPX = """\
<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">
  <trk><name>fox</name><trkseg>
    <trkpt lat="48.0000" lon="11.0000"><time>2026-05-01T08:00:00Z</time></trkpt>
    <trkpt lat="48.0010" lon="11.0000"><time>2026-05-01T08:01:40Z</time></trkpt>
  </trkseg></trk>
</gpx>
"""


def problem_of(text: str, *changes: str) -> str:
    with pytest.raises(BadScenario) as caught:
        parse_scenario(text, "my.toml", changes)
    return str(caught.value).split("\n")[0]


# ---- what is written


def test_one_table_is_what_it_was() -> None:
    one, listed = parse_scenario("[subscribers]\ncount = 4"), parse_scenario("[[subscribers]]\ncount = 4")
    assert one == listed
    assert one.subscribers.count == 4
    assert tomllib.loads(to_toml(one))["subscribers"]["count"] == 4
    world = build_world(one, 1)
    assert world.people.names == tuple(f"subscriber-{number}" for number in range(4))


def test_groups_are_written_and_read_again() -> None:
    scenario = parse_scenario(GROUPS)
    assert [group.name for group in scenario.groups] == ["rangers", "bus"]
    assert parse_scenario(to_toml(scenario)) == scenario
    assert "3 rangers, 2 bus" in scenario.in_one_line()


def test_a_group_is_addressed_by_its_name() -> None:
    scenario = parse_scenario(GROUPS, overrides=["subscribers.bus.count=5", "subscribers.bus.route.speed=5 m/s"])
    assert [group.count for group in scenario.groups] == [3, 5]
    assert scenario.groups[1].route.speed_mps == 5.0
    single = parse_scenario('[subscribers]\nname = "rangers"', overrides=["subscribers.rangers.count=2"])
    assert single.subscribers.count == parse_scenario("", overrides=["subscribers.count=2"]).subscribers.count == 2


def test_a_group_can_be_swept() -> None:
    scenario = parse_scenario(GROUPS)
    plan = plan_sweep(scenario, {"subscribers.rangers.count": "1..3", "subscribers.bus.route.speed": "5,10 m/s"})
    assert [axis.values for axis in plan.axes] == [(1, 2, 3), ("5 m/s", "10 m/s")]
    assert [cell.scenario.groups[0].count for cell in plan.cells] == [1, 1, 2, 2, 3, 3]


# ---- the world


def test_each_group_has_streams_of_its_own() -> None:
    """More of one group, or none, leave the walks and wishes of the others as they are."""
    text = '[[subscribers]]\nname = "a"\ncount = {}\n[[subscribers]]\nname = "b"\ncount = 2\n'
    worlds = [build_world(parse_scenario(text.format(count)), 3) for count in (0, 2, 5)]
    for one, other in itertools.pairwise(worlds):
        for ours, theirs in ((one, other),):
            tracks = [world.tracks.x_m[world.tracks.start[-3] :] for world in (ours, theirs)]
            assert np.array_equal(*tracks)
            assert np.array_equal(ours.high[-2:], theirs.high[-2:])
    assert np.array_equal(worlds[1].high[:2], worlds[2].high[:2])


def test_a_route_there_and_back() -> None:
    """15 s there, departures at 60 s of each five minutes; the second one sets off 10 s later."""
    world = build_world(parse_scenario(GROUPS, overrides=["field.width=200 m"]), 1)
    start, *columns = world.tracks
    rows = [list(zip(*(column[a:b].tolist() for column in columns), strict=True)) for a, b in itertools.pairwise(start)]
    there = [(0.0, 0.0, 10.0), (60.0, 0.0, 10.0), (70.0, 100.0, 10.0), (75.0, 100.0, 60.0)]
    back = [(360.0, 100.0, 60.0), (365.0, 100.0, 10.0), (375.0, 0.0, 10.0)]
    assert rows[3] == there + back
    assert rows[4] == [there[0], *((time_s + 10, x, y) for time_s, x, y in (there + back)[1:])]
    assert world.people.names[3:] == ("bus-0", "bus-1")


def test_who_only_carries_wants_nothing() -> None:
    world = build_world(parse_scenario(GROUPS), 1)
    assert world.people.carries.tolist() == [0, 0, 0, 1, 1]
    wanted = (world.event_values >= world.low[4]) & (world.event_values <= world.high[4])
    assert not wanted.any()
    assert all(text.startswith("A1 <") for text in world.where[:3])


# ---- what is refused


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "bus"', 'name = "rangers"', 'subscribers[1].name: "rangers" is another group, too  --> my.toml:9:8'),
        ('name = "bus"\n', "", "subscribers[1].name: missing: each group needs a name of its own  --> my.toml:8:1"),
        ('name = "bus"', 'name = "count"', 'subscribers[1].name: "count" cannot be a name: letters, digits, _ and -'),
        ('speed = "10 m/s"\n', "", "subscribers[1].route.speed: missing  --> my.toml:13:1"),
        ("count = 3", 'count = 3\nturning = "3 m"', "subscribers[0].turning: only used with tracks"),
        ("count = 2", 'count = 2\nspeed_max = "3 m/s"', "subscribers[1].speed_max: only used by those who walk"),
        ("count = 2", "count = 2\nwhere = 'A1 < 2'", "subscribers[1].where: who only carries asks for nothing"),
        ('"A1 < 5"', '"A9 < 5"', 'subscribers[0].where: unknown attribute "A9"; one of: A1, A2  --> my.toml:6:10'),
        ("way = [[0, 10], [100, 10], [100, 60]]", "", "subscribers[1].route.way: needs waypoints, way ="),
        ("[[0, 10], [100, 10], [100, 60]]", "[[0, 10]]", "subscribers[1].route.way: expected at least two waypoints"),
        ('["1 min"]', '["2 min", "1 min"]', "subscribers[1].route.departures: each departure must be later than"),
        ('tops = {}', 'tops = {x = "2"}', 'subscribers[1].route.stops: a time needs a unit; write "2 '),
    ],
)  # fmt: skip
def test_groups_that_cannot_be(old: str, new: str, said: str) -> None:
    assert old in GROUPS
    assert problem_of(GROUPS.replace(old, new)).startswith(said)


def test_several_groups_at_once_cannot_be_changed() -> None:
    said = problem_of(GROUPS, "subscribers.count=3")
    assert said.startswith(
        "subscribers.count: there are several groups; write one of subscribers.rangers, subscribers."
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ('subscribers.bus.route.way=["s1", "gate"]', 'subscribers.route: no place is called "gate"'),
        ("subscribers.bus.route.way=[[0, 0], [900, 0]]", "comes to x = 900 m, y = 0 m, outside the field (0 to 200 m"),
        ("subscribers.bus.route.way=[[1, 1], [1, 1]]", "all points of the way are the same place"),
        ('subscribers.bus.route.stops={gate = "1 s"}', 'subscribers.route.stops: "gate" is no waypoint of the way'),
    ],
)
def test_routes_that_cannot_be(change: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        build_world(parse_scenario(GROUPS, overrides=[change]), 1)
    assert said in str(caught.value)


def tracked(folder: Path, text: str, more: str = "", gpx: str = GPX) -> str:
    """What is said about a scenario that follows a GPX file; empty if nothing is."""
    (folder / "v.gpx").write_text(gpx)
    (folder / "my.toml").write_text(f'{text}\n[[subscribers]]\nname = "v"\ntracks = "v.gpx"\n{more}')
    try:
        build_world(load_scenario(folder / "my.toml"), 1)
    except BadInput as error:
        return str(error).replace(f"{folder}/", "")
    return ""


HERE = "[field]\norigin = [10.9990, 47.9995]\n"


@pytest.mark.parametrize(
    ("text", "more", "gpx", "said"),
    [
        (HERE, "", GPX, ""),
        ("", "", GPX, "v.gpx: has longitudes and latitudes, but nothing says where the field is; give field.origin ="),
        ("[field]\norigin = [11.05, 47.9]", "", GPX, "v.gpx: line 3: no position is in the field (0 to 200 m"),
        ("[field]\norigin = [11.0, 47.9995]\nheight = '100 m'", "", GPX, 'v.gpx: line 4: "fox" is at x = 0 m, y'),
        (HERE, "", GPX.replace("<time>2026-05-01T08:01:40Z</time>", ""), "v.gpx: line 4: expected lon, lat"),
        (HERE, "count = 2", GPX, "v.gpx: 1 tracks, but v are to be 2"),
        (HERE, 'nodes = "wolf"', GPX, 'v.gpx: nodes "wolf": the trace has none of them; it has fox'),
        ("begin = '2026-05-02'\n" + HERE, "", GPX, "v.gpx: nobody is anywhere in the time of the run, which begins at"),
        (HERE, '[[subscribers]]\nname = "w"\ntracks = "v.gpx"', GPX, 'v.gpx: track "fox" is in two groups, v and w'),
        (HERE, "", "<gpx></gpx>", "v.gpx: no position in it that can be used"),
        (HERE, "", GPX.replace("</gpx>", ""), "v.gpx: line 7: not well-formed XML"),
    ],
)  # fmt: skip
def test_tracks_that_cannot_be(tmp_path: Path, text: str, more: str, gpx: str, said: str) -> None:
    found = tracked(tmp_path, text, more, gpx)
    assert found.startswith(said), found
    assert bool(found) == bool(said)
