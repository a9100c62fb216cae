"""The folder of a sweep: what is missing, what is damaged, what is refused, and the table that is always the same."""

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import serai
from serai.core.errors import BadInput, CannotRun, SeraiError
from serai.sweeping import store as module
from serai.sweeping.columns import part_schema
from serai.sweeping.plan import Plan, plan_sweep
from serai.sweeping.store import (
    OtherSweep,
    Part,
    Segment,
    Store,
    disk_message,
    missing_runs,
    part_content,
    part_name,
    write_aside,
)
from tests.sweeping.tiny import tiny_plan

NUMBERS = [column.name for column in part_schema("field") if pa.types.is_integer(column.type) and not column.nullable]


def row(cell: str, protocol: str, seed: int, value: float) -> dict[str, Any]:
    """A row of a part that says something, if not much."""
    empty: dict[str, Any] = dict.fromkeys(NUMBERS, 0)
    return empty | {
        "cell": cell, "protocol": protocol, "seed": seed, "delivery_ratio": value, "energy_j": 0.0,
        "control_energy_j": 0.0, "delay_bin": [seed % 7], "delay_count": [1],
    }  # fmt: skip


def write_part(store: Store, rows: list[dict[str, Any]]) -> Path:
    """Hand in these rows as a task would."""
    segments = [Segment(row["cell"], row["seed"], row["seed"] + 1) for row in rows]
    content = part_content(pa.Table.from_pylist(rows, schema=part_schema("field")), segments)
    place = store.parts_folder / part_name(content, len(rows))
    write_aside(place, content)
    return place


def rows_of(plan: Plan) -> list[dict[str, Any]]:
    """A row for each distinct run of a plan."""
    protocols = {cell.id: cell.protocol for cell in plan.cells}
    return [row(cell, protocols[cell], seed, seed / 7) for cell, seeds in plan.runs().items() for seed in seeds]


@pytest.fixture
def plan() -> Plan:
    return tiny_plan("sensors.count=8,9", seeds=3)


@pytest.fixture
def store(tmp_path: Path, plan: Plan) -> Store:
    store = Store(tmp_path / "sweep")
    store.open(plan)
    return store


# --- what is missing

HELD = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(1, 12)), max_size=8)


@given(HELD, st.integers(0, 40), st.integers(0, 40), st.integers(0, 20))
def test_missing_runs_are_those_that_no_part_holds(
    held: list[tuple[str, int, int]], a: int, b: int, from_: int
) -> None:
    parts = [Part(Path(), (Segment(cell, first, first + length),)) for cell, first, length in held]
    finished = {(cell, seed) for cell, first, length in held for seed in range(first, first + length)}
    expected = [(cell, seed) for cell, seeds in (("a", a), ("b", b)) for seed in range(from_, seeds)]
    found = missing_runs({"a": range(from_, a), "b": range(from_, b)}, parts)
    assert [(s.cell, seed) for s in found for seed in range(s.first, s.stop)] == [
        run for run in expected if run not in finished
    ]


# --- the table


def test_the_table_has_every_run_of_the_plan_in_order(store: Store, plan: Plan) -> None:
    write_part(store, rows_of(plan)[::-1])
    parts, damaged = store.parts()
    assert damaged == []
    table = pq.read_table(store.write_table(plan, parts)).to_pylist()
    assert [(row["point"], row["protocol"], row["seed"]) for row in table] == [
        (point, "dg", seed) for point in range(2) for seed in range(3)
    ]
    assert [row["delivery_ratio"] for row in table] == [seed / 7 for _ in range(2) for seed in range(3)]


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, bytes]:
    """A plan of four cells, and its table when all runs came in at once and in order."""
    plan = plan_sweep("dg", ["sensors.count=8,9"], ["dg", "ced"], 5)
    store = Store(tmp_path_factory.mktemp("sweep"))
    store.open(plan)
    write_part(store, rows_of(plan))
    return plan, store.write_table(plan, store.parts()[0]).read_bytes()


