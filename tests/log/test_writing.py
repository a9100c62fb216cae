"""A run folder is written whole or not at all, and never over something."""

import errno
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import serai.log
from serai.core.errors import BadInput
from serai.field.log import FieldRun
from serai.lab import read_run, write_run
from serai.log.folder import check_out
from tests.log import hand_made

ROOT = Path(__file__).parents[2]


def left_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# --- Where


def test_check_writes_nothing(tmp_path):
    check_out(tmp_path / "a" / "b")
    assert left_in(tmp_path) == []


def test_new_folder_with_its_parents(tmp_path):
    assert write_run(hand_made.lively(), tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert read_run(tmp_path / "a" / "b") == hand_made.lively()


def test_empty_folder(tmp_path):
    (tmp_path / "run").mkdir()
    write_run(hand_made.lively(), tmp_path / "run")
    assert read_run(tmp_path / "run") == hand_made.lively()


def test_link_to_an_empty_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    write_run(hand_made.lively(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "run.json").exists()


def test_names_may_be_texts(tmp_path):
    folder = str(tmp_path / "run")
    check_out(folder)
    write_run(hand_made.lively(), folder)
    assert read_run(folder) == hand_made.lively()


def test_relative_to_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run(hand_made.lively(), "run")
    assert (tmp_path / "run" / "run.json").exists()


def test_permissions_are_the_usual_ones(tmp_path):
    (tmp_path / "usual").mkdir()
    folder = write_run(hand_made.lively(), tmp_path / "run")
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


def refused(folder: Path, because: str) -> None:
    """Both refuse the folder, and nothing changes."""
    before = left_in(folder.parent)
    with pytest.raises(BadInput, match=because) as check:
        check_out(folder)
    with pytest.raises(BadInput, match=because):
        write_run(hand_made.lively(), folder)
    assert str(check.value).startswith(f"{folder}: ")
    assert "choose" in str(check.value)
    assert left_in(folder.parent) == before


def test_refuses_a_folder_that_is_not_empty(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    refused(tmp_path / "run", "the folder is not empty; choose a new name, or remove the folder first")
    assert (tmp_path / "run" / "notes.txt").read_text() == "mine"


def test_refuses_a_hidden_file_too(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".keep").touch()
    refused(tmp_path / "run", "not empty")


def test_refuses_a_file(tmp_path):
    (tmp_path / "run").touch()
    refused(tmp_path / "run", "this is a file")


def test_refuses_a_folder_below_a_file(tmp_path):
    (tmp_path / "file").touch()
    refused(tmp_path / "file" / "run", re.escape(f"{tmp_path / 'file'} is a file, not a folder"))


def test_refuses_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    refused(tmp_path / "here", "cannot be replaced; choose a new folder inside it")


def test_refuses_a_mount_point(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    monkeypatch.setattr(Path, "is_mount", lambda path: path == tmp_path / "run")
    refused(tmp_path / "run", "cannot be replaced")


def test_refuses_where_nothing_may_be_written(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    refused(tmp_path / "a" / "run", re.escape(f"no permission to write in {tmp_path}; choose another place"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_refuses_a_parent_that_is_read_only(tmp_path):
    parent = tmp_path / "parent"
    parent.mkdir(mode=0o555)
    refused(parent / "run", "no permission")


def test_refuses_a_name_that_is_too_long(tmp_path):
    refused(tmp_path / ("x" * 300), "File name too long; choose another place")


def test_longest_name(tmp_path):
    write_run(hand_made.lively(), tmp_path / ("x" * 255))
    assert read_run(tmp_path / ("x" * 255)) == hand_made.lively()


def test_refuses_where_nobody_may_look(tmp_path, monkeypatch):
    def forbidden(*_: object) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "exists", forbidden)
    with pytest.raises(BadInput, match="run: Permission denied; choose another place"):
        check_out(tmp_path / "run")


def test_no_permission_found_late(tmp_path, monkeypatch):
    def forbidden(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(serai.log.folder, "_write_files", forbidden)
    with pytest.raises(BadInput, match="no permission to write there; choose another place"):
        write_run(hand_made.lively(), tmp_path / "run")
    assert left_in(tmp_path) == []


# --- Whole or not at all

TABLES = 9


@pytest.mark.parametrize(
    "failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), ValueError()]
)
@pytest.mark.parametrize("table", [1, 5, TABLES])
def test_a_failure_leaves_nothing(failure, table, tmp_path, monkeypatch):
    write_table, written = serai.log.folder._write_table, []

    def fail_at_last(*arguments):
        written.append(arguments)
        if len(written) == table:
            raise failure
        return write_table(*arguments)

    monkeypatch.setattr(serai.log.folder, "_write_table", fail_at_last)
    with pytest.raises(type(failure)):
        write_run(hand_made.lively(), tmp_path / "a" / "run")
    assert left_in(tmp_path) == []


def test_a_failure_at_the_very_end_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(FieldRun, "description", lambda run: {"seed": float("nan")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_run(hand_made.lively(), tmp_path / "run")
    assert left_in(tmp_path) == []


def test_an_empty_folder_survives_a_failure(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    monkeypatch.setattr(FieldRun, "form", lambda run: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_run(hand_made.lively(), tmp_path / "run")
    assert left_in(tmp_path) == ["run"]


def test_nothing_is_at_its_place_before_all_is_written(tmp_path, monkeypatch):
    write_files = serai.log.folder._write_files

    def look(description, tables, folder):
        write_files(description, tables, folder)
        assert not (tmp_path / "run").exists()

    monkeypatch.setattr(serai.log.folder, "_write_files", look)
    write_run(hand_made.lively(), tmp_path / "run")
    assert (tmp_path / "run" / "run.json").exists()


INTERRUPTED = """
import signal, sys, time
import serai.lab, serai.log.folder
from tests.log import hand_made

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with it ignored
write_table = serai.log.folder._write_table

def slowly(table, path):
    answer = write_table(table, path)
    print(path.name, flush=True)
    time.sleep(60)
    return answer

serai.log.folder._write_table = slowly
serai.lab.write_run(hand_made.lively(), sys.argv[1])
"""


def test_ctrl_c_leaves_nothing(tmp_path):
    search = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path / "runs" / "run")],
        env=os.environ | {"PYTHONPATH": search},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "nodes.parquet\n"
        assert left_in(tmp_path) != []
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in complaint
    assert left_in(tmp_path) == []
