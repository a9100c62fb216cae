"""GPX by the compiled scan and by a parser of XML: the same, or the scan leaves the file alone."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.traces import read_trace
from serai.traces.gpx import Gpx, scan_gpx
from serai.traces.xml import parse_gpx

in_one_file = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
PROLOGS = ["", '<?xml version="1.0"?>\n', '<?xml version="1.0" encoding="UTF-8"?>\n\n', "<!-- by\nhand -->\n"]
VALUES = ["1", "2.50", "-0.125", "1e1", "here", "", "123456789012345678901", "181", "nan"]
TIMES = ["2026-05-01T08:00:00Z", " 2026-05-01T08:00:07.5Z\n", "2026-05-01", "", "\t"]
NAMES = [
    "<name>fox</name>",
    "<name> f\u00fcchsin\n</name>",
    "<name></name>",
    "<name/>",
    "<desc><name>no</name></desc>",
    "",
]
MORE = ["", "<ele>5</ele>", "<x:hr a:b='1'>7</x:hr>", '<x:ext><time>1</time><y z="2"/></x:ext>', "<!-- -->", "<time/>"]
ODD = ["\r", "\r\n", "\t", "&lt;", "'", "<b/>", "</trk>", "<!-- x -->", "\u00e9", ">", "x", '"', " ", "\x01", "--", "=",
       "]]>", "<trkpt", "<time>", "</time>", "<![CDATA[a]]>", "\ufffe", "</g:trkpt>"]  # fmt: skip


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A file as devices write it, more or less."""
    body = ""
    for _ in range(draw(st.integers(0, 3))):
        body += f"  <trk>{draw(st.sampled_from(NAMES))}<trkseg>\n"
        for _ in range(draw(st.integers(0, 4))):
            lat, lon, time = draw(st.sampled_from(VALUES)), draw(st.sampled_from(VALUES)), draw(st.sampled_from(TIMES))
            parts = [f'lat="{lat}"', f'lon="{lon}"', 'altitude="5"']
            kept = draw(st.permutations(parts))[: draw(st.sampled_from([3, 3, 3, 1]))]
            inner = draw(st.permutations([f"<time>{time}</time>", draw(st.sampled_from(MORE))]))
            body += f"    <trkpt {' '.join(kept)}>{''.join(inner)}</trkpt>\n"
        body += draw(st.sampled_from(["  </trkseg></trk>\n", "</trkseg >\n</trk>", "<trkpt/></trkseg></trk>"]))
    outside = draw(st.sampled_from(["", "", '<trkpt lat="1" lon="2"/>', '<wpt lat="1" lon="2"><name>a</name></wpt>']))
    end = draw(st.sampled_from(["", "\n"]))
    return f'{draw(st.sampled_from(PROLOGS))}<gpx xmlns="http://x">\n{body}{outside}</gpx>{end}'


def parsed(path: Path) -> Gpx | None:
    try:
        return parse_gpx(path)
    except BadInput:
        return None


def assert_same(scanned: Gpx, read: Gpx) -> None:
    assert scanned.track.tolist() == read.track.tolist()
    assert scanned.times.to_pylist() == read.times.to_pylist()
    assert scanned.line.tolist() == read.line.tolist()
    assert (scanned.names, scanned.lines) == (read.names, read.lines)
    for one, other in ((scanned.lon, read.lon), (scanned.lat, read.lat)):
        assert np.array_equal(one, other, equal_nan=True)


