"""From run folders to pages: with and without the full log, and folders that no page can be made of."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import serai
from serai.cli import execute
from serai.core.errors import BadInput
from serai.replay import write_replay

SMALL = {"sensors.count": 20, "duration": "5 min", "events.interval": "20 s"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run twice, with its full log and without."""
    place = tmp_path_factory.mktemp("runs")
    scenario = serai.load_scenario("field", SMALL, protocol="ced")
    for name, full_log in (("full", True), ("ledger", False)):
        serai.write_run(serai.simulate(scenario, seed=2, full_log=full_log), place / name)
    return place


def test_a_run_without_the_full_log_is_simulated_again(runs: Path) -> None:
    whole, ledger = write_replay(runs / "full"), write_replay(runs / "ledger", runs / "again.html")
    assert (whole.simulated_again, ledger.simulated_again) == (False, True)
    assert whole.page == runs / "full" / "replay.html"
    assert whole.page.read_text() == ledger.page.read_text()
    assert whole.bytes == whole.page.stat().st_size
    assert not list(runs.glob(".serai*"))


def test_another_run_than_the_one_kept_is_refused(runs: Path, tmp_path: Path) -> None:
    run = serai.read_run(runs / "ledger")
    assert isinstance(run, serai.FieldRun)
    sent = run.ledger.sent.copy()
    sent[0] += 1
    serai.write_run(
        replace(run, ledger=run.ledger._replace(sent=sent), versions=run.versions | {"serai": "0.0.9"}),
        tmp_path / "odd",
    )
    with pytest.raises(BadInput, match=r"not the same run \(sensors differ; serai was 0\.0\.9, is "):
        write_replay(tmp_path / "odd", tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_folders_that_cannot_be_played(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no run here \(run\.json not found\)"):
        write_replay(tmp_path)
    half = tmp_path / "half"
    shutil.copytree(runs / "full", half)
    (half / "transfers.parquet").unlink()
    with pytest.raises(BadInput, match=r"transfers\.parquet is missing"):
        write_replay(half)
    said = json.loads((half / "run.json").read_text())
    (half / "run.json").write_text(json.dumps(said | {"log_version": 99}))
    with pytest.raises(BadInput, match="log version 99"):
        write_replay(half)
    (half / "run.json").write_text(json.dumps(said | {"tables": [1]}))
    with pytest.raises(BadInput, match=r"run\.json: damaged, its list of tables is none"):
        write_replay(half)
    (half / "run.json").unlink()
    (half / "run.json").mkdir()
    with pytest.raises(BadInput, match=r"run\.json: cannot be read: Is a directory"):
        write_replay(half)


def test_places_that_cannot_be_written(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere is not there; choose another place for the page \(--out\)"):
        write_replay(runs / "full", tmp_path / "nowhere" / "page.html")
    with pytest.raises(BadInput, match=r"this is a folder; name a file for the page"):
        write_replay(runs / "full", tmp_path)
    assert list(tmp_path.iterdir()) == []
    os.mkfifo(tmp_path / "device")
    with pytest.raises(BadInput, match=r"device: this is no ordinary file; choose another place"):
        write_replay(runs / "full", tmp_path / "device")
    assert (tmp_path / "device").is_fifo()


def test_a_page_is_the_same_every_time_and_asks_for_nothing(runs: Path, tmp_path: Path) -> None:
    one = write_replay(runs / "full", tmp_path / "one.html").page.read_text()
    assert one == write_replay(runs / "full", tmp_path / "two.html").page.read_text()
    assert "default-src 'none'" in one
    assert "http://" not in one
    assert "https://" not in one
    assert "\nimport " not in one
    assert "\nexport " not in one


def test_the_command(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    assert execute(["replay", str(runs / "ledger"), "--out", str(page)]) == 0
    assert capsys.readouterr().out.endswith(f"written to {page} ({page.stat().st_size / 1e6:.1f} MB)\n")
    assert execute(["replay", str(runs / "ledger"), "--out", str(page), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["simulated_again"] is True
    monkeypatch.setattr("serai.replay.run.MOST_BYTES", 1000)
    assert execute(["replay", str(runs / "full"), "--out", str(page)]) == 0
    assert "transfers are in the page" in capsys.readouterr().err
    assert execute(["replay", str(tmp_path)]) == 2
    assert "no run here" in capsys.readouterr().err
