"""The subscriptions of a pipeline, as its file names them: CSV, JSON lines or Parquet."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from serai.core.errors import BadInput
from serai.matching.files import read_pieces, these_files
from serai.matching.landing import FORMATS
from serai.matching.texts import read_texts


def read_subscriptions(path: Path) -> pa.Table:
    """The table of subscriptions, with ids as texts, ordered by them."""
    if not path.exists():
        raise BadInput(f"{path}: no such file; it should hold the columns subscription and where")
    form = FORMATS.get(path.suffix.lower())
    if form in ("csv", "json"):
        table, rejected = read_texts(path, form, {}, ("subscription",))
        if rejected:
            raise BadInput(f"{path}: {rejected[0].reason}: {rejected[0].row}")
    else:
        files = these_files([path] if path.is_file() else sorted(path.glob("*.parquet")))
        table = pa.concat_tables([files.schema.empty_table(), *read_pieces(files.pieces, files.schema, 1 << 20)])
    if "subscription" not in table.column_names:
        raise BadInput(f"{path}: no column subscription; its columns are: {', '.join(table.column_names)}")
    place = table.column_names.index("subscription")
    named = table.set_column(place, "subscription", table["subscription"].cast(pa.string()))
    return named.sort_by("subscription")
