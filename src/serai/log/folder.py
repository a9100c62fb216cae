"""The folder that keeps a run: Parquet tables and `run.json`, written whole or not at all, checked when read.

What stands in the tables is the business of the kind of network; `docs/log.md` describes every table and column.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from serai import __version__
from serai.core.errors import BadInput

# pyarrow takes longer to import than a run to simulate: only who reads or writes tables shall wait for it.
if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.int8]  # places in a list of words
Columns = dict[str, Any]

RUN_FILE: Final = "run.json"
_PACKAGES: Final = ("numpy", "numba", "pyarrow", "pydantic")


def package_versions() -> dict[str, str]:
    """The versions that a run's numbers may depend on."""
    return {"serai": __version__, "python": platform.python_version()} | _installed()


@cache  # looking into the installed packages takes a good part of the time of a run
def _installed() -> dict[str, str]:
    return {name: metadata.version(name) for name in _PACKAGES}


# --- Writing


def check_out(folder: str | Path) -> None:
    """Refuse a place where no run folder can be written; asked before any work is done, it writes nothing."""
    try:
        _check_place(Path(folder).resolve(), folder)
    except OSError as error:
        raise BadInput(f"{folder}: {error.strerror}; choose another place for the run") from error


def _check_place(place: Path, folder: str | Path) -> None:
    if place.exists():
        _check_empty(place, folder)
    parent = _nearest_folder(place.parent)
    if not parent.is_dir():
        raise BadInput(f"{folder}: {parent} is a file, not a folder; choose another place for the run")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise BadInput(f"{folder}: no permission to write in {parent}; choose another place for the run")


def _check_empty(place: Path, folder: str | Path) -> None:
    if not place.is_dir():
        raise BadInput(f"{folder}: this is a file; a run is written to a folder: choose another name")
    if any(place.iterdir()):
        raise BadInput(f"{folder}: the folder is not empty; choose a new name, or remove the folder first")
    # The finished folder is renamed into place; neither of these can be replaced by it.
    if place.is_mount() or place == Path.cwd():
        raise BadInput(f"{folder}: this folder cannot be replaced; choose a new folder inside it")


def _nearest_folder(place: Path) -> Path:
    """The closest of the folder and those above it that exists."""
    return next(above for above in (place, *place.parents) if above.exists())


def write_folder(folder: str | Path, description: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> Path:
    """Write a run to a new or empty folder, whole or not at all, and say where it is."""
    check_out(folder)
    place = Path(folder).resolve()
    beside = _nearest_folder(place.parent)
    try:
        with tempfile.TemporaryDirectory(prefix=".serai-", dir=beside) as aside:
            # A temporary folder is closed to everybody else; one made inside it has the usual permissions.
            made = Path(aside) / "run"
            made.mkdir()
            _write_files(description, tables, made)
            place.parent.mkdir(parents=True, exist_ok=True)
            made.rename(place)
    except PermissionError as error:
        raise BadInput(f"{folder}: no permission to write there; choose another place for the run") from error
    return place


def _write_files(description: Mapping[str, Any], tables: Mapping[str, pa.Table], folder: Path) -> None:
    from serai.log.schemas import LOG_VERSION

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


def words(codes: Codes, all_words: tuple[str, ...]) -> pa.DictionaryArray:
    """Codes as the words they stand for."""
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(all_words))


def lists(rows: NDArray[np.float64]) -> pa.ListArray:
    """A matrix as one list per row."""
    import pyarrow as pa

    from serai.log.schemas import NUMBERS

    offsets = np.arange(len(rows) + 1, dtype=np.int32) * rows.shape[1]
    return pa.ListArray.from_arrays(offsets, rows.ravel(), type=NUMBERS)


# --- Reading


def read_description(folder: Path) -> dict[str, Any]:
    """What `run.json` says, if it is one that this version can read."""
    path = folder / RUN_FILE
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        problem = f"no run here ({RUN_FILE} not found); name a folder written with --out"
        raise BadInput(f"{folder}: {problem}") from error
    except ValueError as error:
        raise BadInput(f"{path}: damaged, this is not JSON ({error}); run the simulation again") from error
    if not isinstance(said, dict) or "log_version" not in said:
        raise BadInput(f"{path}: not a run of serai (no log_version in it)")
    _check_version(folder, said)
    return said


def check_keys(folder: Path, said: Mapping[str, Any], keys: Iterable[str]) -> None:
    """Complain about a `run.json` that lacks some of the keys."""
    if missing := [key for key in keys if key not in said]:
        raise BadInput(f"{folder / RUN_FILE}: damaged, it lacks {', '.join(missing)}; run the simulation again")


def _check_version(folder: Path, said: Mapping[str, Any]) -> None:
    from serai.log.schemas import LOG_VERSION

    if said["log_version"] != LOG_VERSION:
        raise BadInput(
            f"{folder}: log version {said['log_version']}; this serai ({__version__}) reads log version"
            f" {LOG_VERSION}: use the serai that wrote it ({said.get('versions')}), or simulate again"
        )


def read_tables(folder: Path, listing: Mapping[str, Any], described: Mapping[str, pa.Schema]) -> dict[str, pa.Table]:
    """The described tables of the run, or one complaint about all that cannot be used."""
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


def _read_table(path: Path, schema: pa.Schema) -> pa.Table:
    import pyarrow.parquet as pq

    table = pq.ParquetFile(path).read()
    if not table.schema.equals(schema):
        raise BadInput(f"{path}: columns {_signature(table.schema)}; expected {_signature(schema)}")
    return table


def _signature(schema: pa.Schema) -> str:
    kinds = (f"{column.type} or null" if column.nullable else str(column.type) for column in schema)
    return ", ".join(f"{name} ({kind})" for name, kind in zip(schema.names, kinds, strict=True))


def array(table: pa.Table, column: str, kind: type[np.generic]) -> NDArray[Any]:
    """A column as an array of its own: pyarrow's may not be written to, and kernels compile anew for such."""
    return np.array(table[column].to_numpy(), dtype=kind)


def matrix(table: pa.Table, column: str, width: int) -> NDArray[np.float64]:
    """A column of lists as a matrix."""
    numbers = table[column].combine_chunks().flatten().to_numpy()
    return np.array(numbers, dtype=np.float64).reshape(len(table), width)


def codes(table: pa.Table, column: str, all_words: tuple[str, ...]) -> Codes:
    """The place of each word of a column in the list of words."""
    import pyarrow as pa
    import pyarrow.compute as pc

    places = pc.index_in(table[column].cast(pa.string()), value_set=pa.array(all_words))
    return np.array(places.to_numpy(), dtype=np.int8)
