"""Who hears whom: the fast graph against all pairs, connectivity, files of links, and where roots stand."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.overlay.engine.graph import (
    FAR,
    Graph,
    check_connected,
    graph_of_links,
    hops_from,
    is_connected,
    largest_component,
    radio_graph,
    read_links,
    subgraph,
)
from serai.overlay.engine.paths import shortest_path_hops
from serai.overlay.engine.roots import k_centre_roots, random_roots, roots_along_edge
from serai.world.components import connected_components


def lists(graph: Graph) -> list[list[int]]:
    return [graph.neighbors_of(node).tolist() for node in range(graph.nodes)]


def line(nodes: int) -> Graph:
    return graph_of_links(nodes, range(nodes - 1), range(1, nodes))


@given(st.integers(0, 2**32), st.integers(1, 60), st.floats(0.5, 40))
@settings(max_examples=60, deadline=None)
def test_radio_graph_is_all_pairs_in_range(seed: int, nodes: int, range_m: float) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 50, nodes) / 1.0, rng.uniform(0, 20, nodes)
    near = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2 <= range_m**2
    np.fill_diagonal(near, False)
    assert lists(radio_graph(x, y, range_m)) == [np.flatnonzero(row).tolist() for row in near]


@pytest.mark.parametrize("range_m", [0.1, 1 / 3, 20.0, 1e-3 * 7])
def test_neighbours_exactly_as_far_apart_as_the_radio_reaches(range_m: float) -> None:
    """Steps of the range itself: each node stands on the edge of a square, where rounding may put it on either side."""
    x = np.arange(300) * range_m
    for y in (np.zeros(300), x[::-1].copy()):
        near = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2 <= range_m**2
        np.fill_diagonal(near, False)
        assert lists(radio_graph(x, y, range_m)) == [np.flatnonzero(row).tolist() for row in near]


def test_range_is_inclusive() -> None:
    graph = radio_graph(np.array([0.0, 20.0, 40.1]), np.zeros(3), 20.0)
    assert lists(graph) == [[1], [0], []]


@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_components_and_hops_as_by_relaxation(seed: int, nodes: int, links: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = {tuple(sorted(pair)) for pair in rng.integers(0, nodes, (links, 2)).tolist() if pair[0] != pair[1]}
    graph = graph_of_links(nodes, *(zip(*pairs, strict=True) if pairs else ((), ())))
    hops = np.where(np.eye(nodes) > 0, 0, FAR).astype(np.int64)
    for one, other in pairs:
        hops[one, other] = hops[other, one] = 1
    for middle in range(nodes):
        hops = np.minimum(hops, hops[:, middle, None] + hops[None, middle])
    of_node = connected_components(graph.start, graph.neighbors)
    for node in range(nodes):
        assert hops_from(graph, np.array([node], np.int32)).tolist() == np.minimum(hops[node], FAR).tolist()
        assert ((of_node == of_node[node]) == (hops[node] < FAR)).all()
    assert is_connected(graph) == bool((hops < FAR).all())
    kept = largest_component(graph)
    assert is_connected(subgraph(graph, kept))
    assert lists(subgraph(graph, kept)) == [
        np.flatnonzero(np.isin(kept, graph.neighbors_of(node))).tolist() for node in kept
    ]


@given(st.integers(0, 2**32), st.integers(1, 200), st.integers(0, 400), st.integers(0, 300), st.sampled_from([1, 40]))
@settings(max_examples=40, deadline=None)
def test_shortest_paths_as_by_one_search_each(seed: int, nodes: int, links: int, pairs: int, apart: int) -> None:
    """From sources that stand close together, or (one of 40 nodes) far apart."""
    rng = np.random.default_rng(seed)
    ends = {tuple(sorted(pair)) for pair in rng.integers(0, nodes, (links, 2)).tolist() if pair[0] != pair[1]}
    graph = graph_of_links(nodes, *(zip(*ends, strict=True) if ends else ((), ())))
    source, target = rng.integers(0, nodes, (2, pairs)).astype(np.int32)
    source -= source % apart
    slow = [hops_from(graph, source[pair : pair + 1])[target[pair]] for pair in range(pairs)]
    assert shortest_path_hops(graph, source, target).tolist() == slow


def test_parts_are_named() -> None:
    graph = graph_of_links(5, [0, 1], [1, 2])
    with pytest.raises(BadInput, match=r"in 3 parts.*3 nodes \(a, b, c\); 1 node \(d\); 1 node \(e\).*--largest"):
        check_connected(graph, "abcde", "net.csv")
    check_connected(line(4), "abcd", "net.csv")


def test_links_are_read(tmp_path: Path) -> None:
    file = tmp_path / "links.csv"
    file.write_text("from,to,quality\nhill, barn ,3\nbarn,lake,1\n\nlake,hill,2\n")
    names, graph = read_links(file)
    assert names == ("hill", "barn", "lake")
    assert lists(graph) == [[1, 2], [0, 2], [0, 1]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "missing column from, to .* the file is empty"),
        ("a,b\n1,2\n", "missing column from, to .* the header has: a, b"),
        ("from,to\n", "no links below the header"),
        ("from,to\na,a\n", 'line 2: "a" is linked to itself'),
        ("from,to\na,b\nb,a\n", 'line 3: the link "b" - "a" stands already in line 2'),
        ("from,to\na,\n", "line 2: a link needs a node at both ends"),
        ("from,to\na,b,c\n", "line 2: 3 values, but the header has 2"),
    ],
)
def test_bad_links_are_told(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "links.csv"
    file.write_text(text)
    with pytest.raises(BadInput, match=said):
        read_links(file)


def test_all_bad_links_are_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "links.csv"
    file.write_text("from,to\na,a\nb,b\n")
    with pytest.raises(BadInput, match=r"(?s)line 2.*line 3"):
        read_links(file)


def test_more_roots_keep_the_first_ones() -> None:
    graph = line(12)
    for choose in (
        lambda count: random_roots(12, count, np.random.default_rng(3)),
        lambda count: k_centre_roots(graph, count, np.random.default_rng(3)),
        lambda count: roots_along_edge(np.arange(12.0), np.zeros(12), 12.0, count, 2.0),
    ):
        assert choose(5)[:3].tolist() == choose(3).tolist()
        assert len(set(choose(12).tolist())) == 12


def test_k_centre_takes_the_ends_of_a_line() -> None:
    first, *others = k_centre_roots(line(9), 3, np.random.default_rng(0)).tolist()
    assert others[0] == (0 if first >= 4 else 8)
    assert 0 <= others[1] < 9


def test_roots_along_an_edge_stand_nearest_to_even_points() -> None:
    x, y = np.array([5.0, 12.0, 36.0, 70.0, 90.0]), np.array([0.0, 1.0, 2.0, 0.0, 50.0])
    assert roots_along_edge(x, y, 100.0, 2, None).tolist() == [2, 3]
    assert roots_along_edge(x, y, 100.0, 2, 25.0).tolist() == [1, 2]
