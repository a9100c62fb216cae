"""Each format on a small file made by hand: what is in it, and what had to be decided."""

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from serai.core.errors import BadInput
from serai.traces import FORMATS, Adjustments, ContactTrace, TrackTrace, detect_format, read_trace
from serai.world.contacts import contacts_by_range

FILES = Path(__file__).parent / "files"
FORMAT_OF = {
    "begin-duration.txt": "begin-duration", "sightings.txt": "sightings",
    "sightings-time-last.csv": "sightings-time-last", "sociopatterns.txt": "sociopatterns",
    "one-contacts.txt": "one-contacts", "one-contacts-odd.txt": "one-contacts", "crawdad.txt": "crawdad",
    "one-movement.txt": "one-movement", "bonnmotion.movements": "bonnmotion", "ns2.tcl": "ns2", "tracks.gpx": "gpx",
    "movebank.csv": "movebank", "fcd.xml": "sumo", "fcd-geo.xml": "sumo",
}  # fmt: skip


def contacts_of(trace: ContactTrace | TrackTrace) -> list[tuple[str, str, float, float]]:
    assert isinstance(trace, ContactTrace)
    rows = zip(*(column.tolist() for column in trace.contacts), strict=True)
    return [(trace.names[a], trace.names[b], up, down) for a, b, up, down in rows]


def points_of(trace: ContactTrace | TrackTrace) -> dict[str, list[tuple[float, float, float]]]:
    assert isinstance(trace, TrackTrace)
    columns = np.column_stack(trace.tracks[1:])
    parts = [columns[trace.tracks.start[node] : trace.tracks.start[node + 1]] for node in range(len(trace.names))]
    return {name: [tuple(row) for row in part.tolist()] for name, part in zip(trace.names, parts, strict=True)}


def noticed(trace: ContactTrace | TrackTrace) -> dict[str, tuple[int, tuple[int, ...]]]:
    return {warning.what: (warning.count, warning.lines) for warning in trace.warnings}


def test_every_format_is_told_from_its_first_lines() -> None:
    assert {name: detect_format(FILES / name) for name in FORMAT_OF} == FORMAT_OF
    assert set(FORMAT_OF.values()) == set(FORMATS)


@pytest.mark.parametrize("name", FORMAT_OF)
def test_a_packed_file_says_the_same(name: str, tmp_path: Path) -> None:
    packed = tmp_path / "anything"
    packed.write_bytes(gzip.compress((FILES / name).read_bytes()))
    plain, unpacked = read_trace(FILES / name), read_trace(packed)
    assert unpacked.names == plain.names
    assert unpacked.warnings == plain.warnings
    assert unpacked.lines == plain.lines


# ---- contacts


def test_contacts_of_the_one() -> None:
    trace = read_trace(FILES / "one-contacts.txt")
    assert trace.names == ("1", "2", "10")
    assert contacts_of(trace) == [
        ("2", "10", 1.0, 4.0),
        ("1", "10", 3.5, 9.0),
        ("2", "10", 6.0, 6.0),
        ("1", "2", 9.0, 9.0),
    ]
    assert (trace.begin_s, trace.end_s, trace.lines) == (1.0, 9.0, 8)
    assert noticed(trace) == {"still up at the end of the file: ends there, at 9 s": (1, ())}


def test_what_a_network_cannot_do_is_decided_and_counted() -> None:
    trace = read_trace(FILES / "one-contacts-odd.txt")
    assert contacts_of(trace) == [("2", "10", 1.0, 6.0), ("1", "2", 2.5, 6.0)]
    assert noticed(trace) == {
        "expected: time CONN node node up|down: left out": (3, (4, 5, 9)),
        "a node meets itself: left out": (1, (2,)),
        "earlier than the line before: sorted": (1, (6,)),
        "up, but it is up already: left out": (1, (3,)),
        "down, but it is not up: left out": (1, (7,)),
        "still up at the end of the file: ends there, at 6 s": (1, ()),
    }


