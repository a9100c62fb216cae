"""SUMO's files by the compiled scan and by a parser of XML: the same, or the scan leaves the file alone."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.traces.fcd import Fcd, scan_fcd
from serai.traces.xml import parse_fcd

in_one_file = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
PROLOGS = ["", '<?xml version="1.0"?>\n', '<?xml version="1.0" encoding="UTF-8"?>\n\n']
COMMENTS = ["", "<!-- generated\nby SUMO -->\n", '<!-- <fcd-output.geo value="true"/> -->']
VALUES = ["1", "2.50", "-0.125", "1e3", "here", "", "+7", ".5", "123456789012345678901", "nan", "inf", "1e999", " 3"]
ODD = ["\r", "\r\n", "\t", "&lt;", "'", "<b/>", "</timestep>", "<!-- x -->", "é", ">", "x", '"', " ", "\x01", "--", "="]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A file as SUMO writes it, more or less."""
    value, name = st.sampled_from(VALUES), st.sampled_from(["a", "b", "bus 7", "c.1", ""])
    body = ""
    for _ in range(draw(st.integers(0, 4))):
        body += f'  <timestep time="{draw(value)}">\n'
        for _ in range(draw(st.integers(0, 4))):
            tag = draw(st.sampled_from(["vehicle", "vehicle", "person", "container"]))
            parts = [f'id="{draw(name)}"', f'x="{draw(value)}"', f'y="{draw(value)}"', 'type="a>b"', 'angle="90.00"']
            kept = draw(st.permutations(parts))[: draw(st.sampled_from([5, 5, 5, 3]))]
            body += f"    <{tag} {' '.join(kept)}{draw(st.sampled_from(['/>', ' />']))}\n"
        body += draw(st.sampled_from(["  </timestep>\n", "  </timestep>", "</timestep >\n"]))
    head = draw(st.sampled_from(PROLOGS)) + draw(st.sampled_from(COMMENTS))
    return f'{head}<fcd-export xmlns:xsi="http://x">\n{body}</fcd-export>{draw(st.sampled_from(["", chr(10)]))}'


def parsed(path: Path) -> Fcd | None:
    try:
        return parse_fcd(path)
    except BadInput:
        return None


def assert_same(scanned: Fcd, read: Fcd) -> None:
    names = [{number: name for name, number in fcd.book.items()} for fcd in (scanned, read)]
    assert [names[0][node] for node in scanned.rows.node] == [names[1][node] for node in read.rows.node]
    assert list(scanned.book) == list(read.book)
    assert scanned.rows.named.tolist() == read.rows.named.tolist()
    assert scanned.rows.line.tolist() == read.rows.line.tolist()
    for name in ("time_s", "x", "y"):
        one, other = (getattr(fcd.rows, name) for fcd in (scanned, read))
        finite = np.isfinite(other)
        assert np.array_equal(np.isfinite(one), finite)
        assert np.array_equal(one[finite], other[finite])
    assert (scanned.degrees, scanned.lines) == (read.degrees, read.lines)


@in_one_file
@given(texts(), st.sampled_from([1 << 20, 64, 7]))
def test_what_sumo_writes_is_scanned_as_it_is_parsed(tmp_path: Path, text: str, chunk: int) -> None:
    (tmp_path / "fcd.xml").write_text(text, newline="")
    scanned, read = scan_fcd(tmp_path / "fcd.xml", chunk), parsed(tmp_path / "fcd.xml")
    assert read is not None
    if not any(odd in text for odd in ('" 3"', "bus 7 ", "</timestep >")):
        assert scanned is not None
    if scanned is not None:
        assert_same(scanned, read)


@in_one_file
@given(texts(), st.lists(st.tuples(st.floats(0, 1), st.sampled_from([*ODD, "cut", "twice"])), min_size=1, max_size=3))
def test_what_is_not_well_formed_is_never_scanned(tmp_path: Path, text: str, changes: list[tuple[float, str]]) -> None:
    for share, what in changes:
        place = int(share * len(text))
        middle = {"cut": "", "twice": text[place : place + 9]}.get(what, what)
        text = text[:place] + middle + text[place + 2 * (what == "cut") :]
    (tmp_path / "fcd.xml").write_text(text, newline="")
    scanned, read = scan_fcd(tmp_path / "fcd.xml", 32), parsed(tmp_path / "fcd.xml")
    if scanned is not None:
        assert read is not None
        assert_same(scanned, read)


@pytest.mark.parametrize("cut", ["</fcd-export>", "</timestep></fcd-export>", 'y="2"/></timestep></fcd-export>'])
def test_a_file_that_ends_too_early_is_left_to_the_parser(tmp_path: Path, cut: str) -> None:
    text = '<fcd-export><timestep time="1"><vehicle id="a" x="1" y="2"/></timestep></fcd-export>'
    (tmp_path / "fcd.xml").write_text(text)
    assert scan_fcd(tmp_path / "fcd.xml") is not None
    (tmp_path / "fcd.xml").write_text(text.removesuffix(cut))
    assert scan_fcd(tmp_path / "fcd.xml") is None
    assert parsed(tmp_path / "fcd.xml") is None


@pytest.mark.parametrize(
    "inside",
    [
        '<vehicle id="a" x="1" y="2" x="3"/>',
        '<vehicle id="a" x="1" y="2" type="b" type="c"/>',
        '<vehicle id="a"x="1" y="2"/>',
        '<vehicle id="a" x=1 y="2"/>',
        '<vehicle id="a" x y="2"/>',
        '<vehicle id="a" x="1" y="<"/>',
        '<vehicle id="a" x="1" y="2">',
        "< vehicle/>",
        "</vehicle>",
        "<!-- a -- b -->",
        '<timestep time="2"></timestep>x',
        "&amp",
    ],
)
def test_a_file_that_is_wrong_or_unusual_is_left_to_the_parser(tmp_path: Path, inside: str) -> None:
    text = '<fcd-export><timestep time="1"><vehicle id="a" x="1" y="2"/>{}</timestep></fcd-export>'
    (tmp_path / "fcd.xml").write_text(text.format(""))
    assert scan_fcd(tmp_path / "fcd.xml") is not None
    (tmp_path / "fcd.xml").write_text(text.format(inside))
    assert scan_fcd(tmp_path / "fcd.xml") is None
