"""Parquet files as one table: columns that come and go, folders that are columns, and what is refused."""

import shutil
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from serai.core.errors import BadInput
from serai.matching.files import parquet_files, read_pieces
from serai.matching.landing import Landing, nothing_new
from serai.spark.stores import Folder


def write(folder: Path, name: str, **columns: list) -> None:
    place = folder / f"{name}.parquet"
    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), place)


def whole(folder: Path) -> list[dict]:
    files = parquet_files(folder)
    assert files is not None
    return pa.concat_tables(read_pieces(files.pieces, files.schema, 2)).to_pylist()


def test_a_column_that_a_file_lacks_is_null_there_and_numbers_go_together(tmp_path: Path) -> None:
    write(tmp_path, "a", event=[1, 2, 3], t=[1, 2, 3])
    write(tmp_path, "b", event=[4], t=[2.5], site=["north"])
    assert whole(tmp_path) == [
        {"event": 1, "t": 1.0, "site": None},
        {"event": 2, "t": 2.0, "site": None},
        {"event": 3, "t": 3.0, "site": None},
        {"event": 4, "t": 2.5, "site": "north"},
    ]


def test_names_of_folders_are_columns(tmp_path: Path) -> None:
    write(tmp_path, "day=2026-11-01/site=n%2Fe/x", event=[1], n=[7])
    write(tmp_path, "day=2026-11-02/site=__HIVE_DEFAULT_PARTITION__/y", event=[2], n=[8])
    assert whole(tmp_path) == [
        {"event": 1, "n": 7, "day": date(2026, 11, 1), "site": "n/e"},
        {"event": 2, "n": 8, "day": date(2026, 11, 2), "site": None},
    ]
    assert whole(tmp_path / "day=2026-11-01") == [{"event": 1, "n": 7, "site": "n/e"}]


def test_types_that_nothing_holds_are_refused_with_the_file(tmp_path: Path) -> None:
    write(tmp_path, "a", event=[1], t=[1.0])
    write(tmp_path, "b", event=[2], t=["warm"])
    with pytest.raises(BadInput, match=r"b\.parquet: the column t is string here, and double in other files"):
        parquet_files(tmp_path)


def started(inbox: Path, home: Path) -> Landing:
    home.mkdir(exist_ok=True)
    return Landing({"": inbox}, Folder(home))


def test_each_content_lands_once_whatever_it_is_called(tmp_path: Path) -> None:
    inbox, home = tmp_path / "in", tmp_path / "home"
    (inbox / "deep").mkdir(parents=True)
    (inbox / "a.csv").write_text("one")
    (inbox / "deep" / "b.csv").write_text("one")
    (inbox / ".hidden.csv").write_text("two")
    landing = started(inbox, home)
    assert (landing.land(), landing.land()) == (1, 0)
    (inbox / "a.csv").write_text("more")
    assert started(inbox, home).land() == 1  # after a restart
    assert started(inbox, home).land() == 0
    landing = started(inbox, home)
    assert [landing.of(copy).name for copy in landing.waiting()] == ["a.csv", "a.csv"]
    shutil.rmtree(home / "ledger")  # as if a crash had come before what was copied was noted
    assert started(inbox, home).land() == 2  # copied again, to the same names
    assert len(list((home / "landed").iterdir())) == 2


def test_a_stream_knows_without_spark_that_there_is_nothing_new(tmp_path: Path) -> None:
    inbox, home = tmp_path / "in", tmp_path / "home"
    inbox.mkdir()
    (inbox / "a.csv").write_text("one")
    assert not nothing_new(inbox, home)  # never been there
    landing = started(inbox, home)
    landing.land()
    assert not nothing_new(inbox, home)  # landed, and not done
    landing.done(landing.waiting())
    assert nothing_new(inbox, home)
    (inbox / "b.csv").write_text("two")
    assert not nothing_new(inbox, home)