def test_contacts_in_four_columns() -> None:
    trace = read_trace(FILES / "crawdad.txt")
    assert contacts_of(trace) == [("1", "3", 10.0, 75.0), ("2", "3", 15.0, 30.0), ("1", "2", 20.5, 25.5)]
    assert (trace.begin_s, trace.end_s) == (10.0, 75.0)
    assert noticed(trace) == {
        "overlaps or touches another contact of the same two nodes: made one": (2, ()),
        "of no length: lasts the smallest step of time in the file, 5": (1, ()),
        "expected: node node begin end: left out": (1, (7,)),
        "a node meets itself: left out": (1, (4,)),
        "ends before it begins: left out": (1, (5,)),
    }


def test_contacts_with_a_duration() -> None:
    trace = read_trace(FILES / "begin-duration.txt")
    assert contacts_of(trace) == [("a", "b", 100.0, 130.0), ("a", "c", 120.0, 200.0), ("b", "c", 250.0, 260.0)]
    assert noticed(trace) == {
        "of no length: lasts the smallest step of time in the file, 10": (1, ()),
        "overlaps or touches another contact of the same two nodes: made one": (1, ()),
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sightings.txt", [("1", "2", 0.0, 60.0), ("2", "3", 20.0, 40.0), ("1", "2", 100.0, 120.0)]),
        ("sightings-time-last.csv", [("1", "2", 0.0, 60.0), ("2", "3", 20.0, 40.0), ("1", "2", 100.0, 120.0)]),
        ("sociopatterns.txt", [("1", "2", -20.0, 40.0), ("2", "3", 0.0, 20.0), ("1", "2", 80.0, 100.0)]),
    ],
)
def test_sightings_in_a_row_are_one_contact(name: str, expected: list[tuple[str, str, float, float]]) -> None:
    trace = read_trace(FILES / name)
    assert contacts_of(trace) == expected
    assert (trace.begin_s, trace.end_s) == (expected[0][2], expected[-1][3])
    assert noticed(trace) == {"a sighting: lasts the smallest step of time in the file, 20": (5, ())}
    joined = read_trace(FILES / name, wanted=Adjustments(gap_s=40.0))
    assert [row[:2] for row in contacts_of(joined)] == [("1", "2"), ("2", "3")]


@pytest.mark.parametrize("form", ["crawdad", "begin-duration", "sightings", "sightings-time-last"])
def test_a_line_with_other_columns_than_all_others_is_named(form: str, tmp_path: Path) -> None:
    """It is read, as further columns are nobody's concern, but it may be no line of this table at all."""
    path = tmp_path / "trace"
    columns = 4 if form in ("crawdad", "begin-duration") else 3
    rows = ["1 2 3 4 5"[: 2 * columns - 1]] * 30
    odd = "more or fewer columns than nearly all lines: read all the same, as far as is needed"
    for more, named in (((), None), ((4,), (1, (5,))), ((4, 9, 20), None)):  # three of thirty are no oddity
        told = [f"{row} 5 6 7 8 9" if number in more else row for number, row in enumerate(rows)]
        path.write_text("\n".join(told) + "\n")
        assert noticed(read_trace(path, form)).get(odd) == named
    path.write_text("1 2 3 4\n1 2 3 4 5\n")
    assert odd not in noticed(read_trace(path, form))


def test_a_trace_in_milliseconds_of_some_nodes(tmp_path: Path) -> None:
    path = tmp_path / "contacts.txt"
    path.write_text("n1 n2 1500 4500\nn1 n9 2000 3000\nn2 n3 4000 4100\n")
    trace = read_trace(path, "crawdad", wanted=Adjustments("ms", "n1-n3, n5"))
    assert trace.names == ("n1", "n2", "n3", "n5")
    assert contacts_of(trace) == [("n1", "n2", 1.5, 4.5), ("n2", "n3", 4.0, 4.1)]
    assert (trace.begin_s, trace.end_s) == (1.5, 4.5)
    assert noticed(trace) == {"with a node that is not asked for: left out": (1, ())}
    for nodes, said in [("7", "has none of them; it has n1, n2, n3, n9"), ("n9-n1", "must go up"), ("n1,", "missing")]:
        with pytest.raises(BadInput, match=said):
            read_trace(path, "crawdad", wanted=Adjustments(nodes=nodes))


