"""One batch: landed files to rows, to new rows, to pairs, to the tables; done again after a crash it gives the same.

plans/N.json    the files, the subscriptions and the time of batch N, fixed before it begins
state/N.parquet the sequence numbers that have come, of those nodes that N has changed
work/N/         what is made on the way
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyroaring import BitMap64

from serai.core.conditions import Kind, kinds_by_use
from serai.core.errors import BadInput, CannotRun
from serai.matching.boxes import boxes_of, kind_of
from serai.matching.files import ParquetFiles, Piece, Rows, read_pieces, these_files
from serai.matching.landing import Landing
from serai.matching.subscriptions import readings_of, rejected_rows
from serai.matching.worker import Matcher
from serai.pipeline.config import Pipeline
from serai.pipeline.numbers import Key, Numbers
from serai.pipeline.readers import OWN, read_log
from serai.pipeline.tables import SCHEMAS, Tables

FILES_PER_BATCH = 1000
_TIME = pa.timestamp("us", "UTC")


class Hands(Protocol):
    """Who does the work: this process, or workers of Spark."""

    def each(self, work: Callable[[int], dict[str, Any]], count: int) -> list[dict[str, Any]]:
        """The answers of `work` to the numbers 0 .. count-1."""

    def pairs(self, matcher: Matcher, files: ParquetFiles, answer: Path, without: Mapping[Piece, Rows]) -> None:
        """Write the pairs of the events in the files but for rows `without`."""


@dataclass(frozen=True)
class Plan:
    """What a batch is made of."""

    batch: int
    copies: list[str]
    subscriptions: str
    now: float


@dataclass(frozen=True)
class Done:
    """What there was in a batch."""

    batch: int
    files: int
    quarantined: int
    rows: int
    new: int
    repeated: int
    rejected: int
    pairs: int


@dataclass
class Batches:
    """Makes batches of what has landed, one after the other."""

    config: Pipeline
    landings: list[Landing]
    tables: Tables
    hands: Hands
    numbers: Numbers | None = None

    def run_pending(self, now: Callable[[], float]) -> Iterator[Done]:
        """Make batches until nothing is left; one that was begun before a crash is made first, as it was planned."""
        self._clear_left_overs()
        while (plan := self._plan(now)) is not None:
            yield self._make(plan)

    # --- Plans

    def _plan(self, now: Callable[[], float]) -> Plan | None:
        last = self.tables.last_batch()
        batch = 0 if last is None else last + 1
        path = self._place_of_plan(batch)
        if path.exists():
            return Plan(**json.loads(path.read_text(encoding="utf-8")))
        waiting = self._waiting()
        if not waiting:
            return None
        copies = [str(copy) for _, copy in waiting[:FILES_PER_BATCH]]
        plan = Plan(batch, copies, str(self._fixed_subscriptions()), now())
        _write_once(path, json.dumps(asdict(plan), indent=1))
        return plan

    def _fixed_subscriptions(self) -> Path:
        """A copy of the table of subscriptions that does not change any more."""
        table = read_subscriptions(self.config.subscriptions)
        aside = self.config.home / "subscriptions" / f".{os.getpid()}"
        aside.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, aside)
        place = aside.with_name(f"{_digest(aside)}.parquet")
        aside.replace(place)
        return place

    def _clear_left_overs(self) -> None:
        """Clear away copies that a crash has left: their batch is in the journal, so they are not read again."""
        if (last := self.tables.last_batch()) is None or not self._waiting():
            return
        done = self.tables.read("journal", ["sha256", "state"]).to_pylist()
        state = {row["sha256"]: row["state"] for row in done}
        planned = json.loads(self._place_of_plan(last).read_text(encoding="utf-8"))["copies"]
        for landing, copy in self._waiting():
            digest, _, form = copy.name.partition(".")
            # One that is tried again has a number for its format, and its content has been in the journal before.
            if str(copy) in planned or (digest in state and not form.isdigit()):
                if state[digest] == "quarantined":
                    landing.set_aside(copy)
                landing.done([copy])

    def _waiting(self) -> list[tuple[Landing, Path]]:
        return [
            (landing, copy)
            for landing in self.landings
            for copy in sorted(landing.folder.iterdir())
            if not copy.name.startswith(".")
        ]

    def _place_of_plan(self, batch: int) -> Path:
        return self.config.home / "plans" / f"{batch:08}.json"

    # --- Making a batch

    def _make(self, plan: Plan) -> Done:
        work = self.config.home / "work" / f"{plan.batch:08}"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        if self.numbers is None:
            self.numbers = Numbers.before(self.config.home / "state", plan.batch)
        asked = pq.read_table(plan.subscriptions)
        known = self.tables.known_columns()
        read = self.hands.each(self._reading(plan, asked, known, work), len(plan.copies))
        files = these_files([work / f"{number}.parquet" for number, each in enumerate(read) if each["reason"] is None])
        without, more, counts = self._new(files)
        unusable = self._match(files, asked, without, work)
        journal = self._journal(plan, read, files, counts)
        rejects = [
            reject | {"sha256": row["sha256"], "file": row["name"], "batch": plan.batch}
            for row, each in zip(journal, read, strict=True)
            for reject in each["rejects"]
        ]
        if plan.subscriptions != self._subscriptions_before(plan.batch):  # said once, not with every batch
            of_table = {"sha256": None, "file": self.config.subscriptions.name, "batch": plan.batch}
            rejects += [{name: row[name] for name in ("id", "reason", "row")} | of_table for row in unusable]
        self.numbers.write(plan.batch, more)
        pairs = self._commit(plan, files, without, journal, rejects, work)
        self.numbers.add(more)
        self._clear(plan, journal, work)
        return Done(
            batch=plan.batch,
            files=len(journal),
            quarantined=sum(row["state"] == "quarantined" for row in journal),
            rows=sum(row["rows"] for row in journal),
            new=sum(row["new"] for row in journal),
            repeated=sum(row["repeated"] for row in journal),
            rejected=len(rejects),
            pairs=pairs,
        )

    def _reading(self, plan: Plan, asked: pa.Table, known: pa.Schema, work: Path) -> Callable[[int], dict[str, Any]]:
        formats = [self._landed(copy).format for copy in plan.copies]
        without_types = {"csv", "json"} & set(formats) and "where" in asked.column_names
        kinds: dict[str, Kind] = kinds_by_use(asked["where"].to_pylist()) if without_types else {}
        config = self.config

        def read(number: int) -> dict[str, Any]:
            try:
                copy = Path(plan.copies[number])
                found = read_log(copy, formats[number], kinds, known, config.id, config.time, config.rename)
            except BadInput as error:
                return {"rows": 0, "rejects": [], "reason": str(error)}
            pq.write_table(found.rows, work / f"{number}.parquet")
            return {"rows": len(found.rows), "rejects": [reject._asdict() for reject in found.rejected], "reason": None}

        return read

    def _landed(self, copy: str) -> Any:
        folder = Path(copy).parent
        return next(landing for landing in self.landings if landing.folder == folder).of(copy)

    def _new(self, files: ParquetFiles) -> tuple[dict[Piece, Rows], dict[Key, BitMap64], dict[str, list[int]]]:
        """Rows that came before; the numbers that are new; and of each file how many were new and repeated."""
        assert self.numbers is not None
        more: dict[Key, BitMap64] = {}
        without: dict[Piece, Rows] = {}
        counts: dict[str, list[int]] = {path: [0, 0] for path in files.paths}
        for piece in files.pieces:
            columns = pa.schema([files.schema.field(name) for name in ("node", "epoch", "seq", "event")])
            table = pa.concat_tables([columns.empty_table(), *read_pieces([piece], columns, 1 << 20)])
            fresh = self._fresh(table, more)
            without[piece] = np.flatnonzero(~fresh)
            counts[piece.path][0] += int(fresh.sum())
            counts[piece.path][1] += int((~fresh).sum())
        return without, more, counts

    def _fresh(self, table: pa.Table, more: dict[Key, BitMap64]) -> NDArray[np.bool_]:
        assert self.numbers is not None
        fresh = np.zeros(len(table), np.bool_)
        if self.config.numbered:
            keys = pc.binary_join_element_wise(table["node"], table["epoch"], "\0").combine_chunks().dictionary_encode()
            seq = table["seq"].to_numpy()
            codes = keys.indices.to_numpy()
            for code, key in enumerate(keys.dictionary.to_pylist()):
                rows = np.flatnonzero(codes == code)
                node, _, epoch = key.partition("\0")
                fresh[rows] = self.numbers.fresh((node, epoch), seq[rows], more)
            return fresh
        # Other ids are known by a hash of 63 bits: that any two of 10^8 events share one has a chance of 1 in 2,000.
        ids = np.array([_hashed(event) for event in table["event"].to_pylist()], np.int64)
        return self.numbers.fresh(("", ""), ids, more)

    def _subscriptions_before(self, batch: int) -> str | None:
        before = self._place_of_plan(batch - 1)
        return json.loads(before.read_text(encoding="utf-8"))["subscriptions"] if before.exists() else None

    def _match(
        self, files: ParquetFiles, asked: pa.Table, without: Mapping[Piece, Rows], work: Path
    ) -> list[dict[str, Any]]:
        """Write the pairs; which subscriptions cannot be used."""
        kinds = {column.name: kind_of(column.type) for column in files.schema if column.name not in OWN[3:4]}
        usable = {name: kind for name, kind in kinds.items() if kind is not None}
        readings = readings_of(asked, usable, "time")
        boxes = boxes_of(readings, usable, asked["subscription"].combine_chunks())
        (work / "pairs").mkdir()
        if files.pieces and len(boxes.ids):
            self.hands.pairs(Matcher(boxes, columns=("event", *boxes.attributes)), files, work / "pairs", without)
        bad: list[dict[str, Any]] = rejected_rows(asked, readings).to_pylist()
        return bad

    def _journal(
        self, plan: Plan, read: list[dict[str, Any]], files: ParquetFiles, counts: Mapping[str, list[int]]
    ) -> list[dict[str, Any]]:
        rows = []
        places = iter(files.paths)
        for copy, each in zip(plan.copies, read, strict=True):
            landed = self._landed(copy)
            new, repeated = counts[next(places)] if each["reason"] is None else (0, 0)
            rows.append(
                {
                    "batch": plan.batch,
                    "sha256": landed.sha256,
                    "name": landed.name,
                    "bytes": landed.size,
                    "format": landed.format,
                    "arrived": _moment(plan.now),
                    "rows": each["rows"],
                    "new": new,
                    "repeated": repeated,
                    "rejected": len(each["rejects"]),
                    "state": "done" if each["reason"] is None else "quarantined",
                    "reason": each["reason"],
                }
            )
        return rows

    def _commit(
        self,
        plan: Plan,
        files: ParquetFiles,
        without: Mapping[Piece, Rows],
        journal: list[dict[str, Any]],
        rejects: list[dict[str, Any]],
        work: Path,
    ) -> int:
        """Add the batch to the tables, the journal last."""
        if any(row["new"] for row in journal):
            self.tables.append("events", plan.batch, _events(plan, files, without), ["day"])
        found = [pq.read_table(path) for path in sorted((work / "pairs").glob("*.parquet"))]
        schema = SCHEMAS["pairs"].remove(2)
        pairs = pa.concat_tables([schema.empty_table(), *(table.cast(schema) for table in found)])
        self.tables.append("pairs", plan.batch, pairs.append_column("batch", _repeated(plan.batch, len(pairs))))
        self.tables.append("rejects", plan.batch, pa.Table.from_pylist(rejects, SCHEMAS["rejects"]))
        self.tables.append("journal", plan.batch, pa.Table.from_pylist(journal, SCHEMAS["journal"]))
        return len(pairs)

    def _clear(self, plan: Plan, journal: list[dict[str, Any]], work: Path) -> None:
        """After the journal: copies are not needed any more, but for those that nobody could read."""
        for copy, row in zip(plan.copies, journal, strict=True):
            landing = next(each for each in self.landings if each.folder == Path(copy).parent)
            if row["state"] == "quarantined":
                landing.set_aside(Path(copy))
            landing.done([Path(copy)])
        shutil.rmtree(work, ignore_errors=True)


def _events(plan: Plan, files: ParquetFiles, without: Mapping[Piece, Rows]) -> pa.RecordBatchReader:
    """The new rows, as the table of events has them, some at a time."""
    schema = files.schema
    for name, kind in (("arrived", _TIME), ("batch", pa.int64()), ("day", pa.string())):
        schema = schema.append(pa.field(name, kind))

    def rows() -> Iterable[pa.RecordBatch]:
        for table in read_pieces(files.pieces, files.schema, 1 << 18, without):
            table = table.append_column("arrived", pa.repeat(pa.scalar(_moment(plan.now), _TIME), len(table)))
            table = table.append_column("batch", _repeated(plan.batch, len(table)))
            table = table.append_column("day", pc.strftime(table["time"], "%Y-%m-%d"))
            yield from table.cast(schema).combine_chunks().to_batches()

    return pa.RecordBatchReader.from_batches(schema, rows())


def _repeated(batch: int, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(batch, pa.int64()), rows)


def _moment(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC)


def _hashed(event: str) -> int:
    import hashlib

    return int.from_bytes(hashlib.blake2b(event.encode(), digest_size=8).digest()) >> 1


def _digest(path: Path) -> str:
    import hashlib

    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _write_once(path: Path, text: str) -> None:
    """Write a file that must not be there: of two runners the second fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.write_text(text, encoding="utf-8")
    try:
        os.link(aside, path)
    except FileExistsError:
        raise CannotRun(f"{path}: another serai has begun this batch; let only one work on a home") from None
    finally:
        aside.unlink()


def read_subscriptions(path: Path) -> pa.Table:
    """The table of subscriptions, with ids as texts."""
    from serai.matching.texts import read_texts

    if not path.exists():
        raise BadInput(f"{path}: no such file; it should hold the columns subscription and where")
    form = {".csv": "csv", ".jsonl": "json", ".ndjson": "json"}.get(path.suffix.lower())
    if form is not None:
        table, rejected = read_texts(path, form, {}, ("subscription",))
        if rejected:
            raise BadInput(f"{path}: {rejected[0].reason}: {rejected[0].row}")
    else:
        files = these_files([path] if path.is_file() else sorted(path.glob("*.parquet")))
        table = pa.concat_tables([files.schema.empty_table(), *read_pieces(files.pieces, files.schema, 1 << 20)])
    if "subscription" not in table.column_names:
        raise BadInput(f"{path}: no column subscription; its columns are: {', '.join(table.column_names)}")
    place = table.column_names.index("subscription")
    return table.set_column(place, "subscription", table["subscription"].cast(pa.string()))
