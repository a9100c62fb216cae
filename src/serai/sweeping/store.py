"""The folder of a sweep: what was asked for, the finished runs, and the table made from them. No Spark here.

    sweep.json        the plan and the versions that its numbers depend on
    parts/            finished runs, some at a time: written aside, then renamed to a name that follows from the content
    metrics.parquet   one row for every run of the plan, sorted
    runs/             with --keep: a folder for each run

A part says in its footer which runs it holds. Writing it twice writes the same file; two parts with a run in common
hold the same row, and the table takes one of them. So tasks may be lost, retried or run twice, and a sweep may be
resumed at any time. Why so: docs/adr/0004-parts-that-can-be-written-twice.md.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

import serai
from serai.core.errors import BadInput, CannotRun, SeraiError
from serai.core.placing import check_can_hold
from serai.log.folder import package_versions
from serai.spark.places import local_path
from serai.sweeping.columns import sweep_schema
from serai.sweeping.plan import Plan, plan_from_json

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Final = 1
PLAN_FILE: Final = "sweep.json"
_TABLE_FILE: Final = "metrics.parquet"
_PARTS: Final = "parts"
_RUNS: Final = "runs"
_RUNS_KEY: Final = b"serai.runs"
_PART_NAME: Final = re.compile(r"(\d+)-([0-9a-f]{32})\.parquet")
_SEEDS_PER_GROUP: Final = 8192
"""Rows are gathered and written so many seeds at a time: memory stays bounded, and the bytes do not depend on it."""
_LEFT_OVER_S: Final = 3600  # a file begun longer ago than this belongs to no task that still runs
_NUMBERS_DEPEND_ON: Final = ("serai", "numpy", "numba")
# What starts runs, matches events or turns results into text and pictures does not change the numbers of a run.
_NO_MATTER: Final = (
    "cli", "matching", "node", "papers", "pipeline", "planning", "replay", "report", "spark", "__main__.py",
)  # fmt: skip


class Segment(NamedTuple):
    """The runs of one cell with seeds `first` .. `stop`-1."""

    cell: str
    first: int
    stop: int


@dataclass(frozen=True)
class Part:
    """A file of finished runs."""

    path: Path
    segments: tuple[Segment, ...]


class OtherSweep(BadInput):
    """The folder keeps a sweep whose runs cannot stand beside those that are asked for."""


class Store:
    """The folder of a sweep."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = local_path(folder).absolute()
        self.parts_folder = self.folder / _PARTS
        self.table = self.folder / _TABLE_FILE

    # --- the plan

    def check(self, plan: Plan) -> None:
        """Refuse a folder that cannot be written to, or holds other things than runs of this sweep."""
        check_can_hold(self.folder, self.folder)
        self._check_same_sweep(plan)

    def open(self, plan: Plan) -> str:
        """Make the folder ready for the runs of a plan; its new mark."""
        self.check(plan)
        self.make_folder(_PARTS)
        with suppress(OSError):
            self._remove_left_overs()
        return self.write_plan(plan)

    def make_folder(self, inside: str = "") -> None:
        """Make the folder, if it is not there, or one inside it."""
        try:
            (self.folder / inside).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotRun(disk_message(error, self.folder)) from error

    def write_plan(self, plan: Plan) -> str:
        """Keep the plan in the folder; returns the mark by which others recognise the folder as this one."""
        described = {"format": FORMAT, "versions": _versions(), "plan": plan.as_json()}
        text = json.dumps(described, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        write_aside(self.folder / PLAN_FILE, text.encode())
        return _digest(text.encode())

    def clear(self) -> None:
        """Remove the sweep that the folder keeps; what others have put beside it stays."""
        for path in [*self.parts_folder.glob("*"), self.folder / PLAN_FILE, self.table]:
            path.unlink(missing_ok=True)

    def is_marked(self, mark: str) -> bool:
        """Whether this folder, as seen from here, is the one that carries the mark.

        A path proves nothing: a worker on another machine may have a folder of the same name on a disk of its own.
        """
        try:
            return _digest((self.folder / PLAN_FILE).read_bytes()) == mark
        except OSError:
            return False

    def plan(self) -> Plan:
        """The plan that the folder keeps."""
        return plan_from_json(self._described()["plan"])

    def versions(self) -> dict[str, str]:
        """The versions that the folder's numbers depend on."""
        versions: dict[str, str] = self._described()["versions"]
        return versions

    def _described(self) -> dict[str, Any]:
        path = self.folder / PLAN_FILE
        try:
            said: dict[str, Any] = json.loads(path.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise BadInput(f"{self.folder}: no sweep is kept there ({PLAN_FILE} is missing)") from None
        except ValueError:
            raise BadInput(f"{path}: damaged, so the folder's sweep is unknown; choose another folder") from None
        if not isinstance(said, dict) or said.get("format") != FORMAT:
            raise BadInput(f"{path}: not of the kind that serai {serai.__version__} reads; choose another folder")
        return said

    def _check_same_sweep(self, plan: Plan) -> None:
        """Refuse a folder whose runs cannot stand beside those of the plan."""
        if not (self.folder / PLAN_FILE).exists():
            if self.folder.exists() and any(self.folder.iterdir()):
                raise BadInput(f"{self.folder}: the folder is not empty and holds no sweep; choose a new name")
            return
        said = self._described()
        if said["plan"]["base"] != plan.base:
            raise OtherSweep(
                f"{self.folder}: holds a sweep of another scenario ({said['plan']['name']}); choose another folder"
            )
        ours = _versions()
        other = [f"{name} {was}" for name, was in said["versions"].items() if ours.get(name) != was]
        if other:
            raise OtherSweep(
                f"{self.folder}: its runs were made with {', '.join(other)}, this is"
                f" {', '.join(f'{name} {ours[name]}' for name in said['versions'] if name in ours)};"
                " their numbers may differ: choose another folder"
            )

    # --- finished runs

    def parts(self) -> tuple[list[Part], list[str]]:
        """The parts that are whole, and the names of those that are not: they are set aside, and run again."""
        whole, damaged = [], []
        for path in sorted(self.parts_folder.glob("*.parquet")):
            segments = _segments_of(path)
            if segments is None:
                damaged.append(path.name)
                path.replace(path.with_suffix(".damaged"))
            else:
                whole.append(Part(path, segments))
        return whole, damaged

    def runs_in_parts(self) -> int:
        """How many runs the parts hold by their names; quick enough to be asked all the time."""
        with suppress(OSError):
            names = (_PART_NAME.fullmatch(entry.name) for entry in os.scandir(self.parts_folder))
            return sum(int(name[1]) for name in names if name)
        return 0

    def run_folder(self, cell: str, seed: int) -> Path:
        """Where --keep writes a run."""
        return self.folder / _RUNS / cell / str(seed)

    def _remove_left_overs(self) -> None:
        """Remove what tasks that were killed had begun to write."""
        long_ago = time.time() - _LEFT_OVER_S
        for path in self.parts_folder.glob(".aside-*"):
            with suppress(OSError):
                if path.stat().st_mtime < long_ago:
                    path.unlink()

    # --- the table

    def write_table(self, plan: Plan, parts: Iterable[Part]) -> Path:
        """Make the table of the plan from the parts: sorted by point, protocol and seed, the same bytes always."""
        import pyarrow.parquet as pq

        rows = _RowsOfParts(parts)
        schema = sweep_schema(plan.network, plan.counts)
        order = {name: place for place, name in enumerate(plan.protocols)}
        with _whole_file(self.table) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
            for cell in sorted(plan.cells, key=lambda cell: (cell.point, order[cell.protocol])):
                end = plan.first_seed + cell.seeds
                for first in range(plan.first_seed, end, _SEEDS_PER_GROUP):
                    group = Segment(cell.id, first, min(first + _SEEDS_PER_GROUP, end))
                    writer.write_table(_at_point(rows.of(group), cell.point, schema))
        return self.table


# --- Writing


def part_content(rows: pa.Table, segments: Iterable[Segment]) -> bytes:
    """The bytes of a part: the same rows, the same bytes."""
    import pyarrow.parquet as pq

    said = rows.replace_schema_metadata({_RUNS_KEY: json.dumps([list(segment) for segment in segments])})
    file = io.BytesIO()
    pq.write_table(said, file, compression="zstd")
    return file.getvalue()


def part_name(content: bytes, runs: int) -> str:
    """The name that a part must have."""
    return f"{runs}-{_digest(content)}.parquet"


def write_aside(place: Path, content: bytes) -> None:
    """Write a file whole or not at all; whoever writes the same at the same time does no harm."""
    try:
        with _whole_file(place) as file:
            file.write(content)
    except OSError as error:
        raise CannotRun(disk_message(error, place)) from error


@contextmanager
def _whole_file(place: Path) -> Iterator[IO[bytes]]:
    """A file to write that gets its name when it is finished: nobody ever sees half of it."""
    with tempfile.NamedTemporaryFile(dir=place.parent, prefix=".aside-", delete=False) as aside:
        try:
            yield aside
            aside.flush()
            os.fsync(aside.fileno())  # a rename may reach the disk before the content does
            Path(aside.name).chmod(0o644)
            Path(aside.name).replace(place)
        except BaseException:
            Path(aside.name).unlink(missing_ok=True)
            raise


def disk_message(error: OSError, place: Path) -> str:
    """What to do about a file that could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{place}: no space left; finished runs are kept: free some space and give the same command again"
    return f"{place}: cannot be written ({error.strerror or error}); choose another folder with --out"


# --- Reading


class _RowsOfParts:
    """The finished runs, found by cell and seed."""

    def __init__(self, parts: Iterable[Part]) -> None:
        self._of_cell: dict[str, list[tuple[Segment, Path]]] = defaultdict(list)
        for part in parts:
            for segment in part.segments:
                self._of_cell[segment.cell].append((segment, part.path))
        # A part with many cells is wanted again soon: neighbouring cells were run by the same tasks.
        self._read = lru_cache(maxsize=256)(_read_part)

    def of(self, wanted: Segment) -> pa.Table:
        """One row for each run of the segment, in the order of seeds."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found = [
            self._read(path)
            for path in dict.fromkeys(
                path
                for held, path in self._of_cell[wanted.cell]
                if held.first < wanted.stop and wanted.first < held.stop
            )
        ]
        if not found:
            raise SeraiError(f"no run of cell {wanted.cell} is finished")  # the sweep was cut short
        rows = pa.concat_tables(found)
        seed = rows["seed"]
        inside = pc.and_(pc.greater_equal(seed, wanted.first), pc.less(seed, wanted.stop))
        rows = rows.filter(pc.and_(pc.equal(rows["cell"], wanted.cell), inside)).sort_by("seed")
        return _each_once(rows, wanted)


def _each_once(rows: pa.Table, wanted: Segment) -> pa.Table:
    """The rows without repetitions; rows of the same run must be equal, as runs are deterministic."""
    seeds: NDArray[np.int64] = rows["seed"].to_numpy()
    again = np.flatnonzero(seeds[1:] == seeds[:-1]) + 1
    if len(again):
        if not rows.take(again).equals(rows.take(again - 1)):
            raise SeraiError(
                f"cell {wanted.cell}: two workers gave different results for the same seed; do they all run on"
                " machines with the same versions installed?"
            )
        rows = rows.take(np.delete(np.arange(len(seeds)), again))
    if rows.num_rows != wanted.stop - wanted.first:
        missing = wanted.stop - wanted.first - rows.num_rows
        raise SeraiError(f"cell {wanted.cell}: {missing} runs are not finished")
    return rows


def _at_point(rows: pa.Table, point: int, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    number = pa.array(np.full(rows.num_rows, point, dtype=np.int32))
    return pa.table([number, *rows.drop_columns("cell").columns], schema=schema)


def _read_part(path: Path) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.read_table(path).replace_schema_metadata(None)


def _segments_of(path: Path) -> tuple[Segment, ...] | None:
    """The runs that a part holds; None if its content is not what its name says."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name, content = _PART_NAME.fullmatch(path.name), path.read_bytes()
    if name is None or _digest(content) != name[2]:
        return None
    metadata: Mapping[bytes, bytes] = pq.read_metadata(pa.BufferReader(content)).metadata
    return tuple(Segment(*segment) for segment in json.loads(metadata[_RUNS_KEY]))


def missing_runs(wanted: Mapping[str, range], parts: Iterable[Part]) -> Iterator[Segment]:
    """The runs of each cell that no part holds, in the order of `wanted`."""
    finished: dict[str, list[Segment]] = defaultdict(list)
    for part in parts:
        for segment in part.segments:
            finished[segment.cell].append(segment)
    for cell, seeds in wanted.items():
        reached = seeds.start  # every seed below it is finished or was handed out; segments may overlap
        for segment in sorted(finished[cell]):
            if reached < min(segment.first, seeds.stop):
                yield Segment(cell, reached, min(segment.first, seeds.stop))
            reached = max(reached, segment.stop)
        if reached < seeds.stop:
            yield Segment(cell, reached, seeds.stop)


# --- Versions


def _versions() -> dict[str, str]:
    """What the numbers of a run depend on: versions, and the sources, which change more often."""
    installed = package_versions()
    return {name: installed[name] for name in _NUMBERS_DEPEND_ON} | {"sources": source_stamp()}


def source_stamp() -> str:
    """A name for the sources that a run's numbers come from."""
    package = Path(serai.__file__).parent
    stamp = hashlib.blake2b(digest_size=8)
    for source in sorted(package.rglob("*.py")):
        place = source.relative_to(package)
        if place.parts[0] not in _NO_MATTER:
            stamp.update(f"{place.as_posix()}\n".encode() + source.read_bytes())
    return stamp.hexdigest()


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
