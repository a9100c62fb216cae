"""Tables of events and subscriptions in files: Parquet, CSV or JSON lines; and answers written whole or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everywhere
from pyspark.sql.pandas.types import from_arrow_schema

from serai.core.conditions import Kind
from serai.core.errors import BadInput
from serai.core.placing import check_new
from serai.core.stopping import removed_if_stopped
from serai.matching.files import parquet_files
from serai.spark.failures import plainly
from serai.spark.places import is_address, local_path

Format = Literal["parquet", "csv", "json"]
_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}
_BROKEN = "_broken"  # a line that is no row
_EITHER = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BROKEN}
_CSV = _EITHER | {"header": "true", "escape": '"', "columnPruning": "false"}  # pruned, short lines would go unseen
_JSON = _EITHER | {"primitivesAsString": "true"}


def format_of(path: str | Path, default: Format | None = None) -> Format:
    """The format of a file, or of the files in a folder, by their names."""
    place = Path(path) if is_address(path) else local_path(path)
    names = [place.name]
    if place.is_dir():
        names += sorted(found.name for found in place.rglob("*") if not _is_hidden(found.relative_to(place)))
    for name in names:
        if found := _SUFFIXES.get(Path(name).suffix.lower()):
            return found
    if default is not None:
        return default
    raise BadInput(f"{path}: what is this? Its name should end in one of: {', '.join(_SUFFIXES)}")


def _is_hidden(path: Path) -> bool:
    return any(part[0] in "._" for part in path.parts)


def check_there(path: str | Path) -> None:
    """Refuse a path of this machine at which nothing is, or nothing that we can read."""
    if not is_address(path) and not local_path(path).exists():
        raise BadInput(f"{path}: no such file or folder")
    format_of(path)


def read_table(spark: SparkSession, path: str | Path) -> DataFrame:
    """The rows of a table; from CSV and JSON as texts, with a column `_broken` that holds lines which are no rows."""
    check_there(path)
    kind = format_of(path)
    where = spark_path(path)
    try:
        if kind == "parquet":
            return read_parquet(spark, where)
        reader = spark.read.options(**reading_options(path))
        columns = [name for name in reader.format(kind).load(where).columns if name != _BROKEN]
        if not columns:
            raise BadInput(f"{path}: no columns in it")
        schema = ", ".join(f"{quoted(name)} string" for name in [*columns, _BROKEN])
        return reader.schema(schema).format(kind).load(where)
    except PySparkException as error:
        raise BadInput(f"{path}: cannot be read: {str(error).splitlines()[0]}") from error
    except Exception as error:  # of Java: a store that this Spark knows nothing of
        raise plainly(error, path) from error


def read_parquet(spark: SparkSession, where: str) -> DataFrame:
    """A table of Parquet files, whose columns are looked up here: Spark would start a job for it."""
    files = parquet_files(where)  # finds damaged files, too, and says which
    if files is None:
        return spark.read.parquet(where)
    try:
        schema = from_arrow_schema(files.schema, prefer_timestamp_ntz=True)
    except PySparkException:  # a type that Arrow has and Spark has not
        return spark.read.option("mergeSchema", "true").parquet(where)
    if any(piece.given for piece in files.pieces):
        return spark.read.schema(schema).option("basePath", where).parquet(where)
    return spark.read.schema(schema).parquet(*files.paths)


def reading_options(path: str | Path) -> dict[str, str]:
    """The options with which Spark reads files of this format, in a batch or in a stream."""
    options: dict[Format, dict[str, str]] = {"parquet": {}, "csv": _CSV, "json": _JSON}
    return options[format_of(path)]


def quoted(name: str) -> str:
    """A column's name as SQL takes it, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def spark_path(path: str | Path) -> str:
    """The path as Spark understands it: the JVM may have been started in another folder."""
    return str(path) if is_address(path) else str(local_path(path).absolute())


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A table as a frame, also if it has no rows, which tell Spark Connect nothing of their types."""
    fields = [
        column.with_type(pa.decimal128(20, 0)) if column.type == pa.uint64() else column for column in table.schema
    ]
    schema = pa.schema(fields)
    return spark.createDataFrame(table.cast(schema), schema=from_arrow_schema(schema, prefer_timestamp_ntz=True))


def is_untyped(table: DataFrame) -> bool:
    """Whether the table is from a format without types."""
    return _BROKEN in table.columns


# --- Types


def with_reason(table: DataFrame, id_name: str, kinds: Mapping[str, Kind]) -> DataFrame:
    """The rows with attributes of these kinds; `_reason`: why a row cannot be used, or null; `_row`: what it was."""
    row = F.to_json(F.struct(*(F.col(quoted(name)) for name in columns_of(table))))
    row = F.coalesce(F.col(_BROKEN), row) if is_untyped(table) else row
    table = table.withColumn("_row", row)
    not_text = {name: kind for name, kind in kinds.items() if kind != "text" and name in table.columns}
    if not is_untyped(table):
        return table.withColumn("_reason", F.when(F.col(id_name).isNull(), f"no id in the column {id_name}"))
    typed = {name: _typed(F.col(quoted(name)), kind) for name, kind in not_text.items()}
    reason = F.when(F.col(_BROKEN).isNotNull(), "this line is no row of the table")
    reason = reason.when(F.col(id_name).isNull(), f"no id in the column {id_name}")
    for name, kind in not_text.items():
        value = F.col(quoted(name))
        said = F.concat(F.lit(f'{name}: "'), value, F.lit(f'" is not {_A[kind]}'))
        reason = reason.when(value.isNotNull() & typed[name].isNull(), said)
    table = table.withColumn("_reason", reason)
    return table.withColumns(typed) if typed else table  # Spark Connect takes no empty list


_A = {"real": "a number", "time": "a time", "boolean": "true or false"}


def _typed(value: Column, kind: Kind) -> Column:
    if kind == "real":
        return value.try_cast("double")
    if kind == "boolean":  # Spark would take "y" and "1" for true
        return F.when(F.lower(F.trim(value)).isin("true", "false"), value.try_cast("boolean"))
    # Spark would read "12:00" as that time today.
    return F.when(value.rlike(r"^\s*\d{4}-\d{2}-\d{2}"), value.try_cast("timestamp"))


def usable(table: DataFrame) -> DataFrame:
    """The rows of `with_reason` that can be used."""
    return table.where(F.col("_reason").isNull()).drop("_reason", "_row", _BROKEN)


def rejects_of(table: DataFrame, of: str, id_name: str) -> DataFrame:
    """The rows of `with_reason` that cannot be used: of which table, their id, the reason, and the row itself."""
    names = F.lit(of).alias("table"), F.col(id_name).cast("string").alias("id")
    rejected = table.where(F.col("_reason").isNotNull())
    return rejected.select(*names, F.col("_reason").alias("reason"), F.col("_row").alias("row"))


def whole_number_ids(id_name: str) -> Column:
    """Whether all ids of a table without types are whole numbers, written as we would write them."""
    return F.coalesce(F.bool_and(F.col(id_name).try_cast("bigint").cast("string") == F.col(id_name)), F.lit(False))


# --- Answers


def check_free(path: str | Path) -> None:
    """Refuse a place at which something is already, or nothing can be."""
    taken = ": exists already; choose another name, or remove it first"
    check_new(local_path(path), path, taken, "choose another place")


@contextmanager
def aside(out: Path) -> Iterator[Path]:
    """An empty folder beside `out` to work in; gone afterwards, whatever happens."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".serai-", dir=out.parent) as folder, removed_if_stopped(Path(folder)):
        yield Path(folder)