def test_some_of_those_who_walk() -> None:
    trace = read_trace(FILES / "one-movement.txt", wanted=Adjustments("min", "b, c"))
    assert points_of(trace) == {"b": [(0.0, 100.0, 0.0), (600.0, 100.0, 50.0)], "c": []}
    with pytest.raises(BadInput, match="nobody knows where any of them is"):
        read_trace(FILES / "bonnmotion.movements", wanted=Adjustments(nodes="2"))


@pytest.mark.parametrize("name", sorted(FORMAT_OF))
def test_a_byte_order_mark_is_no_letter(name: str, tmp_path: Path) -> None:
    marked = tmp_path / "marked"
    marked.write_bytes(b"\xef\xbb\xbf" + (FILES / name).read_bytes())
    plain, trace = read_trace(FILES / name), read_trace(marked)
    assert (trace.names, trace.warnings) == (plain.names, plain.warnings)
    marked.write_bytes((FILES / name).read_text().encode("utf-16"))
    with pytest.raises(BadInput, match="UTF-16; save it as UTF-8"):
        read_trace(marked)


# ---- positions


def test_external_movement_of_the_one() -> None:
    trace = read_trace(FILES / "one-movement.txt")
    assert points_of(trace) == {
        "a": [(0.0, 0.0, 0.0), (10.0, 50.0, 0.0), (20.0, 50.0, 0.0)],
        "b": [(0.0, 100.0, 0.0), (10.0, 100.0, 50.0)],
    }
    assert noticed(trace) == {"expected: time node x y: left out": (1, (7,))}


def test_waypoints_of_bonnmotion() -> None:
    trace = read_trace(FILES / "bonnmotion.movements")
    assert points_of(trace) == {
        "0": [(0.0, 10.0, 20.0), (60.0, 70.0, 20.0)],
        "1": [(0.0, 0.0, 0.0)],
        "2": [],
        "3": [(0.0, 1.0, 1.0), (10.0, 1.0, 1.0), (20.0, 11.0, 1.0)],
    }
    assert noticed(trace) == {"expected numbers only, three for each waypoint: time x y: left out": (1, (3,))}


def test_commands_of_ns2() -> None:
    trace = read_trace(FILES / "ns2.tcl")
    assert points_of(trace) == {
        "0": [(0.0, 10.0, 0.0), (10.0, 10.0, 0.0), (20.0, 60.0, 0.0), (30.0, 60.0, 30.0)],
        "1": [(0.0, 0.0, 50.0), (5.0, 0.0, 50.0), (8.0, 0.0, 50.0), (8.0, 25.0, 50.0)],
    }
    assert noticed(trace) == {
        "another command of the script: not looked at": (2, (2, 5)),
        "expected numbers in this command: left out": (1, (12,)),
    }


def test_tracks_of_gpx() -> None:
    trace = read_trace(FILES / "tracks.gpx")
    assert isinstance(trace, TrackTrace)
    points = points_of(trace)
    assert {name: [point[0] for point in track] for name, track in points.items()} == {
        "1": [30.5],
        "fox": [0.0, 100.0, 200.0],
    }
    (_, x0, y0), (_, x1, y1), *_ = points["fox"]
    assert (x1 - x0, y1 - y0) == pytest.approx((0.0, 111.2), abs=0.05)
    assert points["1"][0][1] - x1 == pytest.approx(7.46, abs=0.01)
    assert noticed(trace) == {"expected lon, lat and a <time> such as 2026-05-01T08:00:00Z: left out": (1, (12,))}
    assert trace.origin.startswith("time from 2026-05-01 08:00:00 UTC; x, y from latitude 48.001")
    # The nameless one is 7 m from the fox's place at 100 s, but it is there at 30.5 s only.
    assert contacts_by_range(trace.journeys(0.0, math.inf), 10.0, 200.0).a.size == 0


