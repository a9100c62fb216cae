"""One batch: landed files to rows, to new rows, to pairs, to the tables; done again after a crash it gives the same.

What a batch is made of, its files, subscriptions and time, is fixed in the table `plans` before it begins. Workers read
files into pieces (`serai.pipeline.work`), here is decided which rows are new, workers keep those, and here they are
named to the tables, the journal last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from serai.core.conditions import Kind, kinds_by_use
from serai.core.errors import CannotRun
from serai.matching.boxes import boxes_of, kind_of
from serai.matching.landing import Landing
from serai.matching.match import warm_up
from serai.matching.subscriptions import readings_of, rejected_rows
from serai.matching.worker import Matcher
from serai.pipeline.again import Rematching, write_pieces
from serai.pipeline.asked import read_subscriptions
from serai.pipeline.config import Pipeline
from serai.pipeline.hands import Hands
from serai.pipeline.numbers import Ids, Numbers, rows_by_key
from serai.pipeline.parts import parts_of, write_part
from serai.pipeline.readers import How
from serai.pipeline.recorded import RECORDED
from serai.pipeline.summary import Summary, added_up
from serai.pipeline.tables import SCHEMAS, Tables
from serai.pipeline.work import (
    Copy,
    Keeping,
    Reading,
    as_ipc,
    columns_of,
    read_ipc,
    rejects_table,
    with_columns,
    work_of,
)

_FILES: Final = 10_000  # of a batch
_BYTES: Final = 1 << 30
_FILES_OF_TASK: Final = 1000
_BYTES_OF_TASK: Final = 1 << 26
_OWN: Final = ("event", "arrived", "batch", "day")
"""Columns of events that nobody can ask for."""


@dataclass(frozen=True)
class Plan:
    """What a batch is made of."""

    batch: int
    copies: list[str]
    subscriptions: str
    now: float
    days: tuple[float, float] | None = None  # match these anew, from and to; there are no files then


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


class Batches:
    """Makes batches of what has landed, one after the other."""

    def __init__(self, config: Pipeline, landing: Landing, tables: Tables, hands: Hands) -> None:
        self.config, self.landing, self.tables, self.hands = config, landing, tables, hands
        self.store = tables.store
        self.days: tuple[float, float] | None = None  # to be matched anew, when all files are done
        self._numbers: Numbers | None = None
        self._ids: dict[str, Ids] = {}
        self._matcher: tuple[Any, Matcher | None, list[dict[str, Any]]] | None = None
        self._cleared = False

    def run_pending(self, now: Callable[[], float]) -> Iterator[Done]:
        """Make batches until nothing is left; one that was begun before a crash is made first, as it was planned."""
        self._clear_left_overs()
        while (plan := self._plan(now)) is not None:
            yield self._make(plan) if plan.days is None else self._match_again(plan)

    # --- Plans

    def _plan(self, now: Callable[[], float]) -> Plan | None:
        last = self.tables.last_batch()
        batch = 0 if last is None else last + 1
        if (known := self.tables.plan(batch)) is not None:
            return Plan(**json.loads(known))
        copies = self._first_of(self.landing.waiting())
        if not copies and self.days is None:
            return None
        days = None if copies else self.days
        plan = Plan(batch, copies, self._fixed_subscriptions(), now(), days)
        said = json.dumps(asdict(plan))
        table = pa.Table.from_pylist([{"batch": batch, "plan": said}], SCHEMAS["plans"])
        self.tables.append("plans", batch, table, uuid4().hex)
        if self.tables.plan(batch) != said:
            raise CannotRun(f"{self.store}: another serai has begun batch {batch}; let only one work on a home")
        self.days = self.days if copies else None
        return plan

    def _first_of(self, waiting: Sequence[str]) -> list[str]:
        """So many files as a batch takes: one at least."""
        size = 0
        copies: list[str] = []
        for copy in waiting[:_FILES]:
            size += self.landing.of(copy).size
            if copies and size > _BYTES:
                break
            copies.append(copy)
        return copies

    def _fixed_subscriptions(self) -> str:
        """A copy of the table of subscriptions that does not change any more."""
        data = as_ipc(read_subscriptions(self.config.subscriptions))
        name = f"subscriptions/{hashlib.sha256(data).hexdigest()[:16]}.arrow"
        self.store.write(name, data)
        return name

    def _clear_left_overs(self) -> None:
        """After a start, clear away copies of batches that are in the journal: they are not read again."""
        if self._cleared:
            return
        self._cleared = True
        last, waiting = self.tables.last_batch(), self.landing.waiting()
        if last is None or not waiting:
            return
        done = self.tables.read("journal", ["sha256", "state"])
        state = dict(zip(done["sha256"].to_pylist(), done["state"].to_pylist(), strict=True))
        known = self.tables.plan(last)
        planned = set() if known is None else set(json.loads(known)["copies"])
        for copy in waiting:
            digest, _, form = copy.partition(".")
            # One that is tried again has a number for its format, and its content has been in the journal before.
            if copy in planned or (digest in state and not form.isdigit()):
                if state[digest] == "quarantined":
                    self.landing.set_aside(copy)
                self.landing.done([copy])

    # --- Making a batch

    def _make(self, plan: Plan) -> Done:
        self.store.remove_folder(work_of(plan.batch))
        asked = read_ipc(self.store, plan.subscriptions)
        tasks = self._tasks(plan)
        read, schema = self._read(plan, asked, tasks)
        files = [file for answer in read for file in answer["files"]]
        pieces = [piece for answer in read for piece in answer["pieces"]]
        new = self._new(plan, read)
        matcher, unusable = self._matching(plan, asked, schema)
        keeping = Keeping(
            self.store,
            plan.batch,
            tuple(piece["name"] for piece in pieces),
            tuple(sum(rows for _, rows in piece["rows"]) for piece in pieces),
            schema,
            matcher,
            plan.now,
            not self.tables.has("events", plan.batch),
        )
        kept = self.hands.each(keeping, len(pieces))
        journal = self._journal(plan, tasks, files, new)
        self._keep_state(plan, pieces)
        rejects = [part for answer in read for part in parts_of(answer["rejects"])]
        if plan.subscriptions != self._subscriptions_before(plan.batch):  # said once, not with every batch
            rejects += self._reject_subscriptions(plan.batch, unusable)
        parts = {name: [part for answer in kept for part in parts_of(answer[name])] for name in ("events", "pairs")}
        self._commit(plan, parts | {"rejects": rejects}, schema, journal)
        self._clear(plan, journal)
        return Done(
            batch=plan.batch,
            files=len(journal),
            quarantined=sum(row["state"] == "quarantined" for row in journal),
            rows=sum(row["rows"] for row in journal),
            new=sum(row["new"] for row in journal),
            repeated=sum(row["repeated"] for row in journal),
            rejected=sum(part.rows for part in rejects),
            pairs=sum(part.rows for part in parts["pairs"]),
        )

    def _tasks(self, plan: Plan) -> list[tuple[Copy, ...]]:
        """The files of a plan, shared out by their sizes alone: made anew the tasks are the same."""
        tasks: list[list[Copy]] = []
        room = 0
        for copy in plan.copies:
            landed = self._landed(copy)
            if not tasks or landed.size > room or len(tasks[-1]) == _FILES_OF_TASK:
                tasks.append([])
                room = _BYTES_OF_TASK
            tasks[-1].append(Copy(copy, landed.format, landed.sha256, landed.name))
            room -= landed.size
        return [tuple(task) for task in tasks]

    def _landed(self, copy: str) -> Any:
        return self.landing.of(copy)

    def _read(
        self, plan: Plan, asked: pa.Table, tasks: list[tuple[Copy, ...]]
    ) -> tuple[list[dict[str, Any]], pa.Schema]:
        """What became of the files, task by task; and the columns that all pieces have together.

        Tasks do not know of each other's new columns. Where two made one of different types, the later task is done
        again with the type that the earlier gave it.
        """
        texts = {"csv", "json"} & {copy.format for task in tasks for copy in task}
        kinds: dict[str, Kind] = {}
        if texts and "where" in asked.column_names:
            kinds = kinds_by_use(asked["where"].to_pylist())
        how = How(self.config.id, self.config.time, self.config.rename, kinds)
        schema = self.tables.known_columns()
        answers: dict[int, dict[str, Any]] = {}
        again = list(range(len(tasks)))
        while again:
            reading = Reading(self.store, plan.batch, tuple(tasks[task] for task in again), schema, how, tuple(again))
            answers |= dict(zip(again, self.hands.each(reading, len(again)), strict=True))
            schema, again = self._together(answers)
        return [answers[task] for task in range(len(tasks))], schema

    def _together(self, answers: dict[int, dict[str, Any]]) -> tuple[pa.Schema, list[int]]:
        schema, differ = self.tables.known_columns(), []
        for task in sorted(answers):
            for piece in answers[task]["pieces"]:
                more = columns_of(piece)
                if any(
                    column.name in schema.names and schema.field(column.name).type != column.type for column in more
                ):
                    differ.append(task)
                    break
                schema = with_columns(schema, more)
        return schema, differ

    # --- What is new

    def _new(self, plan: Plan, read: list[dict[str, Any]]) -> list[tuple[int, int]]:
        """Mark which rows of the pieces are new; of each file how many were new, and how many repeated."""
        counts: list[tuple[int, int]] = []
        for answer in read:
            of_file = [[0, 0] for _ in answer["files"]]
            for piece in answer["pieces"]:
                fresh = self._fresh(plan, read_ipc(self.store, f"{piece['name']}.ids"))
                self.store.write(f"{piece['name']}.new", np.packbits(fresh).tobytes())
                begin = 0
                for file, rows in piece["rows"]:
                    new = int(np.count_nonzero(fresh[begin : begin + rows]))
                    of_file[file][0] += new
                    of_file[file][1] += rows - new
                    begin += rows
            counts += [(new, repeated) for new, repeated in of_file]
        return counts

    def _fresh(self, plan: Plan, ids: pa.Table) -> NDArray[np.bool_]:
        if self._numbers is None:
            self._numbers = Numbers(self.store, plan.batch)
        fresh = np.zeros(len(ids), np.bool_)
        counted = np.zeros(len(ids), np.bool_)
        if "seq" in ids.column_names:
            seq, counted = ids["seq"].fill_null(-1).to_numpy(), ids["seq"].is_valid().to_numpy()
            for key, rows in rows_by_key(ids["node"], ids["epoch"], counted):
                fresh[rows] = self._numbers.fresh(key, seq[rows])
        if not counted.all():
            hashes = ids["hash"].to_numpy()[~counted].astype(np.int64)
            fresh[~counted] = self._ids_of("ids", plan).fresh(hashes)
        return fresh

    def _ids_of(self, folder: str, plan: Plan) -> Ids:
        if folder not in self._ids:
            self._ids[folder] = Ids(self.store, folder, plan.batch)
        return self._ids[folder]

    # --- Subscriptions

    def _matching(self, plan: Plan, asked: pa.Table, schema: pa.Schema) -> tuple[Matcher | None, list[dict[str, Any]]]:
        """What answers which subscriptions want an event, and which of them cannot be used."""
        kinds = {column.name: kind_of(column.type) for column in schema if column.name not in _OWN}
        usable = {name: kind for name, kind in kinds.items() if kind is not None}
        asks = plan.subscriptions, usable
        if self._matcher is None or self._matcher[0] != asks:
            readings = readings_of(asked, usable, "time")
            boxes = boxes_of(readings, usable, asked["subscription"].combine_chunks())
            matcher = Matcher(boxes, columns=("event", *boxes.attributes)) if len(boxes.ids) else None
            if matcher is not None:
                warm_up(boxes)
            self._matcher = asks, matcher, rejected_rows(asked, readings).to_pylist()
        return self._matcher[1:]

    def _subscriptions_before(self, batch: int) -> str | None:
        before = self.tables.plan(batch - 1)
        return None if before is None else json.loads(before)["subscriptions"]

    def _reject_subscriptions(self, batch: int, unusable: list[dict[str, Any]]) -> list[Any]:
        if not unusable:
            return []
        about = {"sha256": None, "file": str(self.config.subscriptions.name)}
        rows = [{name: row[name] for name in ("id", "reason", "row")} | about for row in unusable]
        return [write_part(self.store, "rejects", batch, "subscriptions", rejects_table(rows, batch))]

    # --- Into the tables

    def _journal(
        self, plan: Plan, tasks: list[tuple[Copy, ...]], files: list[dict[str, Any]], new: list[tuple[int, int]]
    ) -> list[dict[str, Any]]:
        rows = []
        copies = [copy for task in tasks for copy in task]
        for copy, file, (fresh, repeated) in zip(copies, files, new, strict=True):
            landed = self._landed(copy.copy)
            rows.append(
                {
                    "batch": plan.batch,
                    "sha256": landed.sha256,
                    "source": landed.source,
                    "name": landed.name,
                    "bytes": landed.size,
                    "format": landed.format,
                    "arrived": datetime.fromtimestamp(plan.now, UTC),
                    "rows": file["rows"],
                    "new": fresh,
                    "repeated": repeated,
                    "rejected": file["rejected"],
                    "state": "done" if file["reason"] is None else "quarantined",
                    "reason": file["reason"],
                }
            )
        return rows

    def _keep_state(self, plan: Plan, pieces: list[dict[str, Any]]) -> None:
        """Keep what the next batches have to know, before the journal says that this one is done."""
        if self._numbers is not None:
            self._numbers.write(plan.batch)
        if "ids" in self._ids:
            self._ids["ids"].write(plan.batch)
        counts = (read_ipc(self.store, f"{piece['name']}.counts") for piece in pieces)
        Summary.write(self.store, plan.batch, added_up(counts))
        self._keep_recorded(plan)

    def _keep_recorded(self, plan: Plan) -> None:
        """Add what the files told of contacts, subscriptions and deliveries: each row once, whoever tells it again."""
        told = self.store.names(work_of(plan.batch))
        for name, schema in RECORDED.items():
            tables = [
                read_ipc(self.store, f"{work_of(plan.batch)}/{file}") for file in told if file.endswith(f".{name}")
            ]
            if not tables:
                continue
            ids = self._ids_of(name, plan)
            table = pa.concat_tables(tables)
            table = table.filter(pa.array(ids.fresh(table["hash"].to_numpy())))
            ids.write(plan.batch)
            rows = table.select(schema.names).cast(schema)
            self.tables.append(name, plan.batch, rows.append_column("batch", pa.repeat(plan.batch, len(rows))))

    def _commit(
        self, plan: Plan, parts: dict[str, list[Any]], schema: pa.Schema, journal: list[dict[str, Any]]
    ) -> None:
        """Add the batch to the tables, the journal last."""
        if parts["events"]:
            more = pa.schema([("arrived", pa.timestamp("us", "UTC")), ("batch", pa.int64()), ("day", pa.string())])
            self.tables.add("events", plan.batch, parts["events"], with_columns(schema, more), "day")
        for name in ("pairs", "rejects"):
            if parts[name]:
                self.tables.add(name, plan.batch, parts[name], SCHEMAS[name])
        self.store.sync()
        self.tables.append("journal", plan.batch, pa.Table.from_pylist(journal, SCHEMAS["journal"]))

    def _clear(self, plan: Plan, journal: list[dict[str, Any]]) -> None:
        """After the journal: copies are not needed any more, but for those that nobody could read."""
        self.store.sync()
        for known in (self._numbers, *self._ids.values()):
            if known is not None:
                known.done(plan.batch)
        Summary.merge(self.store, plan.batch)
        for copy, row in zip(plan.copies, journal, strict=True):
            if row["state"] == "quarantined":
                self.landing.set_aside(copy)
        self.landing.done(plan.copies)
        self.store.remove_folder(work_of(plan.batch))

    def _match_again(self, plan: Plan) -> Done:
        """Match events of past days with the subscriptions of now, and add the pairs that are new."""
        self.store.remove_folder(work_of(plan.batch))
        asked = read_ipc(self.store, plan.subscriptions)
        matcher, _ = self._matching(plan, asked, self.tables.known_columns())
        assert plan.days is not None
        pieces = write_pieces(self.tables, plan.batch, *plan.days)
        again = Rematching(self.store, plan.batch, tuple(pieces), self.tables.known_columns(), matcher)
        found = self.hands.each(again, len(pieces))
        parts = [part for answer in found for part in parts_of(answer["pairs"])]
        counts = (read_ipc(self.store, f"{piece}.counts") for piece in pieces)
        Summary.write(self.store, plan.batch, added_up(counts))
        if parts:
            self.tables.add("pairs", plan.batch, parts, SCHEMAS["pairs"])
        self.store.sync()
        self.tables.append("journal", plan.batch, SCHEMAS["journal"].empty_table())
        Summary.merge(self.store, plan.batch)
        self.store.remove_folder(work_of(plan.batch))
        rows = sum(answer["rows"] for answer in found)
        return Done(plan.batch, 0, 0, rows, 0, 0, 0, sum(part.rows for part in parts))
