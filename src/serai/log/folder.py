"""The folder that keeps a run: Parquet tables and `run.json`, written whole or not at all, checked when read.

`docs/log.md` describes every table and column; `serai.log.tables` declares those that all kinds of network share.
"""

from __future__ import annotations

import hashlib
import json
import platform
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from serai import __version__
from serai.core.errors import BadInput
from serai.core.placing import check_can_hold, nearest_folder
from serai.core.stopping import removed_if_stopped

# pyarrow takes longer to import than a run to simulate: only who reads or writes tables shall wait for it.
if TYPE_CHECKING:
    import pyarrow as pa

RUN_FILE: Final = "run.json"
LOG_VERSION: Final = 2
"""Goes up when a table or `run.json` changes in a way that an older reader would misread."""
_PACKAGES: Final = ("numpy", "numba", "pyarrow", "pydantic")


def package_versions() -> dict[str, str]:
    """The versions that a run's numbers may depend on."""
    return {"serai": __version__, "python": platform.python_version()} | _installed()


@cache  # looking into the installed packages takes a good part of the time of a run
def _installed() -> dict[str, str]:
    return {name: metadata.version(name) for name in _PACKAGES}


# --- Writing


def check_out(folder: str | Path) -> None:
    """Refuse a place where no run folder can be written; asked before any work is done, it leaves nothing there."""
    try:
        _check_place(Path(folder).resolve(), folder)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror}; choose another place for the run") from error


def _check_place(place: Path, folder: str | Path) -> None:
    if place.exists():
        _check_empty(place, folder)
    check_can_hold(place.parent, folder, "choose another place for the run")


def _check_empty(place: Path, folder: str | Path) -> None:
    if not place.is_dir():
        raise BadInput(f"{folder}: this is a file; a run is written to a folder: choose another name")
    if any(place.iterdir()):
        raise BadInput(f"{folder}: the folder is not empty; choose a new name, or remove the folder first")
    # The finished folder is renamed into place; neither of these can be replaced by it.
    if place.is_mount() or place == Path.cwd():
        raise BadInput(f"{folder}: this folder cannot be replaced; choose a new folder inside it")


def write_folder(folder: str | Path, description: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Path:
    """Write a run to a new or empty folder, whole or not at all, and say where it is."""
    check_out(folder)
    place = Path(folder).resolve()
    beside = nearest_folder(place.parent)
    try:
        with tempfile.TemporaryDirectory(prefix=".serai-", dir=beside) as aside, removed_if_stopped(Path(aside)):
            # A temporary folder is closed to everybody else; one made inside it has the usual permissions.
            made = Path(aside) / "run"
            made.mkdir()
            _write_files(description, tables, made)
            place.parent.mkdir(parents=True, exist_ok=True)
            made.rename(place)
    except PermissionError as error:
        raise BadInput(f"{folder}: no permission to write there; choose another place for the run") from error
    except OSError as error:  # a full disk, above all; what was written is gone again
        # Whoever writes tables does not always say where: the folder that was asked for tells the user more anyway.
        raise OSError(error.errno, error.strerror or str(error), str(folder)) from error
    return place


def _write_files(description: Mapping[str, Any], tables: Mapping[str, pa.Table], folder: Path) -> None:
    listing = {name: _write_table(table, _file(folder, name)) for name, table in tables.items()}
    said = {"log_version": LOG_VERSION} | dict(description) | {"tables": listing}
    text = json.dumps(said, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / RUN_FILE).write_text(text + "\n", encoding="utf-8")


def _file(folder: Path, table: str) -> Path:
    return folder / f"{table}.parquet"


def _write_table(table: pa.Table, path: Path) -> dict[str, Any]:
    """Write one table, the same bytes for the same table, and say what `run.json` tells about it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Floats hardly ever repeat: a dictionary of them would only be tried and thrown away.
    repeating = [column.name for column in table.schema if not pa.types.is_floating(_element(column.type))]
    pq.write_table(table, path, compression="zstd", use_dictionary=repeating)
    return {"rows": table.num_rows, "sha256": _digest(path)}


def _element(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return kind.value_type if pa.types.is_list(kind) else kind


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- Reading


def read_description(folder: Path) -> dict[str, Any]:
    """What `run.json` says, if it is one that this version can read."""
    path = folder / RUN_FILE
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        problem = f"no run here ({RUN_FILE} not found); name a folder written with --out"
        raise BadInput(f"{folder}: {problem}") from error
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"{path}: damaged, this is not JSON ({error}); run the simulation again") from error
    if not isinstance(said, dict) or "log_version" not in said:
        raise BadInput(f"{path}: not a run of serai (no log_version in it)")
    _check_version(folder, said)
    if not isinstance(said.get("tables", {}), dict):
        raise BadInput(f"{path}: damaged, its list of tables is none; run the simulation again")
    return said


def check_keys(folder: Path, said: Mapping[str, Any], keys: Iterable[str]) -> None:
    """Complain about a `run.json` that lacks some of the keys; `counts.drops` is one inside another."""
    if missing := [key for key in keys if not _has(said, key)]:
        raise BadInput(f"{folder / RUN_FILE}: damaged, it lacks {', '.join(missing)}; run the simulation again")


def _has(said: Any, key: str) -> bool:
    first, _, rest = key.partition(".")
    return isinstance(said, dict) and first in said and (not rest or _has(said[first], rest))


def _check_version(folder: Path, said: Mapping[str, Any]) -> None:
    if said["log_version"] != LOG_VERSION:
        raise BadInput(
            f"{folder}: log version {said['log_version']}; this serai ({__version__}) reads log version {LOG_VERSION}:"
            f" use the serai that wrote it ({said.get('versions')}), or simulate again (scenario and seed: {RUN_FILE})"
        )


def read_tables(
    folder: Path, listing: Mapping[str, Any], described: Mapping[str, pa.Schema | None]
) -> dict[str, pa.Table]:
    """The described tables of the run, or one complaint about all that cannot be used; None: any columns will do."""
    found = [_problem_of(_file(folder, name), listing.get(name)) for name in described]
    if problems := [problem for problem in found if problem]:
        raise BadInput(f"{folder}: {'; '.join(problems)}; restore the folder, or run the simulation again")
    return {name: _read_table(_file(folder, name), schema) for name, schema in described.items()}


def _problem_of(path: Path, listed: Mapping[str, Any] | None) -> str | None:
    """Why a table cannot be read, if so."""
    if listed is None:
        return f"{path.name} is not listed in {RUN_FILE}"
    if not path.is_file():
        return f"{path.name} is missing"
    if _digest(path) != listed["sha256"]:
        return f"{path.name} is damaged or was changed (its SHA-256 is not the one in {RUN_FILE})"
    return None


def _read_table(path: Path, schema: pa.Schema | None) -> pa.Table:
    import pyarrow.parquet as pq

    table = pq.ParquetFile(path).read()
    if schema is not None and not table.schema.equals(schema):
        raise BadInput(f"{path}: columns {_signature(table.schema)}; expected {_signature(schema)}")
    return table


def _signature(schema: pa.Schema) -> str:
    kinds = (f"{column.type} or null" if column.nullable else str(column.type) for column in schema)
    return ", ".join(f"{name} ({kind})" for name, kind in zip(schema.names, kinds, strict=True))