def test_animals_of_movebank() -> None:
    trace = read_trace(FILES / "movebank.csv")
    points = points_of(trace)
    assert {name: [point[0] for point in track] for name, track in points.items()} == {
        "crane": [300.25, 540.0],
        "heron": [0.0, 600.0],
    }
    assert points["heron"][1][2] - points["heron"][0][2] == pytest.approx(111.2, abs=0.05)
    assert trace.lines == 11
    assert noticed(trace) == {
        "marked as an outlier, or not visible: left out": (2, (5, 6)),
        "no position in this row: left out": (1, (7,)),
        "expected timestamp, longitude, latitude and a name: left out": (1, (8,)),
        "not as many values as the header has columns: left out": (1, (9,)),
    }


def test_vehicles_of_sumo() -> None:
    trace = read_trace(FILES / "fcd.xml")
    assert isinstance(trace, TrackTrace)
    assert points_of(trace) == {
        "bus": [(0.0, 0.0, 5.0), (1.0, 10.0, 5.0)],
        "walker": [(1.0, 12.0, 8.0), (2.0, 13.0, 8.0)],
    }
    assert noticed(trace) == {"expected id, x and y, in a timestep that has a time: left out": (1, (9,))}
    assert not trace.stays  # who has arrived is gone


def test_vehicles_of_sumo_in_degrees() -> None:
    ((_, x0, y0), (_, x1, y1)) = points_of(read_trace(FILES / "fcd-geo.xml"))["bus"]
    assert (x1 - x0, y1 - y0) == pytest.approx((0.0, 111.2), abs=0.05)


