"""What a batch of landed files holds: events that can be matched, and files that cannot be read, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from serai.core.conditions import Kind
from serai.core.errors import BadInput
from serai.matching.files import Given, ParquetFiles, footer_of, given_by, given_columns, these_files, united
from serai.matching.landing import OPEN_DATABASE, Landed, Landing
from serai.matching.texts import read_texts


@dataclass(frozen=True)
class Arrived:
    """The events of a batch as Parquet files; what was rejected; the copies that it was made from, and since when."""

    files: ParquetFiles
    rejects: list[dict[str, Any]]
    copies: list[Path]
    quarantined: int
    since: float | None


def read_arrived(
    landing: Landing, copies: list[Path], columns: pa.Schema, kinds: Callable[[], Mapping[str, Kind]], aside: Path
) -> Arrived:
    """Open each file by itself; `columns`: those known so far, `kinds`: of the attributes of files without types."""
    paths: dict[Path, Given] = {}
    rejects: list[dict[str, Any]] = []
    quarantined = 0
    since = min((copy.stat().st_mtime for copy in copies if copy.exists()), default=None)
    known_kinds: Mapping[str, Kind] | None = None
    for copy in sorted(copies, key=lambda copy: landing.of(copy.name).name):
        landed = landing.of(copy.name)
        try:
            if landed.format in ("csv", "json"):
                known_kinds = known_kinds or kinds()
                path, bad = _as_parquet(copy, landed.format, {**known_kinds, "event": "text"}, aside)
                rejects += [reject | {"file": landed.name} for reject in bad]
            else:
                path = _parquet(copy, landed)
            given = given_by(PurePath(landed.name))
            columns = _with_columns(columns, path, given)
            paths[path] = given
        except BadInput as error:
            landing.set_aside(copy.name)
            quarantined += 1
            reason = str(error).replace(f"{copy}: ", "")
            rejects.append({"table": "files", "id": landed.name, "reason": reason, "row": landed.sha256})
    files = replace(these_files(list(paths), paths), schema=columns if columns.names else _NOTHING)
    return Arrived(files, rejects, copies, quarantined, since)


_NOTHING = pa.schema([("event", pa.int64())])


def _parquet(copy: Path, landed: Landed) -> Path:
    if landed.format in ("sqlite", OPEN_DATABASE):
        raise BadInput("a SQLite file, which a stream does not read")
    if landed.format is None:
        raise BadInput("neither Parquet by its content nor CSV or JSON by its name" if landed.size else "an empty file")
    return copy


def _as_parquet(copy: Path, form: str, kinds: Mapping[str, Kind], aside: Path) -> tuple[Path, list[dict[str, Any]]]:
    table, rejected = read_texts(copy, form, kinds)
    path = aside / "events" / f"{copy.stem}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(table, path)
    return path, [{"table": "events", **reject._asdict()} for reject in rejected]


def _with_columns(known: pa.Schema, path: Path, given: Given) -> pa.Schema:
    """The known columns and those of another file, if they go together."""
    footer = footer_of(path)
    schema = footer.schema.to_arrow_schema()
    if "event" not in schema.names:
        raise BadInput(f"no column event (the id of each row); its columns are: {', '.join(schema.names)}")
    for column in given_columns([given]):
        if column.name not in schema.names:
            schema = schema.append(column)
    together = united(known, schema, path)
    with pq.ParquetFile(path) as file:
        for column in file.schema_arrow:
            wanted = together.field(column.name).type
            if pa.types.is_integer(column.type) and pa.types.is_floating(wanted):
                _check_exact(file, column.name, wanted)
    return together


def _check_exact(file: pq.ParquetFile, name: str, wanted: pa.DataType) -> None:
    try:
        file.read(columns=[name])[name].cast(wanted)
    except pa.ArrowInvalid as error:
        raise BadInput(f"the column {name} holds whole numbers that {wanted}, as in other files, does not") from error