def put(spark: SparkSession, answer: Path, out: Path, folder: Path) -> None:
    """Put a folder of Parquet files where it is to be; as one file of CSV or JSON lines if its name says so."""
    kind = format_of(out, "parquet")
    if kind == "parquet":
        answer.rename(out)
    else:
        write_one_file(spark.read.parquet(str(answer)), out, kind, folder)


def write_one_file(rows: DataFrame, out: Path, kind: Literal["csv", "json"], folder: Path) -> None:
    """Write rows to one file, whole or not at all, by way of the folder aside."""
    made = folder / f"parts-{out.name}"
    rows.write.format(kind).options(**({"escape": '"'} if kind == "csv" else {})).save(str(made))
    whole = folder / f"whole-{out.name}"
    with whole.open("wb") as file:
        if kind == "csv":
            file.write((",".join(rows.columns) + "\n").encode())
        for part in sorted(made.glob("part-*")):
            with part.open("rb") as piece:
                shutil.copyfileobj(piece, file)
    whole.rename(out)


def keep_parts(folder: Path) -> None:
    """Remove what Spark leaves besides the data: checksums and a mark of success."""
    for left in [*folder.glob("_SUCCESS"), *folder.glob(".*.crc")]:
        left.unlink()


def columns_of(table: DataFrame) -> list[str]:
    """The columns that the table itself has."""
    return [name for name in table.columns if name != _BROKEN]
