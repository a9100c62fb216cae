"""Files that arrive in a folder, made safe: copied whole, under names that follow from their content.

Spark knows a file by its name, and forgets files that are a week older than the newest. What comes home from a field is
older than that, and comes again under its name with more rows. So each content is copied once to a folder where no
name comes twice and every file is new; Spark reads that. `landed.jsonl` remembers what was copied, and from where.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Final

from serai.spark.places import alone_in, local_path

FORMATS: Final = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
_CHUNK: Final = 1 << 20
_LEDGER: Final = "landed.jsonl"
_JOURNALS: Final = ("-wal", "-journal", "-shm")
OPEN_DATABASE: Final = "open-sqlite"
"""The format of a database that was copied while somebody wrote it."""


@dataclass(frozen=True)
class Landed:
    """A file as it came: its name below the folder, how it looked, and what is in it."""

    name: str
    size: int
    time_ns: int
    changed_ns: int  # also when it was put back with an old time
    sha256: str
    format: str | None  # None: nothing that can be read

    @property
    def content(self) -> str:
        """The name of the copy."""
        return f"{self.sha256}.{self.format or 'unknown'}"


class Landing:
    """Copies what arrives below `source` to `home/landed`, each content once."""

    def __init__(self, source: Path, home: Path) -> None:
        self.source, self.folder, self.ledger = source, home / "landed", home / _LEDGER
        self.folder.mkdir(parents=True, exist_ok=True)
        self.by_name: dict[str, Landed] = {}  # as it was seen last
        self.by_content: dict[str, Landed] = {}
        for left in self.folder.glob(".*"):
            left.unlink()
        for line in self.ledger.read_text(encoding="utf-8").splitlines() if self.ledger.exists() else ():
            try:
                self._remember(Landed(**json.loads(line)))
            except ValueError:  # cut short by a crash: the file is looked at again
                continue

    def land(self) -> int:
        """Copy what is new or has changed; how many contents were new."""
        new = 0
        for path in _files_below(self.source):
            name = path.relative_to(self.source).as_posix()
            try:
                looks = _looks(path)
                known = self.by_name.get(name)
                if known is not None and looks == (known.size, known.time_ns, known.changed_ns):
                    continue
                new += self._copy(path, name, looks)
            except FileNotFoundError:  # taken away again
                continue
        return new

    def _copy(self, path: Path, name: str, looks: tuple[int, int, int]) -> int:
        aside = self.folder / f".{os.getpid()}"
        with path.open("rb") as source, aside.open("wb") as copy:
            digest = _copied(source, copy)
            if copy.tell() == 0:
                copy.write(b"\n")  # Spark passes over files with nothing in them
            copy.flush()
            os.fsync(copy.fileno())
        if _looks(path) != looks:  # somebody is still writing it
            aside.unlink()
            return 0
        form = format_by_content(aside, name)
        if form == "sqlite" and any(journal.exists() and journal.stat().st_size for journal in _journals(path)):
            form = OPEN_DATABASE  # part of it is in there
        landed = Landed(name, *looks, digest, form)
        new = digest not in self.by_content
        if new:
            aside.rename(self.folder / landed.content)
        else:
            aside.unlink()
        self._remember(landed)
        with self.ledger.open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps(asdict(landed), ensure_ascii=False) + "\n")
        return int(new)

    def _remember(self, landed: Landed) -> None:
        self.by_name[landed.name] = landed
        self.by_content.setdefault(landed.sha256, landed)

    def of(self, copy: str | Path) -> Landed:
        """What a copy is the copy of."""
        name = Path(copy).name
        digest, _, form = name.partition(".")
        # After a crash between the copy and the note of it, when the file itself has gone: the copy is all there is.
        return self.by_content.get(digest) or Landed(name, 0, 0, 0, digest, None if form == "unknown" else form)

    def done(self, copies: list[Path]) -> None:
        """Remove copies that nobody needs any more; what they were is remembered."""
        for copy in copies:
            copy.unlink(missing_ok=True)

    def set_aside(self, copy: Path) -> Path:
        """Keep a copy that cannot be read, under a name that people know; where."""
        landed = self.of(copy)
        place = self.folder.with_name("quarantine") / f"{landed.sha256[:12]}-{Path(landed.name).name}"
        place.parent.mkdir(exist_ok=True)
        if not place.exists() and copy.exists():
            shutil.copyfile(copy, place)
        return place


def nothing_new(source: str | Path, home: str | Path) -> bool:
    """Whether a stream that was here before would find nothing to do: all that is there has landed, and is done."""
    inbox, place = local_path(source).absolute(), local_path(home).absolute()
    if not inbox.is_dir() or not (place / _LEDGER).exists():
        return False
    with alone_in(place):
        landing = Landing(inbox, place)
        landing.land()
        return not any(landing.folder.iterdir())  # a copy stays until its batch is done


def format_by_content(path: Path, name: str) -> str | None:
    """The format of a file by its first bytes, or else by its name."""
    with path.open("rb") as file:
        first = file.read(16)
    if first.startswith(b"PAR1"):
        return "parquet"
    if first == b"SQLite format 3\0":
        return "sqlite"
    by_name = FORMATS.get(Path(name).suffix.lower())
    return None if by_name == "parquet" else by_name


def _files_below(folder: Path) -> list[Path]:
    found = []
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        found += [Path(where) / name for name in sorted(names) if name[0] not in "._" and not name.endswith(_JOURNALS)]
    return found


def _journals(path: Path) -> list[Path]:
    return [path.with_name(path.name + suffix) for suffix in _JOURNALS[:2]]


def _looks(path: Path) -> tuple[int, int, int]:
    seen = path.stat()
    return seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _copied(source: BinaryIO, copy: BinaryIO) -> str:
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK):
        digest.update(chunk)
        copy.write(chunk)
    return digest.hexdigest()
