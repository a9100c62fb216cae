"""Files that arrive in folders, made safe: copied whole, under names that follow from their content.

Spark knows a file by its name, and forgets files that are a week older than the newest. What comes home from a field is
older than that, and comes again under its name with more rows. So each content is copied once to a folder where no
name comes twice and every file is new; Spark reads that. A ledger remembers what was copied, and from where.

Many files are copied together: first all of them aside, then the disk is asked once to keep them, then they get their
names, then the ledger notes them. What a crash leaves half-done is done again, to the same names.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Final, NamedTuple

from serai.log.folder import RUN_FILE
from serai.spark.places import alone_in, local_path
from serai.spark.runs import Runs
from serai.spark.stores import Bucket, Folder, Store

FORMATS: Final = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
_CHUNK: Final = 1 << 20
_TOGETHER: Final = 1000  # files
_TOGETHER_BYTES: Final = 1 << 28
_JOURNALS: Final = ("-wal", "-journal", "-shm")
LANDED: Final = "landed"
"""The folder of the copies."""
QUARANTINE: Final = "quarantine"
"""The folder of copies that cannot be read."""
OPEN_DATABASE: Final = "open-sqlite"
"""The format of a database that was copied while somebody wrote it."""
RUN_FOLDER: Final = "run"
"""The format of a run folder, which is one thing: its copy is a tar file."""


class Looks(NamedTuple):
    """What tells that a file has changed."""

    size: int
    time_ns: int
    changed_ns: int  # also when it was put back with an old time


class Landed(NamedTuple):
    """A file as it came: its source, its name below that, how it looked, and what is in it."""

    source: str
    name: str
    looks: Looks
    sha256: str
    format: str | None  # None: nothing that can be read

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.looks.size

    @property
    def content(self) -> str:
        """The name of the copy."""
        return f"{self.sha256}.{self.format or 'unknown'}"


class Landing:
    """Copies what arrives in folders to a store, each content once; with `runs` run folders as wholes.

    Folders may be those of an object store; run folders are known only on disks.
    """

    def __init__(
        self, sources: Mapping[str, Path | Bucket], store: Store, runs: bool = False, passing: Collection[str] = ()
    ) -> None:
        """Files of `passing` sources are removed when they are done, and forgotten: their names never come again."""
        self.sources, self.store, self.runs, self.passing = sources, store, runs, passing
        self.by_name: dict[tuple[str, str], Landed] = {}  # as it was seen last
        self.by_content: dict[str, Landed] = {}
        self._of_passing: dict[tuple[str, str], Landed] = {}
        self.unreadable: dict[str, str] = {}  # what the system does not let us read, and why
        self._ledger = Runs(store, "ledger", "jsonl")
        parts = self._ledger.parts()
        self._next = parts[-1].last + 1 if parts else 0
        self._latest_ns = 0  # of the copies of this process
        for data in self._ledger.read():
            for line in data.splitlines():
                source, name, looks, sha256, form = json.loads(line)
                if not self._is_gone(source, name):
                    self._remember(Landed(source, name, Looks(*looks), sha256, form))

    def land(self) -> int:
        """Copy what is new or has changed; how many contents were new."""
        return sum(self._copy_all(some) for some in _together(self._changed()))

    def _changed(self) -> Iterator[_Seen]:
        self.unreadable.clear()
        for source, folder in self.sources.items():
            if isinstance(folder, Bucket):
                yield from self._changed_in(source, folder)
                continue
            for entry in _entries_below(str(folder), self.runs):
                name = _as_text(entry.path[len(str(folder)) :].lstrip(os.sep))
                try:
                    looks = _looks(entry)
                except FileNotFoundError:  # taken away again
                    continue
                if self._is_news(source, name, looks):
                    yield _Seen(source, name, Path(entry.path), looks)

    def _changed_in(self, source: str, bucket: Bucket) -> Iterator[_Seen]:
        """What is new in an object store; one that cannot be reached does not keep the other sources waiting."""
        try:
            found = {name: Looks(size, time_ns, 0) for name, size, time_ns in bucket.below()}
        except OSError as error:
            self.unreadable[bucket.address] = str(error).splitlines()[0]
            return
        for name, looks in found.items():
            hidden = any(part[0] in "._" for part in name.split("/") if part)
            if hidden or name.endswith(_JOURNALS) or not self._is_news(source, name, looks):
                continue
            journals = (found.get(name + suffix) for suffix in _JOURNALS[:2])
            yield _Seen(source, name, _Remote(bucket, name, any(each and each.size for each in journals)), looks)

    def _is_news(self, source: str, name: str, looks: Looks) -> bool:
        known = self.by_name.get((source, name))
        return known is None or looks != known.looks

    def _copy_all(self, some: Sequence[_Seen]) -> int:
        aside = self.store.aside()
        landed: list[Landed] = []
        new: dict[str, tuple[str, Path]] = {}  # by content
        for number, seen in enumerate(some):
            try:
                found = _copied(seen, aside / str(number))
            except FileNotFoundError:  # taken away again
                continue
            except _UnreadableError as error:
                self.unreadable[str(seen.path)] = str(error)
                continue
            if found is not None:
                landed.append(found)
                if found.sha256 not in self.by_content:
                    self._follow(aside / str(number))
                    new.setdefault(found.sha256, (f"{LANDED}/{found.content}", aside / str(number)))
        if landed:
            self.store.take(dict(new.values()))
            self._ledger.add(self._next, "".join(json.dumps(each) + "\n" for each in landed).encode())
            self._next += 1
            self._ledger.merge(self._next, self._merged)
        for each in landed:  # only now: what could not be kept is copied again
            self._remember(each)
        return len(new)

    def _follow(self, copy: Path) -> None:
        """Make a copy younger than the one before: Spark takes files by their times, to the millisecond, and those of
        the same time in any order; then what is late would hang on that."""
        self._latest_ns = max(copy.stat().st_mtime_ns, self._latest_ns + 1_000_000)
        os.utime(copy, ns=(self._latest_ns, self._latest_ns))

    def _merged(self, parts: Sequence[bytes]) -> bytes:
        if not self.passing:
            return b"".join(parts)
        lines = (line for part in parts for line in part.splitlines(keepends=True))
        return b"".join(line for line in lines if not self._is_gone(*json.loads(line)[:2]))

    def _is_gone(self, source: str, name: str) -> bool:
        return source in self.passing and not self._path_of(source, name).exists()

    def _path_of(self, source: str, name: str) -> Path:
        """Where a file of a passing source lies: what brokers sent waits on a disk."""
        folder = self.sources[source]
        assert isinstance(folder, Path)
        return folder / name

    def forget_done(self) -> None:
        """Remove files of passing sources whose copies are gone: they are where they should be."""
        landed = list(self._of_passing.items())
        waiting = set(self.store.names(LANDED)) if landed else set()
        for (source, name), each in landed:
            if each.content not in waiting:
                self._path_of(source, name).unlink(missing_ok=True)
                del self._of_passing[source, name], self.by_name[source, name]
                self.by_content.pop(each.sha256, None)

    def _remember(self, landed: Landed) -> None:
        self.by_name[landed.source, landed.name] = landed
        if landed.source in self.passing:
            self._of_passing[landed.source, landed.name] = landed
        self.by_content.setdefault(landed.sha256, landed)

    def waiting(self) -> list[str]:
        """The names of the copies that nobody has done yet, in the order of what the files are called."""
        return sorted(self.store.names(LANDED), key=lambda copy: (self.of(copy)[:2], copy))

    def of(self, copy: str) -> Landed:
        """What a copy is the copy of."""
        digest, _, form = copy.partition(".")
        # After a crash between the copy and the note of it, when the file itself has gone: the copy is all there is.
        unknown = Landed("", copy, Looks(0, 0, 0), digest, None if form == "unknown" else form)
        return self.by_content.get(digest, unknown)

    def done(self, copies: Iterable[str]) -> None:
        """Remove copies that nobody needs any more; what they were is remembered."""
        self.store.remove(f"{LANDED}/{copy}" for copy in copies)

    def set_aside(self, copy: str) -> None:
        """Keep a copy that cannot be read, under a name that people know."""
        landed = self.of(copy)
        place = f"{landed.sha256[:12]}-{Path(landed.name).name}"
        if place not in self.store.names(QUARANTINE):
            self.store.write(f"{QUARANTINE}/{place}", self.store.read(f"{LANDED}/{copy}"))


def nothing_new(source: str | Path, home: str | Path) -> bool:
    """Whether a stream that was here before would find nothing to do: all that is there has landed, and is done."""
    inbox, place = local_path(source).absolute(), local_path(home).absolute()
    if not inbox.is_dir() or not (place / "ledger").exists():
        return False
    with alone_in(place):
        landing = Landing({"": inbox}, Folder(place))
        landing.land()
        return not landing.waiting()  # a copy stays until its batch is done


def format_by_content(first: bytes, name: str) -> str | None:
    """The format of a file by its first bytes, or else by its name."""
    if first.startswith(b"PAR1"):
        return "parquet"
    if first.startswith(b"SQLite format 3\0"):
        return "sqlite"
    by_name = FORMATS.get(PurePath(name).suffix.lower())
    return None if by_name == "parquet" else by_name


# --- Looking


class _Remote(NamedTuple):
    """A file of an object store."""

    bucket: Bucket
    name: str
    has_journal: bool  # beside it, if it is a database

    def __str__(self) -> str:
        return f"{self.bucket.address}/{self.name}"


class _Seen(NamedTuple):
    """A file or a run folder that is new, or has changed."""

    source: str
    name: str
    path: Path | _Remote
    looks: Looks


def _entries_below(folder: str, runs: bool) -> Iterator[os.DirEntry[str]]:
    """Files, and with `runs` run folders, by name; but nothing hidden."""
    with os.scandir(folder) as found:
        entries = sorted((entry for entry in found if entry.name[0] not in "._"), key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if runs and Path(entry.path, RUN_FILE).exists():
                yield entry
            else:
                yield from _entries_below(entry.path, runs)
        elif entry.is_file() and not entry.name.endswith(_JOURNALS):
            yield entry


def _looks(entry: os.DirEntry[str] | Path) -> Looks:
    within = _entries_below(str(os.fspath(entry)), runs=False) if entry.is_dir() else (entry,)
    seen = [each.stat() for each in within]
    return Looks(
        sum(one.st_size for one in seen),
        max((one.st_mtime_ns for one in seen), default=0),
        max((one.st_ctime_ns for one in seen), default=0),
    )


def _as_text(name: str) -> str:
    """A name as it can be kept: other bytes than those of UTF-8 are written out."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _together(changed: Iterator[_Seen]) -> Iterator[list[_Seen]]:
    """So many files at a time that their copies are not too much beside the others."""
    some: list[_Seen] = []
    size = 0
    for seen in changed:
        some.append(seen)
        size += seen.looks.size
        if len(some) == _TOGETHER or size > _TOGETHER_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


