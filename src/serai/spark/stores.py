"""Where something is kept that must survive: a folder, or a bucket of an object store (S3, Google, Azure).

Both promise the same, and no more is relied on: a file is there whole or not at all, what was written is read, and a
list of names shows all that was written before. Folders are not renamed, files not appended to, and nothing is locked.
Addresses are those of pyarrow: s3://bucket/path, gs://..., abfss://...; keys come from the environment.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.fs as pafs

from serai.core.errors import BadInput, CannotRun
from serai.spark.places import is_address, local_path

_PART: Final = ".aside-"


class Store(Protocol):
    """Files with names such as state/00000007.parquet."""

    address: str
    """What people call it, and what Delta tables below it are opened with."""

    def read(self, name: str) -> bytes:
        """What is in a file; FileNotFoundError if it is not there."""

    def write(self, name: str, data: bytes | pa.Buffer) -> None:
        """Write a file, whole or not at all; one of that name is replaced."""

    def take(self, files: Mapping[str, Path]) -> None:
        """Put files of `aside` here, under these names; afterwards the disk has them."""

    def here(self, name: str) -> Any:
        """A context in which a file lies on this machine: its path."""

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, ascending, without that of the folder."""

    def size(self, name: str) -> int:
        """How many bytes a file has."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, also such as are not there."""

    def remove_folder(self, folder: str) -> None:
        """Remove a folder with all that is in it."""

    def aside(self) -> Path:
        """An own folder of this machine for files that are not whole yet."""

    def clear_asides(self) -> None:
        """Remove what was left aside."""

    def sync(self) -> None:
        """Come back when the disk has what was written."""

    def filesystem(self) -> pafs.FileSystem:
        """The same as Arrow reads it: paths are relative to it."""


_SCHEMES: Final = ("s3", "gs", "abfs", "abfss")


def store_at(address: str | Path) -> Store:
    """The store at a path or an address; nobody is asked yet whether it is there."""
    if not is_address(address):
        return Folder(local_path(address).absolute())
    if str(address).partition(":")[0] not in _SCHEMES:
        raise BadInput(f"{address}: neither a folder nor one of: {', '.join(f'{each}://' for each in _SCHEMES)}")
    return Bucket(str(address).rstrip("/"))


