"""Parts that grow and are merged: whatever is added, and wherever a crash comes, what is read is all of it, once."""

import random
from pathlib import Path

import pytest

from serai.spark.runs import Part, Runs
from serai.spark.stores import Folder


@pytest.mark.parametrize("seed", range(20))
def test_all_is_there_once_in_few_parts(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    runs = Runs(Folder(tmp_path), "state", "txt")
    added: list[str] = []
    for number in range(200):
        if draw.random() < 0.2:
            continue  # a batch that adds nothing
        runs.add(number, f"{number} ".encode())
        added.append(str(number))
        if draw.random() < 0.8:
            runs.merge(number + 1, b"".join)
        assert b"".join(runs.read()).decode().split() == added
    runs.merge(200, b"".join)
    assert len(runs.parts()) <= 12
    assert len(list((tmp_path / "state").iterdir())) == len(runs.parts())


def test_a_part_that_may_change_is_not_merged_nor_read(tmp_path: Path) -> None:
    runs = Runs(Folder(tmp_path), "state", "txt")
    for number in range(4):
        runs.add(number, f"{number}".encode())
    runs.merge(3, b"".join)
    assert runs.parts() == [Part(0, 2), Part(3, 3)]
    assert runs.read(before=3) == [b"012"]


def test_what_a_crash_leaves_beside_a_merged_part_is_not_read_twice(tmp_path: Path) -> None:
    runs = Runs(Folder(tmp_path), "state", "txt")
    for name, text in (("00000000-00000003", "0123"), ("00000000-00000001", "01"), ("00000003-00000003", "3")):
        (tmp_path / "state").mkdir(exist_ok=True)
        (tmp_path / "state" / f"{name}.txt").write_text(text)
    runs.add(4, b"4")
    assert runs.read() == [b"0123", b"4"]
    runs.add(5, b"5")
    runs.merge(6, b"".join)
    runs.add(6, b"6")
    runs.add(7, b"7")
    runs.merge(8, b"".join)
    assert runs.read() == [b"01234567"]
    assert len(list((tmp_path / "state").iterdir())) == 1


def test_large_parts_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serai.spark.runs._LARGEST", 5)
    runs = Runs(Folder(tmp_path), "state", "txt")
    for number in range(64):
        runs.add(number, b"x")
        runs.merge(number + 1, b"".join)
    assert b"".join(runs.read()) == b"x" * 64
    assert max(map(len, runs.read())) <= 5
