"""Bad input: one clear message on stderr, exit 2, no traceback, nothing on stdout, nothing written."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
SIMULATION = import_module("serai.lab")

# arguments, words of the message
BAD_ARGUMENTS = {
    "no command of that name": ("fly", ["fly"]),
    "no scenario": ("run", ["SCENARIO"]),
    "unknown scenario": ("run nowhere", ["nowhere", "ced"]),
    "missing file": ("run nowhere.toml", ["nowhere.toml"]),
    "a folder": ("run .", ["."]),
    "unknown protocol": ("run ced --protocol gossip", ["gossip", "dg"]),
    "seed below zero": ("run ced --seed -1", ["--seed", "0"]),
    "seed not a number": ("run ced --seed one", ["--seed"]),
    "set without a value": ("run ced --set protocol.alpha", ["protocol.alpha"]),
    "set of an unknown key": ("run ced --set sensors.colour=3", ["sensors.colour"]),
    "set of another protocol's setting": ("run ced --set protocol.gamma=3", ["gamma", "cet"]),
    "set of a wrong value": ("run ced --set sensors.count=many", ["sensors.count"]),
    "set without a unit": ("run ced --set field.width=200", ["field.width", "unit"]),
    "full log without a folder": ("run ced --full-log", ["--out"]),
    "no seeds": ("demo --seeds 0", ["--seeds"]),
    "unknown built-in": ("scenario new mine.toml --from nowhere", ["nowhere", "field"]),
    "new in a missing folder": ("scenario new no/where.toml", ["where.toml"]),
    "unknown protocol listed": ("protocols gossip", ["gossip", "dg, ced, cet"]),
}


@pytest.mark.parametrize(("typed", "words"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS.keys())
def test_bad_arguments(serai: Run, tmp_path: Path, typed: str, words: list[str]) -> None:
    check_refused(serai(*typed.split()), words)
    assert list(tmp_path.iterdir()) == []


# text of a scenario file, words of the message
BAD_SCENARIOS = {
    "not TOML": ("duration = = 3", ["mine.toml:1"]),
    "not text": ("\0", ["mine.toml"]),
    "misspelt key": ("[sensors]\ncuont = 100", ["sensors.cuont", '"count"', "mine.toml:2"]),
    "misspelt table": ("[sensor]\ncount = 100", ["sensor", '"sensors"', "mine.toml:1"]),
    "unknown unit": ('[field]\nwidth = "200 feets"', ["field.width", "feets", "mine.toml:2"]),
    "unit of another kind": ('[field]\nwidth = "200 s"', ["field.width", "mine.toml:2"]),
    "no unit": ("[field]\nwidth = 200", ["field.width", "unit"]),
    "swapped speeds": (
        '[subscribers]\nspeed_min = "5 m/s"\nspeed_max = "1 m/s"',
        ["speed_min", "mine.toml:2"],
    ),
    "swapped pauses": ('[subscribers]\npause_min = "5 s"\npause_max = "1 s"', ["pause_min", "mine.toml:2"]),
    "swapped attribute": (
        '[events.attributes]\nA1 = {kind = "real", low = 9, high = 1}',
        ["A1", "mine.toml:2"],
    ),
    "negative count": ("[sensors]\ncount = -3", ["sensors.count", "mine.toml:2"]),
    "zero cells": ("[field]\ncells = 0", ["field.cells", "mine.toml:2"]),
    "no duration": ('duration = "0 s"', ["duration", "mine.toml:1"]),
    "unknown protocol": ('[protocol]\nname = "cde"', ["protocol.name", '"ced"', "mine.toml:2"]),
    "setting of another protocol": ('[protocol]\nname = "dg"\nalpha = 20', ["alpha", "mine.toml:3"]),
    "unknown attribute": ('[subscriptions]\nwhere = "B1 < 3"', ["B1", "mine.toml:2"]),
    "subscription that ends too soon": (
        '[subscriptions]\nwhere = "A1 <"',
        ["subscriptions.where", "mine.toml:2"],
    ),
    "no file of positions": ('[sensors]\nplacement = "file"', ["sensors", "file"]),
    "missing file of positions": ('[sensors]\nplacement = "file"\nfile = "none.csv"', ["none.csv"]),
}


@pytest.mark.parametrize("command", ["run mine.toml --out out", "scenario check mine.toml"])
@pytest.mark.parametrize(("text", "words"), BAD_SCENARIOS.values(), ids=BAD_SCENARIOS.keys())
def test_bad_scenario(serai: Run, tmp_path: Path, command: str, text: str, words: list[str]) -> None:
    (tmp_path / "mine.toml").write_text(text)
    check_refused(serai(*command.split()), words)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


# lines of a file of sensor positions in a field of 200 x 200 m, words of the message
BAD_POSITIONS = {
    "NaN": ("name,x,y\na,1,nan", ["sensors.csv"]),
    "out of the field": ("name,x,y\na,1,2\nb,201,2", ["sensors.csv", "201"]),
    "the same name twice": ("name,x,y\na,1,2\na,3,4", ["sensors.csv", "a"]),
    "not a number": ("name,x,y\na,one,2", ["sensors.csv", "one"]),
    "no column y": ("name,x\na,1", ["sensors.csv", "y"]),
    "empty": ("", ["sensors.csv"]),
}


@pytest.mark.parametrize(("lines", "words"), BAD_POSITIONS.values(), ids=BAD_POSITIONS.keys())
def test_bad_positions(serai: Run, tmp_path: Path, lines: str, words: list[str]) -> None:
    (tmp_path / "mine.toml").write_text('[sensors]\nplacement = "file"\nfile = "sensors.csv"')
    (tmp_path / "sensors.csv").write_text(lines)
    check_refused(serai("run", "mine.toml", "--out", "out"), words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.toml", "sensors.csv"]


def test_all_problems_are_said_at_once(serai: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[sensors]\ncuont = 3\nqueue = -1\n[field]\nwidth = "2 lightyears"')
    check_refused(serai("scenario", "check", "mine.toml"), ["sensors.cuont", "sensors.queue", "field.width", "^"])


@pytest.mark.parametrize("out", ["full", "a-file", "a-file/inside"])
def test_an_out_that_cannot_be_used_is_refused_before_anything_runs(
    serai: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/precious").write_text("mine")
    (tmp_path / "a-file").write_text("mine")
    monkeypatch.setattr(SIMULATION, "simulate", lambda *_, **__: pytest.fail("it ran"))
    before = sorted(tmp_path.rglob("*"))
    check_refused(serai("run", "ced", "--out", out), [out])
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "full/precious").read_text() == "mine"


def test_an_existing_file_is_not_written_over(serai: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("mine")
    check_refused(serai("scenario", "new", "mine.toml"), ["mine.toml", "exists"])
    assert (tmp_path / "mine.toml").read_text() == "mine"


def test_a_process_leaves_with_2_and_no_traceback(shell: Run, tmp_path: Path) -> None:
    check_refused(shell("run", "ced", "--set", "protocol.gamma=3", "--out", "out"), ["gamma"])
    assert list(tmp_path.iterdir()) == []


def check_refused(answer: Any, words: list[str]) -> None:
    assert answer.code == 2, answer
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert "bug" not in answer.err
    for word in words:
        assert word in answer.err, answer.err
