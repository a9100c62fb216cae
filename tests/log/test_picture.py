"""The picture of a run, from the core tables alone."""

import math

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


def drawn(figure: RunPicture) -> dict[str, np.ndarray]:
    """Where the markers of the picture stand, by their label."""
    axes = figure.axes[0]
    return {dots.get_label(): np.asarray(dots.get_offsets()) for dots in axes.collections if len(dots.get_offsets())}


def test_nodes_stand_where_they_are() -> None:
    figure = draw_run(tables(STANDING), "a title")
    assert drawn(figure)["publisher"].tolist() == [[0.0, 0.0]]
    assert drawn(figure)["subscriber"].tolist() == [[10.0, 0.0]]
    assert figure.axes[0].get_title() == "a title"
    (links,) = [lines for lines in figure.axes[0].collections if lines.get_zorder() == 1]
    assert len(links.get_segments()) == 2  # the two contacts of 0 and 1 are one line


def test_a_node_that_moves_stands_where_it_is_first_seen() -> None:
    figure = draw_run(tables([(0.0, 0.0), (None, None), (10.0, 10.0)], ((1, 3.0, 4.0), (1, 8.0, 8.0))), "")
    assert drawn(figure)["subscriber"].tolist() == [[3.0, 4.0]]
    (links,) = [lines for lines in figure.axes[0].collections if lines.get_zorder() == 1]
    assert len(links.get_segments()) == 1  # contacts of somebody who walks are no links


def test_without_places_nodes_stand_on_a_ring() -> None:
    figure = draw_run(tables([(None, None)] * 3), "")
    assert "nodes on a ring" in figure.axes[0].get_title()
    assert drawn(figure)["publisher"] == pytest.approx(np.array([[1.0, 0.0]]))


@pytest.mark.parametrize("name", SMALL)
def test_every_kind_of_run_has_a_picture(name: str) -> None:
    run = serai.simulate(small(name), seed=1)
    picture = run.plot()._repr_svg_()
    assert picture.startswith("<svg")
    assert picture == run.plot()._repr_svg_()
