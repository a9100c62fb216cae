"""`serai scenario import`: every format becomes a scenario that can be run, and what was found is said."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serai.lab import load_scenario
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import find_contacts

Run = Callable[..., Any]
FILES = Path(__file__).parents[1] / "traces" / "files"
SHARED = Path(__file__).parents[3] / "shared" / "data"
TRACES = (
    "one-contacts.txt", "crawdad.txt", "begin-duration.txt", "sightings.txt", "sightings-time-last.csv",
    "sociopatterns.txt", "one-movement.txt", "bonnmotion.movements", "ns2.tcl", "tracks.gpx",
    "movebank.csv", "fcd.xml",
)  # fmt: skip


@pytest.mark.parametrize("name", TRACES)
def test_every_format_becomes_a_scenario_that_can_be_run(serai: Run, name: str) -> None:
    answer = serai("scenario", "import", str(FILES / name), "--out", "mine.toml", "--range", "30 m")
    assert answer.code == 0, answer.err
    assert f"{FILES / name}: " in answer.out
    assert answer.out.endswith("written to mine.toml; try: serai run mine.toml\n")
    scenario = load_scenario("mine.toml")
    assert isinstance(scenario, OpportunisticScenario)
    assert scenario.contacts.file is not None
    assert scenario.contacts.file.resolve() == FILES / name
    nodes, _, _ = find_contacts(scenario, 0)
    assert len(nodes.names) >= 1
    assert serai("scenario", "check", "mine.toml").code == 0


def test_what_was_found_is_said(serai: Run) -> None:
    odd, messages = FILES / "one-contacts-odd.txt", FILES / "messages.txt"
    answer = serai("scenario", "import", str(odd), "--messages", str(messages), "--out", "mine.toml")
    assert answer.out.splitlines() == [
        f"{odd}: one-contacts (connectivity report of The ONE)",
        " lines               9",
        " nodes               3",
        " contacts            2",
        " span              5 s   from 1 s to 6 s of the file",
        " messages            3   to one node each",
        "                     1   nodes of theirs are not in the trace and meet nobody",
        " ! 3 x expected: time CONN node node up|down: left out (lines 4, 5, 9)",
        " ! 1 x a node meets itself: left out (line 2)",
        " ! 1 x down, but it is not up: left out (line 7)",
        " ! 1 x earlier than the line before: sorted (line 6)",
        " ! 1 x still up at the end of the file: ends there, at 6 s",
        " ! 1 x up, but it is up already: left out (line 3)",
        " ! messages: 1 x earlier than the message before: sorted",
        " ! messages: 1 x expected: time id size from to minutes ..., or time C id from",
        "   to size: left out (line 5)",
        "written to mine.toml; try: serai run mine.toml",
    ]


def test_the_scenario_names_its_files_as_seen_from_its_folder(serai: Run, tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "t.csv").write_text((FILES / "movebank.csv").read_text())
    answer = serai(
        "scenario", "import", "traces/t.csv", "--range", "100 m", "--out", "mine.toml", "--protocol", "flooding"
    )
    assert answer.code == 0, answer.err
    assert Path("mine.toml").read_text() == (
        'title = "t.csv: Movebank CSV"\nduration = "600 s"\n\n'
        '[contacts]\nsource = "trace"\nfile = "traces/t.csv"\nformat = "movebank"\n'
        'gap = "4199 s"  # ten times the usual time between two positions\n\n'
        '[radio]\nrange = "100 m"\n\n'
        '[bundles]\ninterval = "0.6 s"  # about a thousand bundles or more\nlifetime = "60 s"\n\n'
        '[protocol]\nname = "flooding"\n'
    )
    assert " gaps                0   longer than 4,199 s between two positions" in answer.out
    assert " time from 2026-05-01 08:00:00 UTC; x, y from latitude 48.0005" in answer.out


def test_a_trace_in_seconds_since_1970_begins_at_its_first_time(serai: Run) -> None:
    Path("t.txt").write_text("a b 1156000000.5 1156000100\n")
    assert serai("scenario", "import", "t.txt", "--out", "mine.toml").code == 0
    scenario = load_scenario("mine.toml")
    assert (scenario.contacts.begin_s, scenario.duration_s) == (1156000000.0, 100.0)  # type: ignore[attr-defined]


def test_milliseconds_are_asked_about_and_read(serai: Run) -> None:
    Path("t.txt").write_text("a b 1156000000500 1156000100000\nb c 1157300000000 1157300009000\n")
    answer = serai("scenario", "import", "t.txt", "--out", "mine.toml")
    assert answer.code == 2
    assert "years if they were seconds; say what they are: --time-unit ms" in answer.err
    assert serai("scenario", "import", "t.txt", "--out", "mine.toml", "--time-unit", "ms").code == 0
    scenario = load_scenario("mine.toml")
    assert (scenario.contacts.begin_s, scenario.duration_s) == (1156000000.0, 1300009.0)  # type: ignore[attr-defined]
    _, contacts, _ = find_contacts(scenario, 0)  # type: ignore[arg-type]
    assert contacts.up_s.tolist() == [0.5, 1300000.0]


def test_each_sign_of_another_unit_is_enough(serai: Run) -> None:
    """Ten years and more, a year that is far off, whole thousands throughout; each alone, and just not."""
    hour_ms = [1156000000500 + 12345 * step for step in range(12)]
    fortnight_ms = [15 + 86_400_000 * step for step in range(14)]
    thousands = [1000 * step for step in range(1, 11)]
    asked = "say what they are: --time-unit ms, or us, or s if it is so"
    for times, said in (
        (hour_ms, asked), (fortnight_ms, asked), (thousands, asked), (thousands[:8], ""), ([*thousands, 10_500], ""),
        ([time // 10 for time in fortnight_ms], ""), ([time // 1000 for time in hour_ms], ""),
    ):  # fmt: skip
        Path("t.txt").write_text("".join(f"a b{time} {time} {time + 1000}\n" for time in times))
        for unit in ([], ["--time-unit", "ms"], ["--time-unit", "s", "--until", "1 h"]):
            answer = serai("scenario", "import", "t.txt", "--format", "crawdad", "--out", "mine.toml", *unit)
            refused = bool(said) and not unit
            assert (answer.code, asked in answer.err) == ((2, True) if refused else (0, False)), (times, unit)
            Path("mine.toml").unlink(missing_ok=True)
    Path("t.txt").write_text("0 9 0 9 0 9\n" + "".join(f"{time} a 1 1\n" for time in thousands))
    assert asked in serai("scenario", "import", "t.txt", "--out", "mine.toml", "--format", "one-movement").err


def test_a_run_of_a_hundred_years_is_refused(serai: Run) -> None:
    Path("t.txt").write_text("a b 0 1\na b 4294967296 4294967299\n")
    answer = serai("scenario", "import", "t.txt", "--out", "mine.toml", "--time-unit", "s")
    assert (answer.code, "136.1 years are too long for a run; use --until" in answer.err) == (2, True)
    assert not Path("mine.toml").exists()
    assert serai("scenario", "import", "t.txt", "--out", "mine.toml", "--time-unit", "s", "--until", "5 s").code == 0


def test_offset_and_until_count_from_where_the_trace_begins(serai: Run) -> None:
    """In seconds since 1970 from its first time, else from 0; what lasts just as long as was asked for stays."""
    Path("t.txt").write_text("a b 1156000000 1156000100\na b 1156000200 1156000205\na c 1156000300 1156000304\n")
    options = ["--offset", "150 s", "--until", "400 s", "--min-contact", "5 s"]
    assert serai("scenario", "import", "t.txt", "--out", "mine.toml", *options).code == 0
    scenario = load_scenario("mine.toml")
    assert (scenario.contacts.begin_s, scenario.duration_s) == (1156000150.0, 154.0)  # type: ignore[attr-defined]
    _, contacts, _ = find_contacts(scenario, 0)  # type: ignore[arg-type]
    assert [column.tolist() for column in contacts] == [[0], [1], [50.0], [55.0]]
    options = ["--until", "250 s", "--out", "other.toml"]
    assert serai("scenario", "import", "t.txt", *options).code == 0
    assert load_scenario("other.toml").duration_s == 250


def test_a_part_of_a_trace(serai: Run) -> None:
    Path("t.txt").write_text("1 2 100 200\n1 2 230 300\n2 3 200 204\n1 9 150 300\n2 3 400 500\n")
    options = ["--nodes", "1-4", "--gap", "30 s", "--min-contact", "5 s", "--offset", "120 s", "--until", "0.1 h"]
    answer = serai("scenario", "import", "t.txt", "--out", "mine.toml", *options)
    assert answer.code == 0, answer.err
    for said in (
        " nodes               4",
        " contacts            1",
        " run             240 s   from 120 s to 360 s of the file",
        " ! 1 x with a node that is not asked for: left out",
        " ! 1 x at most 30 s after another contact of the same two: made one",
        " ! 1 x shorter than 5 s: left out",
    ):
        assert said in answer.out.splitlines()
    assert (
        'format = "crawdad"\nnodes = "1-4"\nbegin = "2 min"\ngap = "30 s"\nmin_contact = "5 s"\n'
        in Path("mine.toml").read_text()
    )
    scenario = load_scenario("mine.toml")
    nodes, contacts, _ = find_contacts(scenario, 0)  # type: ignore[arg-type]
    assert nodes.names == ["1", "2", "3", "4"]
    assert [column.tolist() for column in contacts] == [[0], [1], [0.0], [180.0]]


def test_short_contacts_of_those_who_walk_are_left_out(serai: Run) -> None:
    options = ["--range", "80 m", "--min-contact", "1 min", "--json"]
    answer = serai("scenario", "import", str(FILES / "one-movement.txt"), "--out", "mine.toml", *options)
    assert json.loads(answer.out)["contacts"] == 0
    _, contacts, _ = find_contacts(load_scenario("mine.toml"), 0)  # type: ignore[arg-type]
    assert contacts.a.size == 0


def test_as_json(serai: Run) -> None:
    answer = serai("scenario", "import", str(FILES / "crawdad.txt"), "--out", "mine.toml", "--json")
    found = json.loads(answer.out)
    assert (found["format"], found["nodes"], found["contacts"], found["scenario"]) == ("crawdad", 4, 3, "mine.toml")
    assert found["noticed"][0].startswith("2 x overlaps or touches")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.txt", "--out", "mine.toml"], "nowhere.txt: cannot be read: No such file or directory"),
        ([str(FILES / "crawdad.txt"), "--out", "mine.toml", "--strict"], "line 4: a node meets itself; mend the line"),
        ([str(FILES / "crawdad.txt"), "--out", "mine.toml", "--format", "craw"], 'did you mean "crawdad"?'),
        (
            [str(FILES / "fcd.xml"), "--out", "mine.toml", "--range", "100"],
            '--range: a length needs a unit; write "100 m"',
        ),
        (
            [str(FILES / "fcd.xml"), "--out", "mine.toml", "--protocol", "ced"],
            'protocol "ced" does not run on contacts',
        ),
        ([str(FILES / "fcd.xml"), "--out", "no/such/folder.toml"], "no/such/folder.toml: cannot be written"),
        ([str(FILES / "crawdad.txt"), "--out", "mine.toml", "--time-unit", "msec"], 'did you mean "ms"?'),
        ([str(FILES / "crawdad.txt"), "--out", "mine.toml", "--until", "5"], "--until: a time needs a unit"),
        ([str(FILES / "crawdad.txt"), "--out", "mine.toml", "--offset", "2 h"], "nothing is left from --offset"),
        ([str(FILES / "tracks.gpx"), "--out", "mine.toml", "--time-unit", "ms"], "gpx has dates"),
        ([str(FILES / "messages.csv"), "--out", "mine.toml"], "cannot tell the format from its first lines"),
        ([str(FILES / "crawdad.txt"), "--out", "mine.toml", "--messages", "m.txt"], "m.txt: cannot be read"),
    ],
)
def test_bad_input_is_one_message_and_nothing_is_written(serai: Run, arguments: list[str], said: str) -> None:
    answer = serai("scenario", "import", *arguments)
    assert answer.code == 2
    lines = [line for line in answer.err.splitlines() if not line.startswith("compiling kernels")]
    assert len(lines) == 1
    assert said in lines[0]
    assert answer.out == ""
    assert list(Path().iterdir()) == []


def test_a_file_that_is_there_is_left_alone(serai: Run) -> None:
    Path("mine.toml").write_text("mine")
    answer = serai("scenario", "import", str(FILES / "crawdad.txt"), "--out", "mine.toml")
    assert (answer.code, Path("mine.toml").read_text()) == (2, "mine")
    assert "exists already" in answer.err


@pytest.mark.skipif(not SHARED.exists(), reason="only where the shared data is")
@pytest.mark.parametrize(
    ("name", "nodes", "contacts"),
    [("one-rwp110/contacts.txt.gz", 110, 47_270), ("oystercatcher/O_ASSEN-gps-2018.csv.gz", 3, 9)],
)
def test_real_data(serai: Run, name: str, nodes: int, contacts: int) -> None:
    answer = serai("scenario", "import", str(SHARED / name), "--out", "mine.toml", "--range", "100 m", "--json")
    found = json.loads(answer.out)
    assert (found["nodes"], found["contacts"]) == (nodes, contacts)


def test_like_the_one(serai: Run) -> None:
    """The settings are written down; the same ones are put in when a scenario without them is run so."""
    trace, messages = str(FILES / "one-contacts.txt"), str(FILES / "messages.txt")
    wanted = ("scenario", "import", trace, "--messages", messages, "--protocol", "prophet")
    assert serai(*wanted, "--like", "the-one", "--out", "like.toml").code == 0
    assert serai(*wanted, "--out", "plain.toml").code == 0
    like, plain = load_scenario("like.toml"), load_scenario("plain.toml")
    assert isinstance(like, OpportunisticScenario)
    assert (like.step_s, like.radio.single, like.bundles.lifetime_unit_s) == (1.0, True, 60.0)
    assert (like.protocol.variant, like.protocol.seen, like.protocol.encounter) == ("the-one", "live", 0.75)
    assert load_scenario("plain.toml", like="the-one") == like.model_copy(update={"name": "plain"})
    assert load_scenario("plain.toml", ["protocol.consume=false"], like="the-one").protocol.consume is False
    assert load_scenario("plain.toml", {"step": "2 s"}, like="the-one").step_s == 2.0
    assert plain != like
    other = load_scenario("plain.toml", ["protocol.name=first-contact"], like="the-one")
    assert other.protocol.at_subscriber == "ends"
    assert serai("run", "plain.toml", "--like", "the-one", "--json").code == 0
    assert serai(*wanted, "--like", "one", "--out", "x.toml").err.startswith('--like "one": did you mean')
    assert "only for networks of kind opportunistic" in serai("run", "field", "--like", "the-one").err
    assert "did you mean" in serai("run", "plain.toml", "--like", "the-ones").err