# ---- strict, and files that cannot be used


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("one-contacts-odd.txt", "line 2: a node meets itself; mend the line, or leave out --strict"),
        ("crawdad.txt", "line 4: a node meets itself"),
        ("one-movement.txt", "line 7: expected: time node x y"),
        ("bonnmotion.movements", "line 3: expected numbers only"),
        ("ns2.tcl", "line 12: expected numbers in this command"),
        ("tracks.gpx", "line 12: expected lon, lat and a <time>"),
        ("movebank.csv", "line 9: not as many values"),
        ("fcd.xml", "line 9: expected id, x and y"),
    ],
)
def test_a_strict_reader_stops_at_the_first_bad_line(name: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_trace(FILES / name, strict=True)
    assert said in str(caught.value)
    assert str(FILES / name) in str(caught.value)


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_with_nothing_in_it_is_refused(form: str, tmp_path: Path) -> None:
    path = tmp_path / "empty"
    for text in ("", "\n\n"):
        path.write_text(text)
        with pytest.raises(BadInput, match="empty"):
            read_trace(path, form)
    with pytest.raises(BadInput, match="cannot tell the format"):
        read_trace(path)


def test_bad_files_are_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    for content, said in [
        (gzip.compress((FILES / "crawdad.txt").read_bytes() * 500)[:-40], "damaged or not whole"),
        (b"1 2 3 4\n\0\0\0", "not a text file"),
        (b"<gpx><trk>", "not well-formed XML"),
        (b"<html></html>", "cannot tell the format"),
        (
            b"timestamp,location-long\n2026-05-01 08:00:00,11\n",
            "missing column location-lat, individual-local-identifier",
        ),
    ]:
        path.write_bytes(content)
        with pytest.raises(BadInput) as caught:
            read_trace(path)
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(BadInput, match="cannot be read"):
        read_trace(tmp_path / "nowhere")
    with pytest.raises(BadInput, match='did you mean "crawdad"'):
        read_trace(path, "crawdat")


def test_dates_that_are_none_and_zones_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = ["2026-02-28 23:00:00,11,48,a", "2026-02-30 23:00:00,11,48,a", "2026-03-01T01:00:00+01:00,11,48,a"]
    path.write_text("timestamp,location-long,location-lat,individual-local-identifier\n" + "\n".join(rows) + "\n")
    trace = read_trace(path)
    assert [point[0] for point in points_of(trace)["a"]] == [0.0, 3600.0]
    assert noticed(trace) == {"expected timestamp, longitude, latitude and a name: left out": (1, (3,))}


HEAD = b"timestamp,location-long,location-lat,individual-local-identifier\n2026-02-28 23:00:00,11,48,a\n"


@pytest.mark.parametrize(
    ("row", "names", "decided"),
    [
        (b"2026-02-28 23:00:01,11,48,\xe9,more", ("a",), "not as many values as the header has columns: left out"),
        (b"2026-02-28 23:00:01,11,48,h\xe9ron", ("a", "h\ufffdron"), ""),
        (b"2026-02-28 23:00:01,11\xe9,48,a", ("a",), "expected timestamp, longitude, latitude and a name: left out"),
    ],
)
def test_a_row_that_is_not_utf_8(
    row: bytes, names: tuple[str, ...], decided: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(HEAD + row + b"\n")
    trace = read_trace(path)
    assert trace.names == names
    expected = {"not UTF-8: a question mark for each such letter", decided} - {""}
    assert noticed(trace) == dict.fromkeys(expected, (1, (3,)))
    assert capfd.readouterr().err == ""  # pyarrow prints what goes wrong in a handler of rows


def test_rows_that_a_missing_quotation_mark_takes_along_are_counted(tmp_path: Path) -> None:
    path, rows = tmp_path / "table.csv", [b"2026-02-28 23:00:%02d,11,48,b" % second for second in range(1, 6)]
    said = "a line inside quotation marks (is one missing?): part of the row in which the quotation begins"
    for end in (b"", b"\n"):
        path.write_bytes(HEAD + b"\n".join(rows) + end)
        assert noticed(read_trace(path)) == {}
        path.write_bytes(HEAD + b"\n".join([*rows[:2], b'2026-02-28 23:01:00,11,48,"b', *rows[2:]]) + end)
        assert noticed(read_trace(path))[said] == (3, ())


@pytest.mark.parametrize(
    ("form", "good", "absurd"),
    [
        ("one-movement", "0 9 0 9 0 9\n0 a 0 0\n9 a 1 1\n", "5 a 4294967296 0\n"),
        ("bonnmotion", "0 0 0 9 1 1\n\n", "0 0 0 5 0 -4294967296\n"),
        ("ns2", '$node_(0) set X_ 1\n$ns_ at 1 "$node_(0) setdest 2 2 1"\n', '$ns_ at 2 "$node_(0) setdest 9e9 2 1"\n'),
        (
            "sumo",
            '<fcd-export><timestep time="0"><vehicle id="a" x="0" y="0"/>\n\n',
            '<vehicle id="b" x="4294967296" y="0"/></timestep></fcd-export>',
        ),
    ],
)
def test_a_place_where_nobody_can_be_is_refused_with_its_line(
    form: str, good: str, absurd: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace"
    path.write_text(good + absurd)
    trace = read_trace(path, form)
    assert isinstance(trace, TrackTrace)
    line = good.count("\n") + 1
    assert noticed(trace) == {"farther than 100,000 km from the origin: left out": (1, (line,))}
    assert np.abs(trace.tracks.x_m).max() < 10
    with pytest.raises(BadInput, match=f"line {line}: farther than 100,000 km"):
        read_trace(path, form, strict=True)


def test_a_second_position_at_one_time_and_one_out_of_order(tmp_path: Path) -> None:
    path = tmp_path / "movement.txt"
    path.write_text("0 9 0 9 0 9\n5 a 1 1\n2 a 2 2\n5 a 3 3\n")
    trace = read_trace(path)
    assert points_of(trace) == {"a": [(2.0, 2.0, 2.0), (5.0, 1.0, 1.0)]}
    assert noticed(trace) == {
        "earlier than the node's position before: sorted": (1, (3,)),
        "a second position at the same time: left out": (1, (4,)),
    }