@in_one_file
@given(texts())
def test_what_devices_write_is_scanned_as_it_is_parsed(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.gpx").write_text(text, newline="", encoding="utf-8")
    scanned, read = scan_gpx(tmp_path / "a.gpx"), parsed(tmp_path / "a.gpx")
    assert read is not None
    if "'" not in text:
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
    (tmp_path / "a.gpx").write_text(text, newline="", encoding="utf-8")
    scanned, read = scan_gpx(tmp_path / "a.gpx"), parsed(tmp_path / "a.gpx")
    if scanned is not None:
        assert read is not None
        assert_same(scanned, read)


def test_ends_of_lines_in_texts_are_those_of_xml(tmp_path: Path) -> None:
    track = '<trk><name>a\r\nb</name><trkpt lat="1" lon="2"><time>{}2026-05-01T08:00:00Z\r\n</time></trkpt></trk>'
    for inside, is_scanned in (("\r\n", True), ("2\r\n", False)):
        (tmp_path / "a.gpx").write_text(f"<gpx>{track.format(inside)}</gpx>", newline="")
        scanned, read = scan_gpx(tmp_path / "a.gpx"), parse_gpx(tmp_path / "a.gpx")
        assert read.names == ["a\nb"]
        assert (scanned is not None) == is_scanned
        if scanned is not None:
            assert_same(scanned, read)


@pytest.mark.parametrize("encoding", ["UT--F-8", "UTF-7x", "gb18030"])
def test_an_encoding_that_cannot_be_read_is_named(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.gpx").write_text(f'<?xml version="1.0" encoding="{encoding}"?><gpx><trk/></gpx>')
    with pytest.raises(BadInput, match=r"a\.gpx: cannot be read: .*encoding.*; save it as UTF-8"):
        parse_gpx(tmp_path / "a.gpx")


FINE = '<gpx><trk><name>a</name><trkpt lat="1" lon="2"><time>2026-05-01T08:00:00Z</time></trkpt>{}</trk></gpx>'


@pytest.mark.parametrize(
    "inside",
    [
        '<trkpt lat="1" lon="2" lat="3"/>',
        '<trkpt lat="1"lon="2"/>',
        "<trkpt lat=1/>",
        "<trkpt><time>2026<!-- -->-05-01</time></trkpt>",
        "<trkpt><time>1<b/>2</time></trkpt>",
        "<trkpt><time>\u00e9</time></trkpt>",
        "<name>twice</name>",
        "<name><![CDATA[b]]></name>",
        "a ]]> b",
        "&amp;",
        "</trk>",
        "<trkseg></trkpt>",
        "<a></b>",
        "<a></ab>",
        "<a></a b>",
        "\x01",
        "\ufffe",
        "<a>" * 70 + "</a>" * 70,
    ],
)
def test_a_file_that_is_wrong_or_unusual_is_left_to_the_parser(tmp_path: Path, inside: str) -> None:
    (tmp_path / "a.gpx").write_text(FINE.format(""))
    assert scan_gpx(tmp_path / "a.gpx") is not None
    (tmp_path / "a.gpx").write_text(FINE.format(inside), encoding="utf-8")
    assert scan_gpx(tmp_path / "a.gpx") is None


@pytest.mark.parametrize("scanned", [True, False])
def test_a_point_that_stands_in_no_track_is_left_out(tmp_path: Path, scanned: bool) -> None:
    """It would have the name of whichever track came last, or of none."""
    point = '<trkpt lat="{}" lon="2"><time>2026-05-01T08:00:0{}Z</time></trkpt>\n'
    odd = "" if scanned else "<!DOCTYPE gpx>"
    points = [point.format(1, second) for second in range(4)]
    text = f"{odd}<gpx>\n{points[0]}<trk>\n{points[1]}{points[2]}</trk>\n{points[3]}</gpx>"
    (tmp_path / "a.gpx").write_text(text)
    assert (scan_gpx(tmp_path / "a.gpx") is not None) == scanned
    trace = read_trace(tmp_path / "a.gpx")
    assert trace.names == ("0",)
    (warning,) = trace.warnings
    assert (warning.what, warning.count) == ("a <trkpt> that stands in no <trk>: left out", 2)
    (tmp_path / "a.gpx").write_text(f"{odd}<gpx>{points[0]}</gpx>")
    with pytest.raises(BadInput, match=r"can be used; 1 x a <trkpt> that stands in no <trk>: left out \(line 1\)"):
        read_trace(tmp_path / "a.gpx")


@pytest.mark.parametrize("tag", ["trk", "trkpt"])
def test_there_is_room_for_what_stands_in_each_other(tmp_path: Path, tag: str) -> None:
    """As many as the text can hold: none is closed before all are open."""
    most = 61
    text = f"<gpx><trk>{f'<{tag}>' * most}<name>a</name><time>1</time>{f'</{tag}>' * most}</trk></gpx>"
    (tmp_path / "a.gpx").write_text(text)
    scanned = scan_gpx(tmp_path / "a.gpx")
    assert scanned is not None
    assert_same(scanned, parse_gpx(tmp_path / "a.gpx"))
    (tmp_path / "a.gpx").write_text(text.replace(f"</{tag}>", ""))
    assert scan_gpx(tmp_path / "a.gpx") is None
