"""Connected components: known answers, and the obvious version on random graphs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.world.components import connected_components
from tests.world import slow

Links = set[tuple[int, int]]


def found(nodes: int, links: Links, dtype: type[np.signedinteger] = np.int32) -> list[int]:
    near = [sorted({b for a, b in links if a == node} | {a for a, b in links if b == node}) for node in range(nodes)]
    start = np.cumsum([0, *map(len, near)]).astype(dtype)
    return connected_components(start, np.array([other for others in near for other in others], np.int32)).tolist()


@pytest.mark.parametrize(
    ("nodes", "links", "expected"),
    [
        (0, set(), []),
        (3, set(), [0, 1, 2]),
        (4, {(0, 1), (1, 2), (2, 3)}, [0, 0, 0, 0]),
        (5, {(0, 4), (1, 3)}, [0, 1, 2, 1, 0]),
        (4, {(0, 1), (1, 2), (0, 2)}, [0, 0, 0, 1]),
    ],
    ids=["nobody", "no links", "a line", "numbered by the lowest node", "a ring and one apart"],
)
def test_known_components(nodes: int, links: Links, expected: list[int]) -> None:
    assert found(nodes, links) == expected


@given(st.integers(1, 12), st.data())
def test_components_as_the_obvious_version_finds_them(nodes: int, data: st.DataObject) -> None:
    node = st.integers(0, nodes - 1)
    links = {(a, b) for a, b in data.draw(st.sets(st.tuples(node, node), max_size=14)) if a < b}
    expected = slow.components(nodes, links)
    assert found(nodes, links) == found(nodes, links, np.int64) == expected
