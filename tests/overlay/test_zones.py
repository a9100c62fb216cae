"""Zones sized by subtree: keys worked out by hand, and what they are for."""

import numpy as np
import pytest
from pydantic import ValidationError

import serai
from serai.overlay import pub2sub, tinymq
from serai.overlay.engine.graph import graph_of_links
from serai.overlay.engine.trees import plant
from serai.overlay.metrics import OverlayMetrics
from serai.overlay.tinymq import STRICT

BITS = 6


def test_keys_by_hand() -> None:
    """The root 0 has the children 1, 2 and 3; below 1 are 4 and 5. Weights at the root: itself 1, then 3, 1 and 1.

    Itself (1) and 2 (0) make a pair of 2; 3 (1) and that pair (0) one of 3; 1 (1) and that (0) are all. So 1 has the
    word 1, 3 has 01, 2 has 000, and the root keeps 001. At 1: itself (1) and 4 (0), then 5 (1) and the pair (0).
    """
    graph = graph_of_links(6, [0, 0, 0, 1, 1], [1, 2, 3, 4, 5])
    (layer,) = plant(graph, np.array([0], np.int32), [[0]], STRICT, BITS, by_subtree=True)
    keys = [format(node.head, f"0{BITS}b")[: node.length] for node in layer.nodes]
    assert keys == ["", "1", "000", "01", "100", "11"]
    kept = [format(node.zone_head, f"0{BITS}b")[: node.zone_length] for node in layer.nodes]
    assert kept == ["001", "101", "000", "01", "100", "11"]


def test_of_a_key_longer_than_a_rendezvous_key_only_the_first_bits_are_kept() -> None:
    """A line: each key has one bit more than its parent's; the lighter, with the 1, is always the node itself."""
    graph = graph_of_links(6, range(5), range(1, 6))
    (layer,) = plant(graph, np.array([0], np.int32), [[0]], STRICT, 3, by_subtree=True)
    assert layer.nodes["length"].tolist() == [0, 1, 2, 3, 4, 5]
    assert layer.nodes["head"].tolist() == [0, 0, 0, 0, 0, 0]
    assert layer.nodes["zone_head"].tolist() == [4, 2, 1, 0, 0, 0]


@pytest.mark.parametrize("routing", ["greedy", "as-printed"])
def test_routings_that_count_ones_are_refused(routing: str) -> None:
    with pytest.raises(ValidationError, match='zones = "subtree" needs routing = "strict" or "tree-edges"'):
        tinymq.Settings(zones="subtree", routing=routing)  # type: ignore[arg-type]
    assert pub2sub.Settings(zones="subtree").zones == "subtree"


@pytest.mark.parametrize("seed", range(3))
def test_the_busiest_rendezvous_has_less_to_do(seed: int) -> None:
    shares = []
    for zones in ("arrival", "subtree"):
        metrics = serai.measure(serai.simulate(serai.load_scenario("tinymq", [f"protocol.zones={zones}"]), seed=seed))
        assert isinstance(metrics, OverlayMetrics)
        assert metrics.delivery_ratio == 1
        shares.append(metrics.busiest_rendezvous_share)
    assert shares[1] < shares[0] / 2
