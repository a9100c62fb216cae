"""What whole networks have recorded, as rows of the pipeline's tables: run folders, stores of live nodes, contacts.

A run folder is what a simulation or `serai node log` writes. Times are seconds since 1970, exact to the last bit if a
run has no date of its own (time 0 is then 1970-01-01): so a simulated run comes back as it was.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from serai.core.errors import BadInput
from serai.core.stopping import removed_if_stopped
from serai.lab import read_run
from serai.log.folder import RUN_FILE, read_tables
from serai.log.run import Run
from serai.node.log import MARKS, write_recorded
from serai.pipeline.health import HEALTH, health_of_store

TIME: Final = pa.timestamp("us", "UTC")
_TEXTS: Final = pa.list_(pa.string())
_REALS: Final = pa.list_(pa.float64())
RECORDED: Final = {
    "contacts": pa.schema(
        [("a", pa.string()), ("b", pa.string()), ("start", TIME), ("end", TIME), ("start_s", pa.float64()),
         ("end_s", pa.float64()), ("heard_by", pa.string()), ("epoch", pa.string())]
    ),
    "asked": pa.schema(
        [("node", pa.string()), ("channel", pa.string()), ("where", pa.string()), ("low", _REALS), ("high", _REALS),
         ("from_s", pa.float64()), ("to_s", pa.float64())]
    ),
    "deliveries": pa.schema(
        [("event", pa.string()), ("node", pa.string()), ("time_s", pa.float64()), ("hops", pa.int64())]
    ),
    "recordings": pa.schema(
        [("origin", pa.string()), ("heard_by", pa.string()), ("begin_s", pa.float64()), ("end_s", pa.float64()),
         ("seed", pa.int64()), ("protocol", pa.string()), ("scenario", pa.string()), ("attributes", _TEXTS),
         ("channels", _TEXTS), ("nodes", _TEXTS), ("x_m", _REALS), ("y_m", _REALS),
         ("without", pa.map_(pa.string(), _TEXTS))]
    ),
    "health": HEALTH,
}  # fmt: skip
"""Tables beside that of events, which are sets of rows: a row that comes again is the same one."""
_ROLES: Final = ("carries", "is_source", "is_sink")


def read_run_folder(packed: Path) -> tuple[pa.Table, dict[str, pa.Table]]:
    """The events of a packed run folder, with ids, and its other tables."""
    with tempfile.TemporaryDirectory(prefix="serai-") as place, removed_if_stopped(Path(place)):
        try:
            with tarfile.open(packed) as files:
                files.extractall(place, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise BadInput(f"a run folder that cannot be unpacked ({error})") from error
        return _tables_of(Path(place))


def read_store(path: Path) -> tuple[pa.Table, dict[str, pa.Table]]:
    """What a live node published or carried home, and what it tells of its contacts; it is the carrier of others'."""
    with tempfile.TemporaryDirectory(prefix="serai-") as place, removed_if_stopped(Path(place)):
        run = write_recorded([path], Path(place) / "run")
        silent = set(json.loads((Path(place) / "run" / RUN_FILE).read_text(encoding="utf-8"))["nodes_without_log"])
        teller = next(name for name in run.names if name not in silent)
        events, others = _tables_of(Path(place) / "run", teller)
        return events, others | {"health": health_of_store(path, teller)}


def contacts_of(table: pa.Table, moments: Any) -> pa.Table:
    """Contacts that somebody has written down, with the columns a, b, start and end."""
    start, end = moments(table["start"]), moments(table["end"])
    nobody = pa.nulls(len(table), pa.string())
    teller = [table[name] if name in table.column_names else nobody for name in ("heard_by", "epoch")]
    columns = [table["a"], table["b"], start, end, _seconds(start), _seconds(end), *teller]
    found = pa.table([_plain(each) for each in columns], names=RECORDED["contacts"].names).cast(RECORDED["contacts"])
    return found.filter(pc.and_(found["start"].is_valid(), found["end"].is_valid()))


