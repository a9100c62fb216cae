"""TinyMQ's rules on the paper's own examples, on known answers, and against keys written as texts."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from serai.core.content import Attribute
from serai.core.errors import BadInput
from serai.core.jit import bit_length, kernel
from serai.overlay import pub2sub, tinymq
from serai.overlay.broker import NetworkConfiguration
from serai.overlay.engine.keys import cell_boxes, domains_of
from serai.overlay.engine.keys import rendezvous_keys_of as rendezvous_keys_of_events
from tests.overlay.naive import Links, Overlay, common, rendezvous_key_of, rendezvous_keys_of
from tests.overlay.stories import Ask, FromBrokers, Story, Tell

BITS = 8


def links_of(*pairs: tuple[int, int]) -> Links:
    found: Links = {}
    for one, other in pairs:
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return found


def head(text: str, bits: int = BITS) -> int:
    """The head of a key written as a text."""
    return int(text[:bits].ljust(bits, "0"), 2)


def next_hop(routing: str, own: str, parent: str, neighbors: list[tuple[str, int]], rendezvous_key: str) -> str | None:
    """The key of the neighbour (key, relation) that the rules prefer; None: the rendezvous key stays."""
    code = tinymq.ROUTINGS.index(routing)  # type: ignore[arg-type]
    bits = len(rendezvous_key)
    beat = tinymq.to_beat(code, head(own, bits), len(own), own.count("1"), len(parent), int(rendezvous_key, 2), bits)
    most, found = tinymq.NEVER, None
    for key, relation in neighbors:
        liking = tinymq.preference(
            code, relation, beat, head(key, bits), len(key), key.count("1"), int(rendezvous_key, 2), bits
        )
        if liking > most:
            most, found = liking, key
    return found


# --- Keys (III.B) -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parent", "nth", "child"),
    [("", 1, "1"), ("", 2, "01"), ("", 4, "0001"), ("01", 1, "011"), ("01", 2, "0101"), ("0101", 1, "01011")],
)
def test_keys_of_the_papers_first_figure(parent: str, nth: int, child: str) -> None:
    assert tinymq.head_of_child(head(parent), len(parent), nth, BITS) == head(child)


@pytest.mark.parametrize(("parent", "nth"), [("0000000", 1), ("0000000", 2), ("00000001", 1), ("0001" * 3, 5)])
def test_of_a_key_longer_than_a_rendezvous_key_only_the_first_bits_are_kept(parent: str, nth: int) -> None:
    child = parent + "0" * (nth - 1) + "1"
    assert tinymq.head_of_child(head(parent), len(parent), nth, BITS) == head(child)


texts = st.text("01", max_size=BITS + 3)
rendezvous_keys = st.text("01", min_size=BITS, max_size=BITS)


@given(texts, rendezvous_keys)
def test_keys_and_rendezvous_keys_as_numbers_are_those_written_as_texts(key: str, rendezvous_key: str) -> None:
    number = int(rendezvous_key, 2)
    assert tinymq.is_prefix(head(key), len(key), number, BITS) == rendezvous_key.startswith(key)
    assert tinymq.common_prefix(head(key), len(key), number, BITS) == common(key, rendezvous_key)
    assert tinymq.ones(number) == rendezvous_key.count("1")


@given(texts, rendezvous_keys, st.integers(0, BITS))
def test_a_prefix_is_split_by_the_keys_that_go_on_behind_it(key: str, rendezvous_key: str, length: int) -> None:
    prefix = rendezvous_key[:length]
    goes_on = key.startswith(prefix) and len(key[:BITS]) > length
    assert tinymq.is_split(head(key), len(key), head(prefix), length, BITS) == goes_on


@kernel
def bit_length_compiled(bits: int) -> int:
    return bit_length(bits)


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 255, 256, 2**62, 2**63 - 1])
def test_bit_length_compiled_and_not(bits: int) -> None:
    assert bit_length_compiled(bits) == bit_length(bits) == bits.bit_length()


# --- Routing (III.D) ----------------------------------------------------------------------------------------

P, C, S, O = tinymq.PARENT, tinymq.CHILD, tinymq.SAME_TREE, tinymq.OTHER_TREE  # noqa: E741

CASES: list[tuple[str, str, str, str, list[tuple[str, int]], str, str | None]] = [
    ("down to the child that begins it", "strict", "0", "", [("01", C), ("001", C)], "0010", "001"),
    ("no child begins it: here", "strict", "0", "", [("01", C), ("001", C)], "0001", None),
    ("a child's key longer than a rendezvous key begins none", "strict", "000", "0", [("00001", C)], "0000", None),
    ("down, though a neighbour shares more", "strict", "0", "", [("01", C), ("0110", S)], "0110", "01"),
    ("a neighbour that shares more than the node", "strict", "1", "", [("", P), ("01", S)], "0111", "01"),
    ("of several the one that shares most", "strict", "1", "", [("", P), ("01", S), ("011", S)], "0111", "011"),
    ("of equals the first", "strict", "1", "", [("", P), ("010", S), ("0100", S), ("011", S)], "0101", "010"),
    ("one that shares as much is no better", "strict", "01", "", [("", P), ("011", S)], "0000", ""),
    ("a neighbour of another tree is no way", "strict", "1", "", [("", P), ("01", O)], "0111", ""),
    ("a child is no way up", "strict", "1", "", [("", P), ("101", C)], "0111", ""),
    ("tree edges only", "tree-edges", "1", "", [("", P), ("01", S)], "0111", ""),
    ("greedy: the neighbour that is nearest in the tree", "greedy", "11", "1", [("1", P), ("01", S)], "0111", "01"),
    ("greedy: past the child", "greedy", "", "", [("1", C), ("111", S)], "1110", "111"),
    ("greedy: here", "greedy", "11", "1", [("1", P), ("111", C), ("01", S)], "1100", None),
    ("printed: one that shares more than the parent", "as-printed", "01", "", [("", P), ("001", S)], "0000", "001"),
    ("printed: of whatever tree", "as-printed", "01", "", [("", P), ("1", O)], "1011", "1"),
    ("printed: else the parent", "as-printed", "01", "", [("", P), ("011", C)], "1000", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("routing", "own", "parent", "neighbors", "rendezvous_key", "expected"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_next_hop(
    routing: str, own: str, parent: str, neighbors: list[tuple[str, int]], rendezvous_key: str, expected: str | None
) -> None:
    assert next_hop(routing, own, parent, neighbors, rendezvous_key) == expected


# --- Figures 1 and 2 ----------------------------------------------------------------------------------------
#
# What the text tells of the network of 23 nodes: the roots 6 and 9, the zones of 6 (so it has four children) and
# 10 (key 0101, one child), and the paths of a query and two events "01". The links below are the fewest that fit.

FIGURE = links_of(
    (6, 2), (6, 7), (6, 12), (6, 13), (7, 8), (7, 10), (7, 14), (10, 11), (14, 21), (2, 1), (1, 4),
    (9, 3), (9, 4), (9, 18),
)  # fmt: skip
NUMBER = {node: number for number, node in enumerate(sorted(FIGURE))}
NODE = {number: node for node, number in NUMBER.items()}


def figure(*steps: Any) -> Story:
    links = tuple((NUMBER[one], NUMBER[other]) for one in FIGURE for other in FIGURE[one] if one < other)
    # a rendezvous key of 6 bits is long enough for every key that the figure names
    settings = tinymq.Settings(attribute_bits=6, event_trees="own")
    return Story(links, len(FIGURE), (NUMBER[6], NUMBER[9]), 1, settings, steps)


def test_keys_of_the_papers_figures() -> None:
    overlay = Overlay(FIGURE, (6, 9))
    assert overlay.keys[0][7] == "01"
    assert overlay.keys[1][4] == "01"
    assert overlay.keys[0][10] == "0101"
    assert [overlay.rendezvous(0, rendezvous_key) for rendezvous_key in ("0000", "00000", "01010", "010100")] == [
        6,
        6,
        10,
        10,
    ]


@pytest.mark.parametrize(("publisher", "event_path", "answer_path"), [
    (21, [(21, 14), (14, 7)], [(7, 6), (6, 13)]),
    (18, [(18, 9), (9, 4)], [(4, 1), (1, 2), (2, 6), (6, 13)]),
])  # fmt: skip
def test_the_paths_of_the_papers_second_figure(
    publisher: int, event_path: list[tuple[int, int]], answer_path: list[tuple[int, int]]
) -> None:
    cell = 0b010000  # "01", as long as a rendezvous key has to be
    brokers = FromBrokers(figure())
    asked = brokers.take(Ask("query", NUMBER[13], (cell,), (cell,)))
    assert links_taken(asked.sent, "subscribe") == {(13, 6), (6, 7), (6, 2), (2, 1), (1, 4)}
    assert {(tree, NODE[node]) for _, tree, node in asked.stored} == {(0, 7), (1, 4)}
    told = brokers.take(Tell("event", NUMBER[publisher], (cell,)))
    assert links_taken(told.sent, "publish") == set(event_path)
    assert links_taken(told.sent, "notify") == set(answer_path)
    assert told.delivered == {("event", "query"): 1}


def links_taken(sent: dict[tuple[str, int, int], int], kind: str) -> set[tuple[int, int]]:
    return {(NODE[sender], NODE[receiver]) for name, sender, receiver in sent if name == kind}


# --- What the paper prints ----------------------------------------------------------------------------------


def play(routing: str, links: tuple[tuple[int, int], ...], roots: tuple[int, ...], bits: int, *steps: Any) -> Any:
    settings = tinymq.Settings(attribute_bits=bits, routing=routing)  # type: ignore[arg-type]
    nodes = 1 + max(max(pair) for pair in links)
    brokers = FromBrokers(Story(links, nodes, roots, 1, settings, steps))
    return [brokers.take(step) for step in steps]


SMALLEST_LOOP = ((0, 1), (0, 2), (0, 3), (2, 3))  # keys: 1, 01 and 001 for nodes 1, 2, 3
LINE_OF_FIVE = ((2, 1), (1, 3), (3, 0), (0, 4))  # roots 1 and 4: node 3 has 01 in the first tree, 0 has 1 in the second


@pytest.mark.parametrize(("routing", "lost"), [("as-printed", {"loop": 1}), ("strict", {}), ("greedy", {})])
@pytest.mark.parametrize("publisher", [2, 3])
def test_printed_event_goes_back_and_forth_between_two_siblings(routing: str, lost: Any, publisher: int) -> None:
    """Both share more with 000 than their parent, the root, and each takes the other for better than it."""
    steps = Ask("query", 1, (0,), (0,)), Tell("event", publisher, (0,))
    _, told = play(routing, SMALLEST_LOOP, (0,), 3, *steps)
    assert told.lost == lost
    assert bool(told.delivered) == (not lost)


@pytest.mark.parametrize(("routing", "lost"), [("as-printed", {"loop": 1}), ("strict", {}), ("greedy", {})])
def test_printed_event_goes_back_and_forth_between_two_trees(routing: str, lost: Any) -> None:
    settings = tinymq.Settings(attribute_bits=2, routing=routing, event_trees="all")  # type: ignore[arg-type]
    brokers = FromBrokers(Story(LINE_OF_FIVE, 5, (1, 4), 1, settings, ()))
    assert brokers.take(Tell("event", 0, (0b10,))).lost == lost


@pytest.mark.parametrize(("routing", "delivered"), [("as-printed", 0), ("strict", 1), ("greedy", 1), ("tree-edges", 1)])
def test_printed_query_is_lost_in_the_smallest_network(routing: str, delivered: int) -> None:
    """Node 1 owns the rendezvous keys that begin with 1. It gets a query for 0 and 1, sends it back, stores nothing."""
    asked, told = play(routing, ((0, 1),), (0,), 1, Ask("query", 0, (0,), (1,)), Tell("event", 1, (1,)))
    assert ("query", 0, 1) in asked.stored or not delivered
    assert sum(told.delivered.values()) == delivered


# --- Rendezvous keys (III.C) ----------------------------------------------------------------------------------------


def test_the_papers_query_and_event_meet() -> None:
    """0 < temperature < 0.5, 0.85 < humidity < 0.9; the bits printed in III.C do not follow from its formulas."""
    domains = tuple(Attribute(name, "real", 0, 1) for name in ("temperature", "humidity"))
    configuration = NetworkConfiguration((0,), domains, tinymq.Settings(attribute_bits=6))
    query = configuration.query("query", [math.nextafter(0, 1), math.nextafter(0.85, 1)], [0.5, 0.9])
    event = configuration.event("event", [0.25, 0.88])
    assert (list(query.first), list(query.last)) == ([0, 54], [32, 57])  # floor(64 x)
    assert format(event.rendezvous_key, "012b") == format(16, "06b") + format(56, "06b")
    assert format(event.rendezvous_key, "012b") in rendezvous_keys_of(query.first, query.last, 6)


@pytest.mark.parametrize(
    ("value", "cell"), [(0.0, 0), (0.2499, 0), (0.25, 1), (0.999, 3), (1.0, 3), (-1, 0), (7, 3), (math.nan, 0)]
)
def test_cells_of_a_real_attribute(value: float, cell: int) -> None:
    assert tinymq.cell_of(value, 0.0, 1.0, False, 2) == cell


def test_cells_of_an_integer_attribute_share_its_values_out() -> None:
    assert [tinymq.cell_of(value, 1.0, 8.0, True, 2) for value in range(1, 9)] == [0, 0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("bits", [52, 53, 62, 63])
def test_the_most_cells(bits: int) -> None:
    ends = [tinymq.cell_of(value, 0.0, 1.0, False, bits) for value in (0.0, 1.0)]
    assert ends[0] == 0
    assert 2 ** (bits - 1) < ends[1] <= 2**bits - 1
    for mapping in (tinymq.SPLIT, tinymq.MORTON):
        assert [tinymq.rendezvous_key_of([end], mapping, bits) for end in ends] == ends
        assert tinymq.touches([0], ends[1:], 0, 0, mapping, bits)
        assert tinymq.touches([0], ends[1:], 1 << (bits - 1), 1, mapping, bits)
        assert not tinymq.touches(ends[:1], ends[:1], 1 << (bits - 1), 1, mapping, bits)


finite = st.floats(-10, 10)


@given(finite, finite, finite, st.booleans(), st.integers(1, 63))
def test_a_value_in_a_range_lies_in_a_cell_of_the_range(
    one: float, other: float, value: float, whole: bool, bits: int
) -> None:
    """The mapping intersection rule, for one attribute: h keeps the order."""
    domain = -5.0, 7.0, whole
    if not min(one, other) <= value <= max(one, other) or not -5 <= value <= 7:
        return
    first, last = tinymq.cells_touched(min(one, other), max(one, other), *domain, bits)
    assert first <= tinymq.cell_of(value, *domain, bits) <= last


@pytest.mark.parametrize(("low", "high"), [(8.0, 9.0), (-9.0, -8.0), (3.0, 2.0)])
def test_a_range_outside_of_the_domain_touches_nothing(low: float, high: float) -> None:
    first, last = tinymq.cells_touched(low, high, -5.0, 7.0, False, 4)
    assert first > last
    assert not tinymq.touches([first], [last], 0, 0, tinymq.SPLIT, 4)


ends = st.floats(-12, 12) | st.sampled_from([-math.inf, math.inf, -5.0, 7.0])
values = st.lists(st.tuples(ends | st.just(math.nan), ends), min_size=1, max_size=5)


@given(values, values, st.integers(1, 31), st.sampled_from([tinymq.SPLIT, tinymq.MORTON]))
def test_many_at_once_are_the_same_as_one_by_one(
    events: list[tuple[float, float]], bounds: list[tuple[float, float]], bits: int, mapping: int
) -> None:
    attributes = Attribute("A", "real", -5.0, 7.0), Attribute("B", "integer", -5, 7)
    domains = domains_of(attributes)
    each = [(-5.0, 7.0, False), (-5.0, 7.0, True)]
    cells = [[tinymq.cell_of(event[k], *each[k], bits) for k in (0, 1)] for event in events]
    expected = [tinymq.rendezvous_key_of(row, mapping, bits) for row in cells]
    assert rendezvous_keys_of_events(np.array(events), domains, mapping, bits).tolist() == expected
    low, high = np.array(bounds), np.full((len(bounds), 2), 3.0)
    first, last = cell_boxes(low, high, domains, bits)
    pairs = [[tinymq.cells_touched(low[q, k], 3.0, *each[k], bits) for k in (0, 1)] for q in range(len(bounds))]
    assert np.stack([first, last], axis=2).tolist() == [[list(pair) for pair in row] for row in pairs]


@st.composite
def boxes(draw: st.DrawFn) -> tuple[list[int], list[int], int, str]:
    bits, attributes = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    cells = st.lists(st.integers(0, 2**bits - 1), min_size=attributes, max_size=attributes)
    one, other = draw(cells), draw(cells)
    mapping = draw(st.sampled_from(tinymq.MAPPINGS))
    return list(map(min, one, other)), list(map(max, one, other)), bits, mapping


@given(boxes(), st.data())
def test_a_box_touches_the_prefixes_of_its_rendezvous_keys(
    box: tuple[list[int], list[int], int, str], data: Any
) -> None:
    first, last, bits, mapping = box
    prefix = data.draw(st.text("01", max_size=bits * len(first)))
    expected = any(
        rendezvous_key.startswith(prefix) for rendezvous_key in rendezvous_keys_of(first, last, bits, mapping)
    )
    code = tinymq.MAPPINGS.index(mapping)  # type: ignore[arg-type]
    arrays = np.array(first, np.int64), np.array(last, np.int64)
    number = head(prefix, bits * len(first))
    assert tinymq.touches(*arrays, number, len(prefix), code, bits) == expected


@given(boxes())
def test_rendezvous_keys_of_cells(box: tuple[list[int], list[int], int, str]) -> None:
    first, last, bits, mapping = box
    code = tinymq.MAPPINGS.index(mapping)  # type: ignore[arg-type]
    for cells in (first, last):
        expected = int(rendezvous_key_of(cells, bits, mapping), 2)
        assert tinymq.rendezvous_key_of(cells, code, bits) == expected


# --- Compiled -----------------------------------------------------------------------------------------------


@kernel
def decide_compiled(
    code: int, relation: int, own: int, own_length: int, key: int, length: int, rendezvous_key: int
) -> Any:
    beat = tinymq.to_beat(code, own, own_length, 2, 1, rendezvous_key, BITS)
    return beat, tinymq.preference(code, relation, beat, key, length, 3, rendezvous_key, BITS)


@kernel
def touches_compiled(first: Any, last: Any, prefix: int, length: int, mapping: int, bits: int) -> bool:
    return tinymq.touches(first, last, prefix, length, mapping, bits)


def uncompiled(compiled: Any) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(compiled, "py_func", compiled)
    return function


@given(st.integers(0, 3), st.integers(0, 3), texts, texts, rendezvous_keys)
def test_decisions_are_the_same_compiled(code: int, relation: int, own: str, key: str, rendezvous_key: str) -> None:
    arguments = code, relation, head(own), len(own), head(key), len(key), int(rendezvous_key, 2)
    assert decide_compiled(*arguments) == uncompiled(decide_compiled)(*arguments)


@given(boxes(), rendezvous_keys, st.integers(0, 3))
def test_touching_is_the_same_compiled(
    box: tuple[list[int], list[int], int, str], rendezvous_key: str, length: int
) -> None:
    first, last, bits, mapping = box
    width = bits * len(first)
    prefix = head(rendezvous_key[: min(length, width)], width)
    code = tinymq.MAPPINGS.index(mapping)  # type: ignore[arg-type]
    arrays = np.array(first, np.int64), np.array(last, np.int64)
    arguments = *arrays, prefix, min(length, width), code, bits
    assert touches_compiled(*arguments) == uncompiled(touches_compiled)(*arguments)


# --- Settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [tinymq.Settings, pub2sub.Settings])
def test_queries_and_events_that_both_stay_at_home_are_refused(settings: Any) -> None:
    with pytest.raises(ValidationError, match="need not meet"):
        settings(query_trees="own", event_trees="own")


def test_rendezvous_keys_that_are_too_long_are_refused() -> None:
    domains = tuple(Attribute(f"A{number}", "real", 0, 1) for number in range(4))
    with pytest.raises(
        BadInput, match="4 attributes of 16 bits make rendezvous keys of 64 bits; at most 63, so at most 15"
    ):
        NetworkConfiguration((0,), domains, tinymq.Settings(attribute_bits=16))


def test_a_query_for_nothing_is_refused() -> None:
    configuration = NetworkConfiguration((0,), (Attribute("A1", "real", 0, 10),), tinymq.Settings())
    with pytest.raises(BadInput, match=r"11 .. 12 holds no value of A1, which lies in 0 .. 10"):
        configuration.query("query", [11], [12])
