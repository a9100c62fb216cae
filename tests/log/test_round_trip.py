"""What is written is what is read, to the last bit; and the same run is the same bytes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.field.log import FieldRun
from serai.field.tables import FIELD_TABLES
from serai.lab import read_run, write_run
from serai.log.folder import package_versions
from serai.log.tables import CORE_TABLES, FULL_LOG_TABLES
from tests.log import hand_made

ANYTHING = (-np.inf, np.inf)
RUN_TABLES = CORE_TABLES | FIELD_TABLES


def empty(events: list[tuple[int, float, float]], boxes: list[tuple[float, float]]) -> FieldRun:
    world = hand_made.world(events, boxes)
    return hand_made.run(world, hand_made.ledger(world))


def named() -> FieldRun:
    """A run whose sensors came from a file that need not exist any more."""
    run = hand_made.lively()
    scenario = hand_made.scenario(sensors={"placement": "file", "file": "moved away/sensors.csv"})
    return replace(run, scenario=scenario, world=run.world._replace(sensor_names=("Brücke", 'the "old" mill', "")))


def dead() -> FieldRun:
    run = hand_made.lively()
    return replace(run, ledger=run.ledger._replace(ended_s=41.0, died=np.array([-1, 41, -1], np.int32)))


RUNS = {
    "everything": hand_made.lively(),
    "ledger only": replace(hand_made.lively(), full=None),
    "direct gathering": replace(hand_made.lively(), scenario=hand_made.scenario("dg"), protocol="dg"),
    "empty full log": replace(hand_made.lively(), full=hand_made.full_log([], [])),
    "no events": empty([], [ANYTHING]),
    "no subscribers": empty([(0, 1.0, 2.0)], []),
    "missing value": empty([(0, 1.0, np.nan)], [ANYTHING]),
    "death": dead(),
    "named sensors": named(),
    "large seed": replace(hand_made.lively(), seed=2**62 + 1),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_reading_gives_back_the_run(run, tmp_path):
    write_run(run, tmp_path / "run")
    assert read_run(tmp_path / "run") == run


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS.keys())
def test_arrays_keep_their_types(run, tmp_path):
    write_run(run, tmp_path / "run")
    again = read_run(tmp_path / "run")
    for part in ("ledger", "world"):
        for before, after in zip(getattr(run, part), getattr(again, part), strict=True):
            assert getattr(before, "dtype", type(before)) == getattr(after, "dtype", type(after))
            if isinstance(after, np.ndarray):
                assert after.flags.writeable
                assert after.flags.c_contiguous


@given(
    values=st.lists(st.floats(width=64), min_size=1, max_size=20),
    times=st.lists(st.integers(0, 2**31 - 1), max_size=5),
)
def test_numbers_survive_exactly(values, times, tmp_path_factory):
    world = hand_made.world([(0, abs(value) % 50, value) for value in values], [ANYTHING])
    ledger = hand_made.ledger(world, [(0, 0, time_s, True) for time_s in times], event_pj=[2**62, 0, 1])
    run = hand_made.run(world, ledger)
    folder = write_run(run, tmp_path_factory.mktemp("runs") / "run")
    assert read_run(folder) == run


def test_same_run_same_bytes(tmp_path):
    one, two = (write_run(hand_made.lively(), tmp_path / name) for name in ("one", "two"))
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in two.iterdir())
    for name in names:
        assert (one / name).read_bytes() == (two / name).read_bytes(), name


def test_bytes_do_not_depend_on_the_place(tmp_path):
    folder = write_run(hand_made.lively(), tmp_path / "run")
    for path in folder.iterdir():
        assert str(tmp_path).encode() not in path.read_bytes(), path.name


@pytest.mark.parametrize(("full", "tables"), [(False, RUN_TABLES), (True, RUN_TABLES | FULL_LOG_TABLES)])
def test_tables_of_a_folder(full, tables, tmp_path):
    run = hand_made.lively() if full else replace(hand_made.lively(), full=None)
    folder = write_run(run, tmp_path / "run")
    assert {path.name for path in folder.iterdir()} == {"run.json", *(f"{name}.parquet" for name in tables)}


@pytest.mark.parametrize("name", RUN_TABLES | FULL_LOG_TABLES)
def test_how_tables_are_stored(name, tmp_path):
    file = pq.ParquetFile(write_run(hand_made.lively(), tmp_path / "run") / f"{name}.parquet")
    assert file.schema_arrow.equals((RUN_TABLES | FULL_LOG_TABLES)[name])
    assert file.schema_arrow.metadata[b"attributes"] == b'["A1"]'
    for nth in range(file.metadata.num_columns):
        column = file.metadata.row_group(0).column(nth)
        assert column.compression == "ZSTD"
        assert column.physical_type != "DOUBLE" or not column.has_dictionary_page


def test_contacts_are_those_of_the_protocol(tmp_path):
    def contacts(protocol: str, **settings: object) -> list[tuple[float, ...]]:
        scenario = hand_made.scenario(protocol, settings)
        run = replace(hand_made.lively(), scenario=scenario, protocol=protocol)
        folder = write_run(run, tmp_path / f"{protocol}-{len(settings)}")
        table = pq.ParquetFile(folder / "contacts.parquet").read()
        return sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))

    # s0, s1, s2 are in cells 0, 1, 3; the walker changes cell at 5, 15 and 25 s.
    # The walker is node 3, who stands with s2 is node 4.
    walker = [(0, 3, 0.0, 15.0), (1, 3, 0.0, 25.0), (2, 3, 15.0, 60.0)]
    assert contacts("ced", silent_while_pausing=False) == [*walker, (2, 4, 0.0, 60.0)]
    assert contacts("dg", silent_while_pausing=True) == [*walker[:2], (2, 3, 15.0, 30.0)]
    assert contacts("dg", silent_while_pausing=True, reach="same-cell", resend="once") == [
        (0, 3, 0.0, 5.0),
        (1, 3, 5.0, 15.0),
        (2, 3, 25.0, 30.0),
    ]


# --- Runs compared and shown


def test_runs_that_differ_in_one_number_are_not_equal():
    run = hand_made.lively()
    other = hand_made.lively()
    assert run == other
    other.ledger.event_pj[2] += 1
    assert run != other


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 8},
        {"full": None},
        {"protocol": "cet"},
        {"versions": {}},
        {"scenario": hand_made.scenario("dg")},
    ],
)
def test_runs_that_differ_are_not_equal(change):
    assert replace(hand_made.lively(), **change) != hand_made.lively()


def test_a_run_is_no_path():
    assert hand_made.lively() != Path("run")


def test_runs_are_shown_in_one_line():
    assert repr(hand_made.lively()) == (
        "FieldRun(ced, seed 7: 3 sensors, 2 subscribers, 3 events, 4 receptions, full log)"
    )


def test_versions_of_what_numbers_depend_on():
    assert package_versions().keys() == {"serai", "python", "numpy", "numba", "pyarrow", "pydantic"}


def test_tables_are_those_of_the_folder_and_made_once(tmp_path):
    run = hand_made.lively()
    folder = write_run(run, tmp_path / "run")
    assert run.tables.keys() == (RUN_TABLES | FULL_LOG_TABLES).keys()
    for name, table in run.tables.items():
        assert pq.ParquetFile(folder / f"{name}.parquet").read().equals(table), name
        assert run.tables[name] is table
