"""A folder and a bucket of an object store keep the same promises; and who may be at work with them."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from serai.core.errors import BadInput, CannotRun
from serai.spark import leases
from serai.spark.leases import alone_at
from serai.spark.stores import Bucket, Folder, Store, store_at
from tests.effort import THOROUGH
from tests.spark.object_store import BUCKET, Stand

LONG = pytest.mark.skipif(not THOROUGH, reason="some seconds: make test-all")


@pytest.fixture(params=["folder", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return Folder(tmp_path / "home")
    request.getfixturevalue("store")
    return store_at(f"s3://{BUCKET}/home")


def test_both_keep_files(place: Store) -> None:
    assert place.names("state") == []
    with pytest.raises(FileNotFoundError):
        place.read("state/1.txt")
    place.write("state/1.txt", b"one")
    place.write("state/0.txt", b"")
    place.write("state/1.txt", b"uno")
    place.write("state/deep/2.txt", b"two")
    assert place.names("state") == ["0.txt", "1.txt"]
    assert (place.read("state/1.txt"), place.read("state/0.txt"), place.size("state/1.txt")) == (b"uno", b"", 3)
    with place.here("state/1.txt") as path:
        assert path.read_bytes() == b"uno"
    (place.aside() / "a").write_bytes(b"new")
    place.take({"landed/x.csv": place.aside() / "a"})
    assert (place.names("landed"), place.read("landed/x.csv")) == (["x.csv"], b"new")
    place.remove(["landed/x.csv", "landed/none"])
    place.remove_folder("state")
    place.remove_folder("state")
    assert (place.names("landed"), place.names("state")) == ([], [])
    with pytest.raises(FileNotFoundError):
        place.read("state/deep/2.txt")
    place.clear_asides()
    copy = pickle.loads(pickle.dumps(place))
    copy.write("a", b"b")
    assert place.read("a") == b"b"
    with place.filesystem().open_input_file("a") as file:
        assert file.read() == b"b"
    place.sync()


def test_a_folder_is_not_left_with_half_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Folder(tmp_path)
    place.write("a", b"before")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        place.write("a", b"after")
    assert (place.read("a"), [path.name for path in tmp_path.iterdir()]) == (b"before", ["a"])


def test_what_others_left_aside_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".aside-7" / "x").mkdir(parents=True)
    (tmp_path / ".aside-9-file").touch()
    with alone_at(Folder(tmp_path)):
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["hdfs://name/x", "s3a://bucket/x", "ftp://x/y"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(BadInput, match="neither a folder nor one of: s3://, gs://, abfs://, abfss://"):
        store_at(address)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_BEAT_S", 0.2)
    monkeypatch.setattr(leases, "_SILENT_S", 2.5)


HOLD = """
import sys
from serai.spark import leases
from serai.spark.stores import store_at
leases._BEAT_S = 0.2
with leases.alone_at(store_at(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.usefixtures("impatient")
def test_a_second_is_kept_out_and_the_dead_are_not_waited_for(place: Store) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HOLD, place.address]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(CannotRun, match="another serai is at work"), alone_at(place):
            pass
        other.kill()
        other.wait()
    with alone_at(place):  # its process is no more
        pass
    assert place.names("") == []


@LONG
@pytest.mark.usefixtures("impatient", "store")
def test_a_lease_of_another_machine_counts_while_it_is_renewed() -> None:
    place = Bucket(f"s3://{BUCKET}/home")
    place.write("lease.json", json.dumps({"who": "x", "host": "elsewhere", "process": 1, "beat": "1"}).encode())
    with alone_at(place):  # nobody renewed it
        place.write("lease.json", json.dumps({"who": "y", "host": "elsewhere", "process": 1, "beat": "2"}).encode())
    assert json.loads(place.read("lease.json"))["who"] == "y"  # somebody took it meanwhile: it is not ours to remove


@LONG
def test_a_store_that_is_away_is_an_error_of_the_system(store: Stand) -> None:
    place = store_at(f"s3://{BUCKET}/home")
    place.write("a", b"1")
    store.stop()
    with pytest.raises(OSError, match="AWS Error"):
        place.read("a")
    store.start()
    assert place.read("a") == b"1"