@settings(max_examples=settings().max_examples // 4)  # each writes dozens of files
@given(st.data())
def test_the_table_does_not_depend_on_how_runs_came_in(
    at_once: tuple[Plan, bytes], tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    plan, expected = at_once
    rows = rows_of(plan)
    store = Store(tmp_path_factory.mktemp("sweep"))
    store.parts_folder.mkdir()  # all of a sweep's folder that the table is made from
    waiting = data.draw(st.permutations(rows))
    twice = data.draw(st.lists(st.sampled_from(rows), max_size=5, unique_by=lambda row: (row["cell"], row["seed"])))
    while waiting:
        taken = data.draw(st.integers(1, len(waiting)))
        write_part(store, waiting[:taken])
        waiting = waiting[taken:]
    if twice:
        write_part(store, twice)
    assert store.write_table(plan, store.parts()[0]).read_bytes() == expected


def test_a_long_cell_is_written_in_groups_of_seeds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SEEDS_PER_GROUP", 4)
    plan = tiny_plan(seeds=10)
    for first in (5, 0):
        write_part(store, rows_of(plan)[first : first + 5])
    table = store.write_table(plan, store.parts()[0])
    assert [pq.ParquetFile(table).metadata.row_group(group).num_rows for group in range(3)] == [4, 4, 2]
    assert pq.read_table(table)["seed"].to_pylist() == list(range(10))


def test_points_that_share_runs_both_have_them(store: Store) -> None:
    plan = plan_sweep("field", ["protocol.alpha=2,5"], ["dg", "ced"], 2)
    write_part(store, rows_of(plan))
    table = pq.read_table(store.write_table(plan, store.parts()[0])).to_pylist()
    assert [(row["point"], row["protocol"], row["seed"]) for row in table] == [
        (point, protocol, seed) for point in range(2) for protocol in ("dg", "ced") for seed in range(2)
    ]


def test_two_different_results_for_one_run_are_told(store: Store, plan: Plan) -> None:
    rows = rows_of(plan)
    write_part(store, rows)
    write_part(store, [rows[0] | {"delivery_ratio": 0.5}])
    with pytest.raises(SeraiError, match="two workers gave different results"):
        store.write_table(plan, store.parts()[0])


def test_a_table_of_unfinished_runs_is_not_written(store: Store, plan: Plan) -> None:
    write_part(store, rows_of(plan)[:4])
    with pytest.raises(SeraiError, match="2 runs are not finished"):
        store.write_table(plan, store.parts()[0])
    assert not store.table.exists()
    assert list(store.folder.glob(".aside-*")) == []


# --- damage


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "renamed"])
def test_a_damaged_part_is_named_and_set_aside(store: Store, plan: Plan, damage: str) -> None:
    rows = rows_of(plan)
    good, bad = write_part(store, rows[:3]), write_part(store, rows[3:])
    content = bytearray(bad.read_bytes())
    if damage == "renamed":
        bad = bad.rename(bad.with_name("hello.parquet"))
    else:
        content[len(content) // 2] ^= 1
        bad.write_bytes({"cut": content[:-9], "changed": content, "empty": b""}[damage])
    parts, damaged = store.parts()
    assert damaged == [bad.name]
    assert [part.path for part in parts] == [good]
    assert list(missing_runs(plan.runs(), parts)) == [Segment(rows[3]["cell"], 0, 3)]
    assert store.parts() == (parts, [])


def test_writing_a_part_twice_leaves_one(store: Store, plan: Plan) -> None:
    assert write_part(store, rows_of(plan)) == write_part(store, rows_of(plan))
    assert store.runs_in_parts() == 6
    assert [path.name for path in store.parts_folder.iterdir()] == [store.parts()[0][0].path.name]


# --- refusals


def test_a_folder_of_the_same_sweep_is_resumed(store: Store, plan: Plan) -> None:
    store.open(plan)
    store.open(tiny_plan("sensors.count=8,9,10", seeds=30))
    assert store.plan() == tiny_plan("sensors.count=8,9,10", seeds=30)


def test_a_folder_of_another_scenario_is_refused(store: Store) -> None:
    with pytest.raises(OtherSweep, match=r"holds a sweep of another scenario \(dg\)"):
        store.open(plan_sweep("ced"))


def test_a_folder_of_another_version_is_refused(store: Store, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "source_stamp", lambda: "another")
    with pytest.raises(OtherSweep, match=r"its runs were made with sources .* choose another folder"):
        store.open(plan)


def test_the_stamp_of_the_sources_covers_what_makes_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "serai"
    shutil.copytree(Path(serai.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(serai, "__file__", str(package / "__init__.py"))

    def stamp_after_an_edit(name: str) -> str:
        with (package / name).open("a") as source:
            source.write("# edited\n")
        return module.source_stamp()

    before = module.source_stamp()
    for name in ("cli/runs.py", "matching/index.py", "papers/claims.py", "report/page.py", "spark/session.py"):
        assert stamp_after_an_edit(name) == before
    seen = {before}
    for name in (
        "field/ced.py",
        "opportunistic/rules.py",
        "core/content.py",
        "world/contacts.py",
        "sweeping/delays.py",
    ):
        stamp = stamp_after_an_edit(name)
        assert stamp not in seen
        seen.add(stamp)
    assert all((package / name).exists() for name in module._NO_MATTER)


def test_a_folder_with_other_things_in_it_is_refused(tmp_path: Path, plan: Plan) -> None:
    (tmp_path / "letter.txt").write_text("Dear ...")
    with pytest.raises(BadInput, match="not empty and holds no sweep"):
        Store(tmp_path).open(plan)


@pytest.mark.parametrize("said", ["{", '{"format": 0}', "[]"])
def test_a_description_that_cannot_be_read_is_refused(store: Store, plan: Plan, said: str) -> None:
    (store.folder / "sweep.json").write_text(said)
    with pytest.raises(BadInput, match=r"sweep\.json.*choose another folder"):
        store.open(plan)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path, plan: Plan) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is a file, not a folder"):
        Store(tmp_path / "file" / "sweep").open(plan)


def test_an_unwritable_place_is_refused(tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.os, "access", lambda *_: False)  # the tests may run as root, who may write anywhere
    with pytest.raises(BadInput, match="no permission to write"):
        Store(tmp_path / "sweep").open(plan)


def test_a_folder_without_a_sweep_has_no_plan(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no sweep is kept there"):
        Store(tmp_path).plan()


def test_a_full_disk_says_that_nothing_is_lost(store: Store, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    write_part(store, rows_of(plan)[:3])
    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(CannotRun, match="no space left; finished runs are kept"):
        write_part(store, rows_of(plan)[3:])
    assert len(store.parts()[0]) == 1
    assert list(store.parts_folder.glob(".aside-*")) == []


def test_other_trouble_with_files_is_said_as_it_is() -> None:
    assert "Read-only file system" in disk_message(OSError(errno.EROFS, "Read-only file system"), Path("out"))


def test_the_mark_tells_whether_a_folder_is_the_same(store: Store, plan: Plan, tmp_path: Path) -> None:
    mark = store.write_plan(plan)
    assert store.is_marked(mark)
    assert not Store(tmp_path / "elsewhere").is_marked(mark)
    (store.folder / "sweep.json").write_text(json.dumps({}))
    assert not store.is_marked(mark)


def test_clearing_leaves_what_others_wrote(store: Store, plan: Plan) -> None:
    write_part(store, rows_of(plan))
    (store.folder / "notes.txt").write_text("mine")
    store.clear()
    assert [path.name for path in store.folder.rglob("*") if path.is_file()] == ["notes.txt"]
