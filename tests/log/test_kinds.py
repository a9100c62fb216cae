"""The same core tables in the folders of all kinds of network, with values that can be worked out by hand."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from serai.core.errors import BadInput
from serai.lab import load_scenario, parse_scenario, read_run, simulate, write_run
from serai.log.run import RecordedRun, SimulatedRun
from serai.log.tables import CORE_TABLES, FULL_LOG_TABLES
from serai.opportunistic.tracks import tracks_in_run
from serai.overlay import tinymq
from serai.overlay.engine.run import KINDS as OVERLAY_MESSAGES
from serai.world.contacts import Journeys
from serai.world.mobility import Tracks
from tests.log import hand_made
from tests.opportunistic.test_runs import RANGES, small_run, some_run
from tests.overlay.test_runs import SMALL, line_of_five, run_of

LINE = """
[events.attributes]
A = {kind = "real", low = 0.0, high = 16.0}
[subscriptions]
where = "A >= 0"
[protocol]
name = "tinymq"
"""
RUNS = {
    "field": hand_made.lively,
    "overlay": lambda: replace(
        run_of(line_of_five(), tinymq.Settings(attribute_bits=4)), scenario=parse_scenario(LINE)
    ),
    "opportunistic": small_run,
    "ranges": lambda: some_run(more=RANGES),
}


@pytest.mark.parametrize("name", RUNS)
def test_every_run_has_the_core_and_comes_back(name: str, tmp_path: Path) -> None:
    run = RUNS[name]()
    folder = write_run(run, tmp_path / "run")
    for table, schema in CORE_TABLES.items():
        assert pq.ParquetFile(folder / f"{table}.parquet").schema_arrow.equals(schema), table
    full = FULL_LOG_TABLES if run.full_log else {}
    own = run.form().own.keys() | (run.form().optional.keys() if run.full_log and name == "opportunistic" else set())
    assert run.tables.keys() == CORE_TABLES.keys() | own | full.keys()
    said = json.loads((folder / "run.json").read_text())
    assert (said["origin"], said["kind"]) == ("simulation", run.scenario.network)
    assert read_run(folder) == run


def rows(run: SimulatedRun, table: str, *columns: str) -> list[tuple[object, ...]]:
    return list(zip(*(run.tables[table][column].to_pylist() for column in columns), strict=True))


def test_a_field() -> None:
    run = hand_made.lively()
    assert rows(run, "nodes", "role", "x_m") == [
        ("sensor", 5.0),
        ("sensor", 15.0),
        ("sensor", 35.0),
        ("subscriber", None),
        ("subscriber", None),
    ]
    assert rows(run, "tracks", "node", "time_s", "x_m") == [(3, 0.0, 5.0), (3, 30.0, 35.0), (4, 0.0, 35.0)]
    assert rows(run, "deliveries", "event", "node", "time_s", "hops", "wanted") == [
        (0, 3, 3.0, None, True),
        (1, 3, 4.0, None, False),
        (2, 4, 10.0, None, True),
        (2, 3, 28.0, None, True),
    ]
    assert rows(run, "events", "node", "size_bytes", "lifetime_s", "channel", "target") == [
        (node, 31.25, 60.0, "", -1) for node in range(3)
    ]
    assert rows(run, "transfers", "start_s", "end_s", "bytes")[0] == (3.0, 3.0, 31.25)
    assert rows(run, "sensors", "node", "cell", "community", "sent") == [(0, 0, 0, 2), (1, 1, 0, 1), (2, 3, 1, 2)]


def test_an_overlay() -> None:
    """Event 0 meets at a, and the notification goes a -> e; event 1 meets where it is told: at e."""
    run = RUNS["overlay"]()
    assert rows(run, "contacts", "a", "b", "start_s", "end_s") == [(n, n + 1, 0.0, np.inf) for n in range(4)]
    assert rows(run, "events", "node", "time_s", "transmissions") == [(0, None, 4), (4, None, 0)]
    assert rows(run, "deliveries", "event", "node", "time_s", "hops") == [(0, 4, None, 4), (1, 4, None, 0)]
    assert rows(run, "brokers", "root_of") == [(0,), (-1,), (-1,), (-1,), (-1,)]
    assert len(run.tables["tracks"]) == 0


def test_an_overlays_transmissions_add_up_and_deliveries_are_the_nodes() -> None:
    run = simulate(load_scenario("tinymq", [*SMALL, "protocol.event_trees=all"]), seed=1)
    sent = dict(zip(OVERLAY_MESSAGES, run.outcome.load.sent.sum(axis=1), strict=True))
    assert sum(run.tables["events"]["transmissions"].to_pylist()) == sent["event"] + sent["notification"]
    told = run.outcome.notifications
    pairs: dict[tuple[int, int], int] = {}
    for event, query, hops in zip(told.event.tolist(), told.query.tolist(), told.hops.tolist(), strict=True):
        pair = event, int(run.network.subscriber[query])
        pairs[pair] = min(hops, pairs.get(pair, hops))
    assert {(event, node): hops for event, node, hops in rows(run, "deliveries", "event", "node", "hops")} == pairs
    assert len(run.tables["deliveries"]) == len(pairs) < len(told.event)


def test_an_opportunistic_network() -> None:
    run = small_run()
    assert rows(run, "events", "node", "time_s", "channel", "size_bytes", "target", "transmissions") == [
        (0, 0.0, "a", 125.0, -1, None),
        (0, 1.0, "b", 125.0, -1, None),
    ]
    assert rows(run, "subscriptions", "node", "channel", "where", "low") == [
        (1, "a", "", []),
        (2, "a", "", []),
        (2, "b", "", []),
    ]
    assert rows(run, "deliveries", "event", "node", "time_s", "hops", "wanted") == [
        (0, 1, 10.125, 1, True),
        (0, 2, 20.125, 2, True),
    ]
    assert rows(run, "transfers", "event", "sender", "receiver", "bytes", "kind", "outcome") == [
        (0, 0, 1, 125.0, "copy", "accepted"),
        (1, 0, 1, 125.0, "copy", "accepted"),
        (0, 1, 2, 125.0, "copy", "accepted"),
        (1, 1, 2, 62.0, "copy", "broken"),
    ]
    assert rows(run, "relays", "event", "relays") == [(0, 2), (1, 1)]


def test_ranges_stand_in_every_row_of_their_node() -> None:
    run = some_run(more=RANGES)
    for node, where, low, high in rows(run, "subscriptions", "node", "where", "low", "high"):
        sink = run.wanted.sinks.tolist().index(node)
        assert (where, low, high) == (
            run.wanted.where[sink],
            run.wanted.low[sink].tolist(),
            run.wanted.high[sink].tolist(),
        )
    values, got = run.tables["events"]["values"].to_pylist(), rows(run, "deliveries", "event", "node", "wanted")
    assert {wanted for *_, wanted in got} == {True, False}
    box = {node: (low, high) for node, low, high in rows(run, "subscriptions", "node", "low", "high")}
    for event, node, wanted in got:
        assert wanted == all(a <= v <= b for a, v, b in zip(box[node][0], values[event], box[node][1], strict=True))


def test_a_range_that_no_event_can_match_is_kept(tmp_path: Path) -> None:
    run = some_run(more='[subscriptions]\nwhere = ["A1 < ? and A2 < ?", "A1 > 1000"]\n')
    idle = [row for row in rows(run, "subscriptions", "channel", "where", "from_s") if not row[0]]
    assert idle
    assert set(idle) == {("", "A1 > 1000", -np.inf)}
    assert read_run(write_run(run, tmp_path / "run")) == run


def test_messages_to_one_node_come_back_even_if_their_ids_are_alike(tmp_path: Path) -> None:
    (tmp_path / "met.txt").write_text("1 CONN 0 1 up\n50 CONN 0 1 down\n60 CONN 1 2 up\n99 CONN 1 2 down\n")
    (tmp_path / "sent.txt").write_text("0 C M1 0 2 100\n2 C M1 0 1 100\n3 C M1 1 2 100\n")
    scenario = parse_scenario(
        f'duration = "90 s"\n[contacts]\nsource = "trace"\nfile = "{tmp_path / "met.txt"}"\n'
        f'[bundles]\nfile = "{tmp_path / "sent.txt"}"\n[protocol]\nname = "flooding"\n'
    )
    run = simulate(scenario, full_log=True)
    assert rows(run, "events", "channel", "target") == [("M1", 2), ("M1 (2)", 1), ("M1 (3)", 2)]
    assert len(run.tables["tracks"]) == 0
    assert {row[0] for row in rows(run, "transfers", "addressee")} == {1, 2}
    assert read_run(write_run(run, tmp_path / "run")) == run


# --- Tracks of an opportunistic network


def walks(*nodes: list[tuple[float, float]]) -> Tracks:
    """Nodes at (x, 0) at these times."""
    start = np.cumsum([0, *map(len, nodes)]).astype(np.int64)
    time_s, x_m = np.array([point for node in nodes for point in node], float).reshape(-1, 2).T.copy()
    return Tracks(start, time_s, x_m, np.zeros(len(x_m)))


def logged(journeys: Journeys, nodes: int) -> list[tuple[int, float, float | None]]:
    tracks = tracks_in_run(journeys, 100.0, nodes)
    assert tracks is not None
    node = np.repeat(np.arange(nodes), np.diff(tracks.start)).tolist()
    assert np.array_equal(np.isnan(tracks.x_m), np.isnan(tracks.y_m))
    places = [None if np.isnan(x) else x for x in tracks.x_m.tolist()]
    return list(zip(node, tracks.time_s.tolist(), places, strict=True))


def test_tracks_are_cut_to_the_run() -> None:
    walk = walks([(-30, 1), (-10, 2), (40, 3), (120, 4), (130, 5)], [], [(0, 6)])
    assert logged(Journeys(walk), 4) == [(0, -10.0, 2.0), (0, 40.0, 3.0), (0, 120.0, 4.0), (2, 0.0, 6.0)]


def test_who_stands_before_its_first_point_is_there_from_the_start() -> None:
    assert logged(Journeys(walks([(10, 1), (20, 2)])), 1) == [(0, 0.0, 1.0), (0, 10.0, 1.0), (0, 20.0, 2.0)]


def test_where_nobody_knows_there_is_no_place() -> None:
    walk = walks([(10, 1), (20, 2), (60, 3), (70, 4)])
    fixes = [(0, 10.0, 1.0), (0, 20.0, 2.0), (0, 20.0, None), (0, 60.0, 3.0), (0, 70.0, 4.0)]
    assert logged(Journeys(walk, gap_s=30.0, stays=False), 1) == [*fixes, (0, 70.0, None)]
    assert logged(Journeys(walk, gap_s=30.0, stays=True), 1) == [(0, 0.0, 1.0), *fixes]


def test_nobody_was_anywhere() -> None:
    assert tracks_in_run(Journeys(walks([], [])), 100.0, 2) is None
    assert tracks_in_run(Journeys(walks([(200, 1)]), stays=False), 100.0, 1) is not None  # it may come from afar


def test_movement_is_logged_and_comes_back(tmp_path: Path) -> None:
    run = some_run()
    assert run.tracks is not None
    assert len(run.tables["tracks"]) == len(run.tracks.time_s) > 24
    again = read_run(write_run(run, tmp_path / "run"))
    assert np.array_equal(again.tracks.x_m, run.tracks.x_m)
    assert np.array_equal(again.tracks.start, run.tracks.start)


# --- Folders that real nodes wrote


def recorded() -> RecordedRun:
    tables = dict(small_run().tables)
    del tables["relays"]
    tables["health"] = tables["channels"]
    said = {"origin": "field", "kind": "opportunistic", "attributes": [], "begin": "2026-05-01T06:00:00Z"}
    return RecordedRun("dpsp", {"serai": "0.2"}, said, tables)


def test_a_folder_without_a_scenario(tmp_path: Path) -> None:
    folder = write_run(recorded(), tmp_path / "run")
    run = read_run(folder)
    assert isinstance(run, RecordedRun)
    assert run == recorded()
    assert (run.kind, run.protocol, run.full_log, run.said["begin"]) == (
        "opportunistic",
        "dpsp",
        True,
        "2026-05-01T06:00:00Z",
    )
    assert repr(run) == "RecordedRun(dpsp: 3 nodes, 2 events)"
    assert run.tables["health"].num_rows == 2
    assert write_run(run, tmp_path / "again").joinpath("run.json").read_bytes() == (folder / "run.json").read_bytes()


def test_a_recorded_folder_is_checked(tmp_path: Path) -> None:
    folder = write_run(recorded(), tmp_path / "run")
    (folder / "health.parquet").write_bytes(b"")
    (folder / "deliveries.parquet").unlink()
    with pytest.raises(BadInput, match=r"deliveries.parquet is missing; .*health.parquet is damaged"):
        read_run(folder)