# --- Copying


class _UnreadableError(Exception):
    """The system does not let us read a file."""


def _copied(seen: _Seen, copy: Path) -> Landed | None:
    """Copy a file, and say what it is; None if somebody is still writing it."""
    form: str | None
    if isinstance(seen.path, _Remote):  # whole or not there: a store takes no half files
        digest, form = _copied_file(seen.name, _opened_remote(seen.path), copy)
        open_too = form == "sqlite" and seen.path.has_journal
        return Landed(seen.source, seen.name, seen.looks, digest, OPEN_DATABASE if open_too else form)
    if seen.path.is_dir():
        with copy.open("wb") as file:
            digest, form = _packed(seen.path, file), RUN_FOLDER
    else:
        digest, form = _copied_file(seen.name, _opened(seen.path), copy)
    if _looks(seen.path) != seen.looks:
        return None
    if form == "sqlite" and any(journal.exists() and journal.stat().st_size for journal in _journals(seen.path)):
        form = OPEN_DATABASE  # part of it is in there
    return Landed(seen.source, seen.name, seen.looks, digest, form)


def _copied_file(name: str, opened: Any, copy: Path) -> tuple[str, str | None]:
    digest, first = hashlib.sha256(), b""
    with closing(opened) as source, copy.open("wb", buffering=0) as file:
        while chunk := _read(source):
            first = first or chunk[:16]
            digest.update(chunk)
            file.write(chunk)
        if not first:
            file.write(b"\n")  # Spark passes over files with nothing in them
    return digest.hexdigest(), format_by_content(first, name)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb", buffering=0)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _UnreadableError(error.strerror or str(error)) from error


def _opened_remote(remote: _Remote) -> Any:
    try:
        return remote.bucket.opened(remote.name)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _UnreadableError(str(error).splitlines()[0]) from error


def _read(source: Any) -> bytes:
    try:
        return bytes(source.read(_CHUNK))
    except OSError as error:
        raise _UnreadableError(error.strerror or str(error)) from error


def _packed(folder: Path, copy: BinaryIO) -> str:
    """Pack the files of a folder, and say what they are: the same files give the same name."""
    digest = hashlib.sha256()
    with tarfile.open(fileobj=copy, mode="w") as packed:
        for entry in _entries_below(str(folder), runs=False):
            with _opened(Path(entry.path)) as file:
                content = file.read()
            name = Path(entry.path).relative_to(folder).as_posix()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return digest.hexdigest()


def _journals(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in _JOURNALS[:2]]
