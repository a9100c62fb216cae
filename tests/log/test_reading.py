"""Folders that cannot be read: one clear message each."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from serai.core.errors import BadInput
from serai.lab import read_run, write_run
from serai.log.folder import LOG_VERSION, _digest
from tests.log import hand_made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(hand_made.lively(), tmp_path / "run")


def complaint_about(folder: Path) -> str:
    with pytest.raises(BadInput) as complaint:
        read_run(folder)
    return str(complaint.value)


def change_description(folder: Path, **changes: Any) -> None:
    path = folder / "run.json"
    said = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in said.items() if value is not ...}))


def test_no_such_folder(tmp_path):
    assert complaint_about(tmp_path / "run") == (
        f"{tmp_path / 'run'}: no run here (run.json not found); name a folder written with --out"
    )


def test_a_folder_that_is_no_run(tmp_path):
    assert "no run here" in complaint_about(tmp_path)


def test_a_file(tmp_path):
    (tmp_path / "run").touch()
    assert "no run here" in complaint_about(tmp_path / "run")


@pytest.mark.parametrize("text", [b"", b"{", b"\xff\xfe"])
def test_damaged_description(folder, text):
    (folder / "run.json").write_bytes(text)
    assert complaint_about(folder).startswith(f"{folder / 'run.json'}: damaged, this is not JSON (")


@pytest.mark.parametrize("text", ["[]", "{}", "1"])
def test_another_programs_description(folder, text):
    (folder / "run.json").write_text(text)
    assert complaint_about(folder) == f"{folder / 'run.json'}: not a run of serai (no log_version in it)"


def test_another_log_version(folder):
    change_description(folder, log_version=99, versions={"serai": "7.1"})
    message = complaint_about(folder)
    assert message.startswith(f"{folder}: log version 99; this serai (")
    assert f"reads log version {LOG_VERSION}: use the serai that wrote it ({{'serai': '7.1'}})" in message


def test_description_with_something_missing(folder):
    change_description(folder, seed=..., counts={"drops": {}, "ended_s": None})
    missing = "seed, counts.control_messages, counts.control_bits"
    assert complaint_about(folder) == f"{folder / 'run.json'}: damaged, it lacks {missing}; run the simulation again"


def test_a_simulation_without_its_scenario(folder):
    change_description(folder, scenario=...)
    assert complaint_about(folder) == f"{folder / 'run.json'}: damaged, it lacks scenario; run the simulation again"


def test_a_folder_of_version_1(folder):
    change_description(folder, log_version=1, versions={"serai": "0.1.0"})
    message = complaint_about(folder)
    assert message.endswith(
        "use the serai that wrote it ({'serai': '0.1.0'}), or simulate again (scenario and seed: run.json)"
    )


@pytest.mark.parametrize("name", ["nodes", "contacts", "deliveries", "transfers", "drops"])
def test_missing_table(folder, name):
    (folder / f"{name}.parquet").unlink()
    assert complaint_about(folder) == (
        f"{folder}: {name}.parquet is missing; restore the folder, or run the simulation again"
    )


@pytest.mark.parametrize("name", ["tracks", "contacts", "sensors", "transfers"])
def test_one_flipped_bit(folder, name):
    path = folder / f"{name}.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 1
    path.write_bytes(content)
    assert f"{name}.parquet is damaged or was changed" in complaint_about(folder)


def test_cut_short(folder):
    path = folder / "events.parquet"
    path.write_bytes(path.read_bytes()[:-10])
    assert "events.parquet is damaged" in complaint_about(folder)


def test_all_that_is_wrong_at_once(folder):
    (folder / "sensors.parquet").unlink()
    (folder / "events.parquet").write_bytes(b"PAR1")
    message = complaint_about(folder)
    assert "sensors.parquet is missing" in message
    assert "events.parquet is damaged" in message


def test_table_that_is_not_listed(folder):
    listing = json.loads((folder / "run.json").read_text())["tables"]
    del listing["sensors"], listing["drops"]
    change_description(folder, tables=listing)
    message = complaint_about(folder)
    assert "sensors.parquet is not listed in run.json" in message
    assert "drops.parquet is not listed in run.json" in message


def test_other_columns_than_described(folder):
    path = folder / "sensors.parquet"
    table = pq.ParquetFile(path).read().drop_columns(["sent"]).append_column("mood", pa.array(["", "", ""]))
    pq.write_table(table, path)
    listing = json.loads((folder / "run.json").read_text())["tables"]
    change_description(folder, tables=listing | {"sensors": {"rows": 3, "sha256": _digest(path)}})
    message = complaint_about(folder)
    known = "node (int32), cell (int32 or null), community (int32)"
    assert message.startswith(f"{path}: columns {known}, received (int64)")
    assert f"mood (string or null); expected {known}, sent (int64)" in message


def test_scenario_that_is_not_valid(folder):
    change_description(folder, scenario="duration = 'for ever'")
    assert "duration" in complaint_about(folder)
