"""What live nodes logged, as a run like any other: `serai node log A.db B.db --out RUN`.

Nodes without a log are known by what others tell of them. Where two nodes tell of one contact it lasted while both saw
it; where one tells, its word counts. Times are seconds since the first row, by the nodes' own clocks.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from serai.core.errors import BadInput
from serai.lab import parse_scenario
from serai.log.folder import check_out, write_folder
from serai.node import schema
from serai.node.interests import read_interest, topic_matches
from serai.node.routing import LIVE
from serai.node.store import ReadLog, read_log
from serai.opportunistic.engine.setup import records
from serai.opportunistic.engine.state import DROP, LISTING, TRANSFER, Outcome
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import Given
from serai.opportunistic.world import Bundles, Published, Subscriptions, Wanted
from serai.world.contacts import Contacts, in_order

if TYPE_CHECKING:
    import pyarrow as pa

MARKS: Final = "marks"
"""A table of recorded runs: what nodes know an event by, whoever tells of it, and however often."""
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_RELAYED, _BROKEN = schema.TRANSFERS.index("relayed"), schema.TRANSFERS.index("broken")


class Line(NamedTuple):
    """A row of a log."""

    id: int
    time_s: float
    kind: int
    peer: str
    mark: int
    bytes: int
    what: int
    began_s: float
    text: str


class Recording(NamedTuple):
    """What the logs tell."""

    given: Given
    outcome: Outcome
    begin_s: float  # since 2000
    duration_s: float
    rate_bps: float
    silent: tuple[str, ...]  # nodes without a log
    marks: tuple[int, ...]  # of the publications: the same on all nodes, whoever tells of them


class Recorder:
    """The logs of several nodes, put together. `nodes` and `topics`: those that are to be numbered first."""

    def __init__(self, logs: dict[str, list[Line]], bundles: Iterable[tuple[Any, ...]], begin_s: float, end_s: float,
                 nodes: Sequence[str] = (), topics: Sequence[str] = ()) -> None:  # fmt: skip
        self.logs, self.begin_s, self.end_s = logs, begin_s, end_s
        told = {line.peer for lines in logs.values() for line in lines if line.peer}
        births = self._births(bundles)
        known = set(logs) | told | {birth[1] for birth in births}
        self.nodes = (*nodes, *sorted(known - set(nodes)))
        self.number = {name: place for place, name in enumerate(self.nodes)}
        self.births = [birth for birth in births if 0 <= birth[0] <= end_s - begin_s]
        self.row_of = {birth[3]: row for row, birth in enumerate(self.births)}
        asked = {line.text[2:] for line in self._of(schema.SUBSCRIBED) if _is_plain(line.text)}
        found = {birth[4] for birth in self.births} | asked
        self.topics = (*topics, *sorted(found - set(topics)))

    def _of(self, kind: int) -> Iterable[Line]:
        return (line for lines in self.logs.values() for line in lines if line.kind == kind)

    def _births(self, bundles: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """(time, source, order, mark, topic, bytes, lifetime), by time: of those without a log as others keep them."""
        found = {
            line.mark: (line.time_s - self.begin_s, name, line.id, line.mark, line.text, line.bytes, line.what / 1000)
            for name, lines in self.logs.items()
            for line in lines
            if line.kind == schema.BORN
        }
        for row in bundles:
            mark, source, sequence, topic, begins_ms, lifetime_ms, size = (row[i] for i in (1, 2, 4, 6, 8, 9, 10))
            time_s = begins_ms / 1000 - self.begin_s
            found.setdefault(mark, (time_s, source, sequence, mark, topic, size, lifetime_ms / 1000))
        return sorted(found.values(), key=lambda birth: birth[:3])

    # -- what was given

    def given(self) -> Given:
        """Contacts, publications and subscriptions."""
        topic = {name: place for place, name in enumerate(self.topics)}
        columns = list(zip(*self.births, strict=True)) or [()] * 7
        bundles = Bundles(
            np.array([self.number[source] for source in columns[1]], np.int32),
            np.array([topic[name] for name in columns[4]], np.int32),
            np.array(columns[0], np.float64),
            np.array(columns[5], np.int64),
            np.array(columns[6], np.float64),
        )
        sources = np.unique(bundles.source)
        wanted = self._subscriptions(topic)
        published = Published(
            bundles, self.topics, sources, np.empty((len(self.births), 0)), np.full(len(self.births), -1, np.int32)
        )
        carries = np.ones(len(self.nodes), np.bool_)
        for line_of, lines in self.logs.items():
            for line in lines:
                if line.kind == schema.STARTED:
                    carries[self.number[line_of]] = bool(line.what)
        return Given(self.nodes, self._contacts(), published, Wanted(wanted, np.unique(wanted.node)), carries)

    def _subscriptions(self, topic: dict[str, int]) -> Subscriptions:
        rows = []
        for name, lines in self.logs.items():
            open_since: dict[int, tuple[float, str]] = {}
            over = []
            for line in lines:
                if line.kind == schema.SUBSCRIBED:
                    open_since[line.what] = (line.time_s - self.begin_s, line.text)
                elif line.kind == schema.UNSUBSCRIBED and line.what in open_since:
                    over.append((*open_since.pop(line.what), line.time_s - self.begin_s))
            over += [(since, text, math.inf) for since, text in open_since.values()]
            rows += [
                (since, self.number[name], topic[one], to) for since, text, to in over for one in self._meant(text)
            ]
        rows.sort()
        since, node, channel, to = zip(*rows, strict=True) if rows else ((), (), (), ())
        return Subscriptions(np.array(node, np.int32), np.array(channel, np.int32), np.array(since, np.float64),
                             np.array(to, np.float64))  # fmt: skip

    def _meant(self, interest: str) -> list[str]:
        """The topics that an interest is about; conditions on content are not looked at."""
        if _is_plain(interest):
            return [interest[2:]]
        filter = read_interest(interest).filter
        return [topic for topic in self.topics if topic_matches(filter, topic)]

    def _contacts(self) -> Contacts:
        views: dict[tuple[int, int], dict[str, list[tuple[float, float]]]] = defaultdict(dict)
        for name, lines in self.logs.items():
            for line in lines:
                if line.kind == schema.CONTACT and line.began_s < line.time_s:
                    one, other = sorted((self.number[name], self.number[line.peer]))
                    seen = views[one, other].setdefault(name, [])
                    seen.append((line.began_s - self.begin_s, line.time_s - self.begin_s))
        rows = [
            (a, b, up, down)
            for (a, b), seen in views.items()
            for up, down in (_both(*seen.values()) if len(seen) == 2 else sorted(*seen.values()))
        ]
        a, b, up, down = np.array(rows, np.float64).reshape(-1, 4).T
        return in_order(Contacts(a.astype(np.int32), b.astype(np.int32), up, down))

    # -- what came of it

    def outcome(self, contacts: int) -> Outcome:
        """Deliveries, transfers, drops and stores."""
        transfers, relays = self._transfers(), np.zeros(len(self.births), np.int64)
        for row in transfers[transfers.outcome == _RELAYED]:
            relays[row.bundle] += 1
        drops = self._drops(transfers)
        lists = self._lists()
        wasted = (transfers.outcome > _RELAYED) & (transfers.outcome <= _BROKEN)
        outcomes, reasons = Counter(transfers.outcome.tolist()), Counter(drops.reason.tolist())
        stored_byte_s, peak_bytes = self._stores()
        delivered = sorted(
            (line.time_s - self.begin_s, self.row_of[line.mark], self.number[name], line.what)
            for name, lines in self.logs.items()
            for line in lines
            if line.kind == schema.DELIVERED and line.mark in self.row_of
        )
        time_s, bundle, node, hops = zip(*delivered, strict=True) if delivered else ((), (), (), ())
        return Outcome(
            delivery_bundle=np.array(bundle, np.int32), delivery_node=np.array(node, np.int32),
            delivery_s=np.array(time_s, np.float64), delivery_hops=np.array(hops, np.int32),
            payload_bytes=int(transfers.bytes.sum()), control_bytes=int(lists.bytes.sum()),
            wasted_bytes=int(transfers.bytes[wasted].sum()), lists=int((lists.outcome < _BROKEN).sum()),
            contacts=contacts,
            transfers={name: outcomes[code] for code, name in enumerate(schema.TRANSFERS)},
            drops={name: reasons[code] for code, name in enumerate(schema.DROPS)},
            relays=relays, stored_byte_s=stored_byte_s, peak_bytes=peak_bytes, transfer_log=transfers, drop_log=drops,
            list_log=lists,
        )  # fmt: skip

    def _lists(self) -> Any:
        """As their senders tell."""
        rows = sorted(
            (line.time_s - self.begin_s, line.began_s - self.begin_s, self.number[name], self.number[line.peer], line)
            for name, lines in self.logs.items()
            for line in lines
            if line.kind == schema.LIST
        )
        made = records(len(rows), LISTING)
        for row, (end_s, start_s, sender, receiver, line) in zip(made, rows, strict=True):
            row.start_s, row.end_s, row.sender, row.receiver = start_s, end_s, sender, receiver
            row.bytes, row.entries, row.outcome = line.bytes, line.mark, line.what
        return made

    def _transfers(self) -> Any:
        """As their senders tell; of senders without a log, as receivers do, who know only when they had ended."""
        stored = {
            (line.mark, self.number[name])
            for name, lines in self.logs.items()
            for line in lines
            if line.kind == schema.STORED and line.peer
        }
        rows = []
        for name, lines in self.logs.items():
            here = self.number[name]
            for line in lines:
                if line.mark not in self.row_of:
                    continue
                time_s = line.time_s - self.begin_s
                if line.kind == schema.TRANSFER:
                    there, keeps = self.number[line.peer], line.what == _RELAYED
                    keeps = keeps and (line.peer not in self.logs or (line.mark, there) in stored)
                    rows.append(
                        (time_s, line.began_s - self.begin_s, line.bytes, line.mark, here, there, line.what, keeps)
                    )
                elif line.kind == schema.STORED and line.peer and line.peer not in self.logs:
                    there = self.number[line.peer]
                    rows.append((time_s, time_s, line.bytes, line.mark, there, here, _RELAYED, True))
        made = records(len(rows), TRANSFER)
        for row, (end_s, start_s, size, mark, sender, receiver, what, keeps) in zip(made, sorted(rows), strict=True):
            row.start_s, row.end_s, row.bytes, row.bundle = start_s, end_s, size, self.row_of[mark]
            row.sender, row.receiver, row.outcome, row.stored, row.moved = sender, receiver, what, keeps, False
        return made

    def _drops(self, transfers: Any) -> Any:
        lines = sorted(
            (line.time_s - self.begin_s, self.row_of[line.mark], self.number[name], line.what, line.bytes > 0)
            for name, lines in self.logs.items()
            for line in lines
            if line.kind == schema.DROPPED and line.mark in self.row_of
        )
        made = records(len(lines), DROP)
        for row, (time_s, bundle, node, what, held) in zip(made, lines, strict=True):
            row.time_s, row.bundle, row.node, row.reason, row.held = time_s, bundle, node, what, held
            row.after = np.searchsorted(transfers.end_s, time_s, "left")
        return made

    def _stores(self) -> tuple[Any, Any]:
        """The integral of what each store held, and the most that it did, by what came and went in its log."""
        integral, peak = np.zeros(len(self.nodes)), np.zeros(len(self.nodes), np.int64)
        for name, lines in self.logs.items():
            used, since_s, node = 0, 0.0, self.number[name]
            for line in lines:
                if line.kind in (schema.STORED, schema.DROPPED) and line.bytes:
                    time_s = line.time_s - self.begin_s
                    integral[node] += used * (time_s - since_s)
                    since_s = time_s
                    used += line.bytes if line.kind == schema.STORED else -line.bytes
                    peak[node] = max(peak[node], used)
            integral[node] += used * (self.end_s - self.begin_s - since_s)
        return integral, peak


def _is_plain(interest: str) -> bool:
    return interest.startswith("t:") and not {"+", "#"} & set(interest)


def _both(one: list[tuple[float, float]], other: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """When both saw the contact."""
    found = []
    for up, down in sorted(one):
        for also_up, also_down in sorted(other):
            begin, end = max(up, also_up), min(down, also_down)
            if begin < end:
                found.append((begin, end))
    return found


def record(stores: Sequence[Path], begin_s: float | None = None, end_s: float | None = None,
           nodes: Sequence[str] = (), topics: Sequence[str] = ()) -> Recording:  # fmt: skip
    """What the logs of these stores tell, from the first row to the last unless other times are given."""
    read = [(path, read_log(path)) for path in stores]
    logs: dict[str, list[Line]] = {}
    for path, found in read:
        name, lines = _named(path, found)
        if name in logs:
            raise BadInput(f"{path}: a second log of {name}; give each node's store once")
        logs[name] = lines
    times = [line.time_s for lines in logs.values() for line in lines]
    if begin_s is None:
        begin_s = float(math.floor(min(times)))
    end_s = max(times) if end_s is None else end_s
    bundles = [row for _, found in read for row in found.bundles]
    recorder = Recorder(logs, bundles, begin_s, end_s, nodes, topics)
    given = recorder.given()
    outcome = recorder.outcome(len(given.contacts.a))
    rows = outcome.transfer_log[outcome.transfer_log.outcome == _RELAYED]
    took_s = rows.end_s - rows.start_s
    rates = rows.bytes[took_s > 0] * 8 / took_s[took_s > 0]
    rate_bps = max(float(np.median(rates)), 1000.0) if len(rates) else 1e6
    silent = tuple(name for name in recorder.nodes if name not in logs)
    marks = tuple(birth[3] for birth in recorder.births)
    return Recording(given, outcome, begin_s, end_s - begin_s, rate_bps, silent, marks)


def _named(path: Path, found: ReadLog) -> tuple[str, list[Line]]:
    lines = [Line(*row) for row in found.log]
    names = {line.text for line in lines if line.kind == schema.STARTED}
    if len(names) != 1:
        why = "its log is empty" if not names else f"the log of several nodes: {', '.join(sorted(names))}"
        raise BadInput(f"{path}: {why}; was it written by serai node run, with log.rows above 0?")
    return names.pop(), lines


def write_recorded(stores: Sequence[Path], out: Path) -> OpportunisticRun:
    """Write what these stores tell to a run folder."""
    check_out(out)
    found = record(stores)
    given = found.given._replace(names=tuple(map(_short, found.given.names)))
    scenario = _scenario(found, len(stores))
    run = OpportunisticRun(
        scenario,
        scenario.protocol.name,
        0,
        given.world,
        found.outcome,
        given.names,
        given.published,
        given.wanted,
        True,
    )
    begin = (_EPOCH + timedelta(seconds=found.begin_s)).isoformat()
    said = {"origin": "field", "begin": begin, "nodes_without_log": list(map(_short, found.silent))}
    write_folder(out, run.description() | said, {**run.tables, MARKS: _marks(found)})
    return run


def _marks(found: Recording) -> pa.Table:
    import pyarrow as pa

    return pa.table({"event": pa.array(range(len(found.marks)), pa.int32()), "mark": pa.array(found.marks, pa.int64())})


def _short(eid: str) -> str:
    return eid.removeprefix("dtn://").removesuffix("/")


def _scenario(found: Recording, logs: int) -> OpportunisticScenario:
    """What a simulation of the same contacts, publications and subscriptions has to know besides."""
    chosen = LIVE
    text = f"""
title = "recorded by {logs} nodes"
duration = "{max(math.ceil(found.duration_s), 1)} s"
[contacts]
source = "trace"
file = "contacts.parquet"
[radio]
rate = "{found.rate_bps:.0f} bps"
[protocol]
name = "dpsp"
priorities = {list(chosen.priorities)}
combine = "{chosen.combine}"
order = "{chosen.order}"
announce = "{chosen.announce}"
""".replace("'", '"')
    scenario = parse_scenario(text, "the recorded run")
    assert isinstance(scenario, OpportunisticScenario)
    return scenario
