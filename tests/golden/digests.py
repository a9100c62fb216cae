"""What every built-in scenario gives for ten seeds, column by column, as digests of the values.

python -m tests.golden.digests     writes digests.json anew: only after a change that is meant to change numbers
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import serai
from serai.scenario.load import builtin_names

FILE = Path(__file__).with_name("digests.json")
SEEDS = range(10)


def digests_of(folders: list[Path]) -> dict[str, str]:
    """A digest of each column of each table, over the run folders of all seeds."""
    sums: dict[str, Any] = {}
    for folder in folders:
        for file in sorted(folder.glob("*.parquet")):
            table = pq.read_table(file)
            for column in table.column_names:
                key = f"{file.stem}.{column}"
                sums.setdefault(key, hashlib.blake2b(digest_size=8)).update(value_bytes(table[column]))
    return {key: found.hexdigest() for key, found in sorted(sums.items())}


def value_bytes(column: pa.ChunkedArray) -> bytes:
    """The values of a column, whatever their type: numbers as doubles, texts as they are."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    if pa.types.is_string(column.type) or pa.types.is_list(column.type):
        return json.dumps(column.to_pylist()).encode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return column.cast(pa.float64()).combine_chunks().to_numpy(zero_copy_only=False).tobytes()


def digests_now(name: str, folder: Path) -> dict[str, str]:
    """The digests of a built-in scenario, simulated and written now."""
    scenario = serai.load_scenario(name)
    places = [folder / str(seed) for seed in SEEDS]
    for seed, place in zip(SEEDS, places, strict=True):
        serai.write_run(serai.simulate(scenario, seed=seed, full_log=True), place)
    return digests_of(places)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as aside:
        found = {name: digests_now(name, Path(aside) / name) for name in builtin_names()}
    FILE.write_text(json.dumps(found, indent=1) + "\n")