def is_contacts(columns: list[str]) -> bool:
    """Whether a table with these columns is one of contacts."""
    return {"a", "b", "start", "end"} <= set(columns)


def row_hashes(table: pa.Table) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A number of 63 bits for each row, by what is in it."""
    texts = (json.dumps(row, default=str, sort_keys=True).encode() for row in table.to_pylist())
    return np.array([int.from_bytes(blake2b(text, digest_size=8).digest()) >> 1 for text in texts], np.int64)


def _plain(column: Any) -> Any:
    return column.cast(pa.string()) if pa.types.is_integer(column.type) else column


def _seconds(moments: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.divide(moments.cast(pa.int64()).cast(pa.float64()), 1e6)


# --- Run folders


def _tables_of(folder: Path, teller: str | None = None) -> tuple[pa.Table, dict[str, pa.Table]]:
    run = read_run(folder)
    said = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))
    begin_s = datetime.fromisoformat(said["begin"]).timestamp() if "begin" in said else 0.0
    marks = read_tables(folder, said["tables"], {MARKS: None})[MARKS] if MARKS in said["tables"] else None
    names = np.array(run.tables["nodes"]["name"].to_pylist(), object)
    events = _events(run, names, begin_s, _name_of(folder, said), marks)
    if teller is not None:
        own = pc.equal(events["node"], teller)
        events = events.append_column("carrier", pc.if_else(own, pa.scalar(None, pa.string()), pa.scalar(teller)))
    others = {
        "contacts": _contacts(run, names, begin_s, teller),
        "asked": _asked(run, names, begin_s),
        "deliveries": _deliveries(run, names, begin_s, events["event"]),
        "recordings": pa.Table.from_pylist([_recording(run, said, begin_s, teller)], RECORDED["recordings"]),
    }
    return events, others


def _name_of(folder: Path, said: Mapping[str, Any]) -> str:
    """What tells the events of a simulated run from those of another, whose nodes have the same names."""
    if said["origin"] != "simulation":
        return ""
    return blake2b((folder / RUN_FILE).read_bytes(), digest_size=4).hexdigest()


def _events(
    run: Run, names: np.ndarray[Any, Any], begin_s: float, epoch: str, marks: pa.Table | None
) -> pa.Table:  # fmt: skip
    table = run.tables["events"]
    node = names[table["node"].to_numpy()]
    time_s = _shifted(table["time_s"], begin_s)
    count: Counter[Any] = Counter()
    seq: list[int | None]
    if epoch:  # counted by their nodes
        seq = [_next(count, name) for name in node]
        ids = [f"{name}/{epoch}/{number}" for name, number in zip(node, seq, strict=True)]
    else:
        seq = [None] * len(node)
        own = marks["mark"].to_pylist() if marks is not None else [
            f"{time}/{_next(count, (name, time))}" for name, time in zip(node, time_s.tolist(), strict=True)
        ]  # fmt: skip
        ids = [f"{name}/{mark}" for name, mark in zip(node, own, strict=True)]
    values = np.array(table["values"].to_pylist(), np.float64).reshape(len(node), -1)
    targets = [None if target < 0 else names[target] for target in table["target"].to_pylist()]
    columns: dict[str, Any] = {
        "node": pa.array(node, pa.string()),
        "epoch": pa.array([epoch] * len(node), pa.string()),
        "seq": pa.array(seq, pa.int64()),
        "event": pa.array(ids, pa.string()),
        "time": _moments(time_s),
        "time_s": pa.array(time_s, from_pandas=True),
        "channel": table["channel"].cast(pa.string()),
        "size_bytes": table["size_bytes"],
        "lifetime_s": table["lifetime_s"],
        "target": pa.array(targets, pa.string()),
    }
    return pa.table(columns | {name: values[:, place] for place, name in enumerate(_attributes(run))})


def _next(count: Counter[Any], key: Any) -> int:
    count[key] += 1
    return count[key]


def _contacts(run: Run, names: np.ndarray[Any, Any], begin_s: float, teller: str | None) -> pa.Table:
    table = run.tables["contacts"]
    start_s, end_s = (_shifted(table[name], begin_s) for name in ("start_s", "end_s"))
    ends = [pa.array(names[table[name].to_numpy()], pa.string()) for name in ("a", "b")]
    heard_by = pa.array([teller] * len(table), pa.string())
    columns = [*ends, _moments(start_s), _moments(end_s), pa.array(start_s), pa.array(end_s), heard_by]
    columns.append(pa.nulls(len(table), pa.string()))
    return pa.Table.from_arrays(columns, schema=RECORDED["contacts"])


def _asked(run: Run, names: np.ndarray[Any, Any], begin_s: float) -> pa.Table:
    table = run.tables["subscriptions"]
    columns = [
        pa.array(names[table["node"].to_numpy()], pa.string()),
        *(table[name].cast(pa.string()) for name in ("channel", "where")),
        *(table[name].cast(_REALS) for name in ("low", "high")),
        *(pa.array(_shifted(table[name], begin_s)) for name in ("from_s", "to_s")),
    ]
    return pa.table(columns, schema=RECORDED["asked"])


def _deliveries(run: Run, names: np.ndarray[Any, Any], begin_s: float, ids: pa.ChunkedArray) -> pa.Table:
    table = run.tables["deliveries"]
    columns = [
        ids.take(table["event"]),
        pa.array(names[table["node"].to_numpy()], pa.string()),
        pa.array(_shifted(table["time_s"], begin_s), from_pandas=True),
        table["hops"].cast(pa.int64()),
    ]
    return pa.table(columns, schema=RECORDED["deliveries"])


def _recording(run: Run, said: Mapping[str, Any], begin_s: float, teller: str | None) -> dict[str, Any]:
    """What a simulation of the same has to know besides."""
    names = run.tables["nodes"]["name"].to_pylist()
    duration_s = getattr(getattr(run, "scenario", None), "duration_s", None)
    stores = run.tables.get("stores")
    channels = run.tables.get("channels")
    return {
        "origin": said["origin"],
        "heard_by": teller,
        "begin_s": begin_s,
        "end_s": None if duration_s is None else begin_s + duration_s,
        "seed": said.get("seed", 0),
        "protocol": run.protocol,
        "scenario": said.get("scenario"),
        "attributes": list(_attributes(run)),
        "channels": [] if channels is None else channels["name"].to_pylist(),
        "nodes": names,
        "x_m": run.tables["nodes"]["x_m"].to_pylist(),
        "y_m": run.tables["nodes"]["y_m"].to_pylist(),
        "without": [] if stores is None else [
            (role, [name for name, has in zip(names, stores[role].to_pylist(), strict=True) if not has])
            for role in _ROLES
        ],
    }  # fmt: skip


def _attributes(run: Run) -> tuple[str, ...]:
    return tuple(json.loads((run.tables["events"].schema.metadata or {}).get(b"attributes", b"[]")))


def _shifted(column: pa.ChunkedArray, begin_s: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    times_s: np.ndarray[Any, np.dtype[np.float64]] = column.to_numpy().astype(np.float64)
    return times_s + begin_s if begin_s else times_s  # -0.0 and all else stays as it is


def _moments(times_s: np.ndarray[Any, np.dtype[np.float64]]) -> pa.Array:
    """Times for people; null where there is none, or it never comes."""
    known = np.isfinite(times_s)
    whole = np.round(np.where(known, times_s, 0.0) * 1e6).astype(np.int64)
    return pa.array(whole, pa.int64(), mask=~known).cast(pa.timestamp("us")).cast(TIME)


def moment_of(time_s: float) -> datetime:
    """A time for people."""
    return datetime.fromtimestamp(time_s, UTC)
