"""Where the nodes of a field stand: a table with node, x and y in metres, or node, lat and lon in degrees."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

from serai.core.errors import BadInput
from serai.matching.landing import FORMATS
from serai.matching.texts import read_texts

_METRES_PER_DEGREE: Final = 111_195.0  # of a sphere with the earth's mean radius


def read_places(path: Path) -> dict[str, tuple[float, float]]:
    """Each node's place in metres, to the east and to the north."""
    if not path.is_file():
        raise BadInput(f"{path}: no such file; it should hold the columns node, x, y or node, lat, lon")
    form = FORMATS.get(path.suffix.lower())
    if form not in ("csv", "json"):
        raise BadInput(f"{path}: where nodes stand is read from CSV or JSON lines")
    table, rejected = read_texts(path, form, dict.fromkeys(("x", "y", "lat", "lon"), "real"), ("node",))
    if rejected:
        raise BadInput(f"{path}: {rejected[0].reason}: {rejected[0].row}")
    for east, north in (("x", "y"), ("lon", "lat")):
        if {east, north} <= set(table.column_names):
            break
    else:
        raise BadInput(f"{path}: no columns x and y, nor lat and lon; its columns are: {', '.join(table.column_names)}")
    rows = [row for row in table.to_pylist() if row[east] is not None and row[north] is not None]
    if east == "x":
        return {row["node"]: (row["x"], row["y"]) for row in rows}
    middle = math.radians(sum(row["lat"] for row in rows) / max(1, len(rows)))
    return {
        row["node"]: (row["lon"] * _METRES_PER_DEGREE * math.cos(middle), row["lat"] * _METRES_PER_DEGREE)
        for row in rows
    }