class Folder:
    """A folder of this machine, or of a disk that several machines share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.address = str(path)

    def __str__(self) -> str:
        return self.address

    def read(self, name: str) -> bytes:
        """What is in a file; FileNotFoundError if it is not there."""
        return (self.path / name).read_bytes()

    def write(self, name: str, data: bytes | pa.Buffer) -> None:
        """Write a file, whole or not at all; one of that name is replaced."""
        with self.writing(name) as aside:
            aside.write_bytes(data)

    @contextmanager
    def writing(self, name: str) -> Iterator[Path]:
        """A context in which a file is written aside, that then gets its name: whole or not at all."""
        place = self.path / name
        aside = self.path / f"{_PART}{os.getpid()}-{threading.get_ident()}"
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield aside
            aside.replace(place)
        except OSError:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            raise

    def take(self, files: Mapping[str, Path]) -> None:
        """Put files of `aside` here, under these names; afterwards the disk has them."""
        self.sync()
        for folder in {(self.path / name).parent for name in files}:
            folder.mkdir(parents=True, exist_ok=True)
        for name, path in files.items():
            os.replace(path, self.path / name)  # noqa: PTH105 - of very many files the calls themselves are the cost

    @contextmanager
    def here(self, name: str) -> Iterator[Path]:
        """A context in which a file lies on this machine: its path."""
        yield self.path / name

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, ascending, without that of the folder."""
        try:
            with os.scandir(self.path / folder) as found:
                return sorted(each.name for each in found if each.name[0] != "." and each.is_file())
        except FileNotFoundError:
            return []

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        return (self.path / name).stat().st_size

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, also such as are not there."""
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(self.path / name)  # noqa: PTH108 - as above

    def remove_folder(self, folder: str) -> None:
        """Remove a folder with all that is in it."""
        shutil.rmtree(self.path / folder, ignore_errors=True)

    def aside(self) -> Path:
        """An own folder of this machine for files that are not whole yet: on the same disk, so that it is renamed."""
        place = self.path / f"{_PART}{os.getpid()}"
        place.mkdir(parents=True, exist_ok=True)
        return place

    def clear_asides(self) -> None:
        """Remove what was left aside, also by processes that died; to be called by whoever is alone here."""
        for left in self.path.glob(f"{_PART}*"):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)

    def sync(self) -> None:
        """Come back when the disk has what was written."""
        _sync_disk_of(self.path)

    def filesystem(self) -> pafs.FileSystem:
        """The same as Arrow reads it: paths are relative to it."""
        return pafs.SubTreeFileSystem(str(self.path), pafs.LocalFileSystem())


class Bucket:
    """A folder of an object store."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._aside: Path | None = None

    def __str__(self) -> str:
        return self.address

    def __getstate__(self) -> dict[str, str]:
        return {"address": self.address}  # each process makes its own connections

    def __setstate__(self, state: dict[str, str]) -> None:
        self.address, self._aside = state["address"], None

    @cached_property
    def _opened(self) -> tuple[pafs.FileSystem, str]:
        try:
            return pafs.FileSystem.from_uri(self.address)  # type: ignore[no-any-return]
        except pa.ArrowInvalid as error:  # not BadInput: nobody must take it for a file that cannot be read
            raise CannotRun(f"{self.address}: no address that can be used ({str(error).splitlines()[0]})") from None

    def _place(self, name: str) -> str:
        return f"{self._opened[1]}/{name}"

    def read(self, name: str) -> bytes:
        """What is in a file; FileNotFoundError if it is not there."""
        with self._opened[0].open_input_file(self._place(name)) as file:
            return bytes(file.readall())

    def write(self, name: str, data: bytes | pa.Buffer) -> None:
        """Write a file, whole or not at all; one of that name is replaced."""
        with self._opened[0].open_output_stream(self._place(name), buffer_size=0) as file:
            file.write(data)

    def take(self, files: Mapping[str, Path]) -> None:
        """Put files of `aside` here, under these names."""
        for name, path in files.items():
            with path.open("rb") as file:
                self.write(name, pa.py_buffer(file.read()))
            path.unlink()

    @contextmanager
    def here(self, name: str) -> Iterator[Path]:
        """A context in which a file lies on this machine: its path."""
        with tempfile.NamedTemporaryFile(prefix="serai-") as copy:
            copy.write(self.read(name))
            copy.flush()
            yield Path(copy.name)

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, ascending, without that of the folder."""
        found = self._opened[0].get_file_info(pafs.FileSelector(self._place(folder), allow_not_found=True))
        return sorted(each.base_name for each in found if each.type == pafs.FileType.File)

    def below(self) -> Iterator[tuple[str, int, int]]:
        """All files, in folders too, by name: their names, sizes, and when they were written, in nanoseconds."""
        files, place = self._opened
        bucket = place.split("/")[0]
        if files.get_file_info(bucket).type == pafs.FileType.NotFound:  # or a slip of the pen looks like an empty one
            raise FileNotFoundError(f"there is no bucket {bucket}")
        found = files.get_file_info(pafs.FileSelector(place, recursive=True, allow_not_found=True))
        for each in sorted(found, key=lambda each: str(each.path)):
            if each.type == pafs.FileType.File:
                yield each.path[len(place) :].lstrip("/"), int(each.size), int(each.mtime_ns or 0)

    def opened(self, name: str) -> pa.NativeFile:
        """A file, to be read from its beginning."""
        return self._opened[0].open_input_stream(self._place(name))

    def size(self, name: str) -> int:
        """How many bytes a file has."""
        return int(self._opened[0].get_file_info(self._place(name)).size)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, also such as are not there."""
        for name in names:
            with suppress(FileNotFoundError):
                self._opened[0].delete_file(self._place(name))

    def remove_folder(self, folder: str) -> None:
        """Remove a folder with all that is in it."""
        with suppress(FileNotFoundError):
            self._opened[0].delete_dir(self._place(folder))

    def aside(self) -> Path:
        """An own folder of this machine for files that are not whole yet."""
        if self._aside is None:
            self._aside = Path(tempfile.mkdtemp(prefix="serai-"))
        return self._aside

    def clear_asides(self) -> None:
        """Remove what this process left aside."""
        if self._aside is not None:
            shutil.rmtree(self._aside, ignore_errors=True)
            self._aside = None

    def sync(self) -> None:
        """Nothing: what a store has accepted is kept."""

    def filesystem(self) -> pafs.FileSystem:
        """The same as Arrow reads it: paths are relative to it."""
        return pafs.SubTreeFileSystem(self._opened[1], self._opened[0])


def _sync_disk_of(folder: Path) -> None:
    """Have the disk of a folder keep all that was written to it: one call, however many files there are."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        sync = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if sync is None:  # not on Linux
            os.sync()
        elif sync(handle) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(handle)
