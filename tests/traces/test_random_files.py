"""Random files, good and bad lines mixed: the fast readers say what reading line by line says."""

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.traces import Adjustments, ContactTrace, TrackTrace, read_trace
from serai.world.mobility import position_at
from tests.traces import slow

in_one_file = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80, deadline=None)
names = st.sampled_from(["1", "2", "10", "n3", "x"])
times = st.one_of(
    st.integers(0, 8).map(str), st.sampled_from(["2.50", "1e1", "-1", "nan", "soon", "0.30000000000000004"])
)
endings = st.sampled_from(["\n", "\r\n", " \n", "\n\n", " # said somebody\n"])


def lines(*words: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    row = st.tuples(*words).map(" ".join)
    whole = st.one_of(row, row, row, st.sampled_from(["", "# nothing", "what is this", "1 2 3"]))
    return st.lists(st.tuples(whole, endings).map("".join), max_size=25).map("".join)


def read(tmp_path: Path, text: str, form: str) -> ContactTrace | TrackTrace | None:
    path = tmp_path / "trace.txt"
    path.write_text(text, newline="")
    try:
        return read_trace(path, form)
    except BadInput as error:
        if "no contact in it" not in str(error):
            raise
        return None


def rows_of(trace: ContactTrace | TrackTrace | None) -> list[slow.Contact]:
    if trace is None:
        return []
    assert isinstance(trace, ContactTrace)
    rows = zip(*(column.tolist() for column in trace.contacts), strict=True)
    return [(trace.names[a], trace.names[b], up, down) for a, b, up, down in rows]


@in_one_file
@given(lines(times, st.sampled_from(["CONN", "CONN", "CONN", "MSG"]), names, names, st.sampled_from(["up", "down"])))
def test_contacts_of_the_one(tmp_path: Path, text: str) -> None:
    found = rows_of(read(tmp_path, text, "one-contacts"))
    # Two contacts of a pair may begin in the same instant (the first lasts no time): then the order is the file's.
    found.sort(key=lambda row: (row[2], slow.natural(row[0]), slow.natural(row[1]), row[3]))
    assert found == slow.one_contacts(text)


@in_one_file
@given(lines(names, names, times, times))
def test_contacts_in_four_columns(tmp_path: Path, text: str) -> None:
    assert rows_of(read(tmp_path, text, "crawdad")) == slow.crawdad(text)
    assert rows_of(read(tmp_path, text, "begin-duration")) == slow.crawdad(text, durations=True)


@in_one_file
@given(lines(times, names, names), lines(names, names, times))
def test_sightings(tmp_path: Path, text: str, last: str) -> None:
    assert rows_of(read(tmp_path, text, "sightings")) == slow.sightings(text, first=True)
    assert rows_of(read(tmp_path, text, "sociopatterns")) == slow.sightings(text, first=True, until=True)
    assert rows_of(read(tmp_path, last, "sightings-time-last")) == slow.sightings(last, first=False)


@in_one_file
@given(
    lines(names, names, times, times),
    st.sets(st.sampled_from(["1", "2", "10", "n3", "x"]), min_size=2),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_traces_adjusted(tmp_path: Path, text: str, only: set[str], gap_s: float, least_s: float) -> None:
    whole = read(tmp_path, text, "crawdad")
    if whole is None or not only & set(whole.names):
        return
    wanted = Adjustments("s", ",".join(sorted(only)), gap_s, least_s)
    found = read_trace(tmp_path / "trace.txt", "crawdad", wanted=wanted)
    assert set(found.names) == only
    assert rows_of(found) == slow.adjusted(rows_of(whole), only, gap_s, least_s)


commands = st.tuples(
    st.integers(0, 1),
    st.sampled_from([0.0, 1.0, 2.5, 4.0, 7.0]),
    st.sampled_from(["X_", "Y_", "setdest"]),
    st.tuples(*[st.sampled_from([0.0, 3.0, 10.0, 30.0])] * 3).map(list),
)


@in_one_file
@given(st.lists(commands, min_size=1, max_size=12))
def test_movement_of_ns2(tmp_path: Path, given_: list[tuple[int, float, str, list[float]]]) -> None:
    text, of_node = "", defaultdict(list)
    for node, time_s, what, numbers in given_:
        order = f"setdest {numbers[0]} {numbers[1]} {numbers[2]}" if what == "setdest" else f"set {what} {numbers[0]}"
        text += f'$ns_ at {time_s} "$node_({node}) {order}"\n'
        of_node[str(node)].append((time_s, what, numbers))
    trace = read(tmp_path, text, "ns2")
    assert isinstance(trace, TrackTrace)
    assert set(trace.names) == set(of_node)
    for number, name in enumerate(trace.names):
        for at_s in (0.5, 1.7, 3.3, 6.2, 9.9, 40.0):
            first, last = int(trace.tracks.start[number]), int(trace.tracks.start[number + 1])
            if at_s < trace.tracks.time_s[first]:
                continue  # before its first command a node stands where that finds it
            segment = max(point for point in range(first, last) if trace.tracks.time_s[point] <= at_s)
            found = position_at(trace.tracks, number, segment, at_s)
            assert found == pytest.approx(slow.ns2_place(of_node[name], at_s), abs=1e-9)


# ---- positions: what is written is what is read, in every format that has metres

walks = st.dictionaries(
    st.sampled_from(["0", "1", "2"]),
    st.dictionaries(st.integers(0, 9), st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=5),
    min_size=1,
    max_size=3,
)
Walks = dict[str, dict[int, tuple[int, int]]]


def as_one_movement(written: Walks) -> str:
    rows = sorted((t, name, x, y) for name, walk in written.items() for t, (x, y) in walk.items())
    return "0 9 -9 9 -9 9\n" + "".join(f"{t} {name} {x} {y}\n" for t, name, x, y in rows)


def as_bonnmotion(written: Walks) -> str:
    last = max(int(name) for name in written)
    walks = [written.get(str(number), {0: (0, 0)}) for number in range(last + 1)]
    return "".join(" ".join(f"{t} {x} {y}" for t, (x, y) in sorted(walk.items())) + "\n" for walk in walks)


def as_sumo(written: Walks) -> str:
    text = "<fcd-export>\n"
    for t in range(10):
        text += f'<timestep time="{t}.00">\n'
        for name, walk in written.items():
            if t in walk:
                text += f'<vehicle id="{name}" x="{walk[t][0]}" y="{walk[t][1]}.0"/>\n'
        text += "</timestep>\n"
    return text + "</fcd-export>\n"


@in_one_file
@given(walks)
def test_positions_are_read_as_they_were_written(tmp_path: Path, written: Walks) -> None:
    for form, text in [
        ("one-movement", as_one_movement(written)),
        ("bonnmotion", as_bonnmotion(written)),
        ("sumo", as_sumo(written)),
    ]:
        trace = read(tmp_path, text, form)
        assert isinstance(trace, TrackTrace)
        assert trace.warnings == ()
        for number, name in enumerate(trace.names):
            part = slice(trace.tracks.start[number], trace.tracks.start[number + 1])
            found = list(zip(*(column[part].tolist() for column in trace.tracks[1:]), strict=True))
            walk = written.get(name, {0: (0, 0)})
            assert found == [(float(t), float(x), float(y)) for t, (x, y) in sorted(walk.items())]
