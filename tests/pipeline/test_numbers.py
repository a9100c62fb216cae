"""Which numbers and ids came, beside plain sets."""

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from serai.pipeline.numbers import Gap, Ids, Numbers, gaps, missing_count, rows_by_key
from serai.spark.stores import Folder


def test_bitmaps_know_repeats_and_gaps(tmp_path: Path) -> None:
    draw = random.Random(3)
    store = Folder(tmp_path)
    numbers, plain = Numbers(store, 0), set()
    for batch in range(20):
        seq = np.array([draw.randint(0, 60) for _ in range(draw.randint(0, 12))], np.int64)
        fresh = numbers.fresh(("n", ""), seq)
        expected = [
            value not in plain and value not in seq[:place].tolist() for place, value in enumerate(seq.tolist())
        ]
        assert fresh.tolist() == expected
        plain |= set(seq.tolist())
        numbers.write(batch)
        numbers.done(batch)
    assert len(list((tmp_path / "state" / "numbers").iterdir())) <= 5  # parts are merged
    kept = Numbers(store, 20).came["n", ""]
    assert set(kept) == plain
    absent = [number for number in range(min(1, min(plain)), max(plain) + 1) if number not in plain]
    assert [number for gap in gaps(kept) for number in range(gap.first, gap.last + 1)] == absent
    assert list(gaps(type(kept)([1, 2, 5, 9]))) == [Gap(3, 4), Gap(6, 8)]


@pytest.mark.parametrize("seed", range(5))
def test_ids_are_known_again_also_after_a_start(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    store, plain = Folder(tmp_path), set()
    ids = Ids(store, "ids", 0)
    for batch in range(30):
        if draw.random() < 0.2:
            ids = Ids(store, "ids", batch)
        for _ in range(draw.randint(0, 30)):
            some = [draw.randint(0, 400) for _ in range(draw.randint(1, 10))]
            expected = [value not in plain and value not in some[:place] for place, value in enumerate(some)]
            assert ids.fresh(np.array(some, np.int64)).tolist() == expected
            plain |= set(some)
        ids.write(batch)
        ids.done(batch)
    assert sum(map(len, ids.came)) == len(plain)
    assert len(list((tmp_path / "state" / "ids").iterdir())) <= 6


def test_gaps_are_what_a_list_of_all_numbers_lacks() -> None:
    for seed in range(500):
        draw = random.Random(seed)
        numbers = {draw.randint(0, 60) for _ in range(draw.randint(1, 60))}
        absent = [number for number in range(min(1, min(numbers)), max(numbers) + 1) if number not in numbers]
        found = list(gaps(BitMap64(numbers)))
        assert [number for gap in found for number in range(gap.first, gap.last + 1)] == absent
        assert all(one.last + 1 < other.first for one, other in pairwise(found))
        assert missing_count(BitMap64(numbers)) == len(absent)


def test_a_bogus_number_is_one_gap() -> None:
    assert list(gaps(BitMap64([1, 2, 2**62]))) == [Gap(3, 2**62 - 1)]
    assert list(gaps(BitMap64())) == []


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_shared_out_by_node_and_epoch(seed: int) -> None:
    draw = random.Random(seed)
    keys = [(draw.choice("abc"), draw.choice(["", "1", "2"])) for _ in range(draw.randint(1, 60))]
    counted = [draw.random() < 0.8 for _ in keys]
    node, epoch = (pa.chunked_array([pa.array(names).dictionary_encode()]) for names in zip(*keys, strict=True))
    found = {key: rows.tolist() for key, rows in rows_by_key(node, epoch, np.array(counted))}
    expected: dict[tuple[str, str], list[int]] = {}
    for row, key in enumerate(keys):
        if counted[row]:
            expected.setdefault(key, []).append(row)
    assert found == expected
