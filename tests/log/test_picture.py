"""The picture of a run, from the core tables alone."""

import math
import xml.etree.ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

import serai
from serai.log.picture import RunPicture, draw_run, share_delivered
from tests.test_lab import SMALL, small


def tables(
    places: list[tuple[float | None, float | None]], tracks: tuple[tuple[int, float, float], ...] = ()
) -> dict[str, pa.Table]:
    """Three nodes; node 0 publishes three events, of which one matches nothing and one of the others is delivered."""
    return {
        "nodes": pa.table(
            {
                "x_m": pa.array([x for x, _ in places], pa.float64()),
                "y_m": pa.array([y for _, y in places], pa.float64()),
            }
        ),
        "tracks": pa.table(
            {
                "node": pa.array([node for node, _, _ in tracks], pa.int32()),
                "x_m": pa.array([x for _, x, _ in tracks], pa.float64()),
                "y_m": pa.array([y for _, _, y in tracks], pa.float64()),
            }
        ),
        "contacts": pa.table({"a": [0, 0, 0], "b": [1, 1, 2]}),
        "events": pa.table({"node": [0, 0, 0], "channel": [""] * 3, "values": [[1.0], [2.0], [9.0]]}),
        "subscriptions": pa.table({"node": [1], "channel": [""], "low": [[0.0]], "high": [[5.0]]}),
        "deliveries": pa.table({"event": [0, 2], "node": [1, 1], "wanted": [True, False]}),
    }


STANDING = [(0.0, 0.0), (10.0, 0.0), (10.0, 10.0)]


def test_share_of_what_somebody_wanted() -> None:
    share = share_delivered(tables(STANDING))
    assert share[0] == 0.5
    assert np.isnan(share[1:]).all()


def test_channels_are_told_apart() -> None:
    known = tables(STANDING)
    known["events"] = pa.table({"node": [0, 2], "channel": ["news", "sport"], "values": [[], []]})
    known["events"] = known["events"].set_column(2, "values", pa.array([[], []], pa.list_(pa.float64())))
    none = pa.array([[]], pa.list_(pa.float64()))
    known["subscriptions"] = pa.table({"node": [1], "channel": ["news"], "low": none, "high": none})
    known["deliveries"] = pa.table({"event": pa.array([], pa.int32()), "node": [], "wanted": pa.array([], pa.bool_())})
    share = share_delivered(known)
    assert share[0] == 0
    assert math.isnan(share[2])


SVG = "{http://www.w3.org/2000/svg}"


def drawn(picture: RunPicture, kind: str) -> list[ET.Element]:
    """The elements of the picture that are of a kind."""
    return [element for element in ET.fromstring(picture.svg).iter() if element.get("class") == kind]


def place(dot: ET.Element) -> tuple[float, float]:
    return float(dot.get("cx", "nan")), float(dot.get("cy", "nan"))


def test_nodes_stand_where_they_are() -> None:
    """Ten metres are 332 units, with a margin of 14; y grows upwards."""
    picture = draw_run(tables(STANDING), "a title")
    assert [place(dot) for dot in drawn(picture, "publisher")] == [(14.0, 346.0)]
    assert drawn(picture, "publisher")[0][0].text == "50 % of its events got through"
    assert [place(dot) for dot in drawn(picture, "other")] == [(346.0, 14.0)]
    (asking,) = drawn(picture, "subscriber")
    assert asking.get("d", "").startswith("M346.0 ")
    assert ET.fromstring(picture.svg).get("aria-label") == "a title"
    assert len(drawn(picture, "link")) == 2  # the two contacts of 0 and 1 are one line


def test_a_node_that_moves_stands_where_it_is_first_seen() -> None:
    picture = draw_run(tables([(0.0, 0.0), (None, None), (10.0, 10.0)], ((1, 3.0, 4.0), (1, 8.0, 8.0))), "")
    (asking,) = drawn(picture, "subscriber")
    assert asking.get("d", "").startswith("M113.6 ")  # 14 + 3 * 33.2
    (track,) = drawn(picture, "track")
    assert track.get("points") == "113.6,213.2 279.6,80.4"
    assert len(drawn(picture, "link")) == 1  # contacts of somebody who walks are no links


def test_without_places_nodes_stand_near_those_they_met() -> None:
    picture = draw_run(tables([(None, None)] * 3), "")
    assert "nodes that met stand near each other" in picture.svg
    widths = [float(link.get("stroke-width", "nan")) for link in drawn(picture, "link")]
    assert widths[0] > widths[1]  # 0 and 1 met twice


@pytest.mark.parametrize("name", SMALL)
def test_every_kind_of_run_has_a_picture(name: str) -> None:
    run = serai.simulate(small(name), seed=1)
    picture = run.plot()._repr_svg_()
    assert picture.startswith("<svg")
    assert picture == run.plot()._repr_svg_()
