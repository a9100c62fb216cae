"""TinyMQ: trees of binary keys over a static network; events and queries meet at the node their content names.

K. Shi, Z. Deng, X. Qin: TinyMQ: A Content-based Publish/Subscribe Middleware for Wireless Sensor Networks.
SENSORCOMM 2011, 12-17.

Two kinds of binary keys are compared bit by bit, and must not be confused:

*   A **node key** (or just *key*) says where a node stands in a tree. It is (head, length, depth): `head` is its first
    `bits` bits, zeros behind it if it is shorter; `length` is the whole key's, which may be more than `bits`; `depth`,
    the number of its ones, is the number of hops to the root.
*   A **rendezvous key** says what an event is about: `bits` = (attributes) x (bits an attribute) <= 63 bits, the first
    one the most significant. A query stands for a set of them. The longest node key in a tree that begins a rendezvous
    key names its *rendezvous*: the node at which events and queries with that rendezvous key meet.

Where to find what, in the paper's order:

    III.B  trees, node keys given by the parent         head_of_child; who joins whom: serai.overlay.broker.membership
           key zones                                    is_prefix
           the path to another tree, by distance        is_nearer
    III.C  h, EK: an event is one rendezvous key        cell_of, rendezvous_key_of
           SK: a query is a box of rendezvous keys      cells_touched, touches
    III.D  Algorithm 3.2, event routing                 to_beat, preference
           Algorithm 3.1, subscription routing          the same, for each rendezvous key of the query; is_split

Both algorithms lose most events as they are printed (`routing = "as-printed"` shows it). The corrected reading, why it
ends and why nothing is lost, is in docs/overlay/tinymq.md; each open point is a setting below.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NoReturn

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic import Field as setting
from pydantic_core import InitErrorDetails, PydanticCustomError

from serai.core.rules import bit_length, rule

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Cells = Sequence[int] | NDArray[np.int64]  # one for each attribute

PAPER = "Shi, Deng, Qin: TinyMQ. SENSORCOMM 2011, 12-17"

Routing = Literal["strict", "greedy", "tree-edges", "as-printed"]
ROUTINGS: tuple[Routing, ...] = ("strict", "greedy", "tree-edges", "as-printed")
STRICT, GREEDY, TREE_EDGES, AS_PRINTED = range(len(ROUTINGS))

Mapping = Literal["split", "morton"]
MAPPINGS: tuple[Mapping, ...] = ("split", "morton")
SPLIT, MORTON = range(len(MAPPINGS))

MOST_BITS = 63
"""The longest rendezvous key: what a signed word holds without its sign."""

PARENT, CHILD, SAME_TREE, OTHER_TREE = range(4)  # what a neighbour is to a node, in one tree

HERE = -1
"""The next hop of a message that has arrived: the node is its rendezvous."""

NO_ROUTE = -2
"""The next hop of a message that cannot go on: no path leads to its tree."""

NEVER = -1
"""The preference for a neighbour that a message does not go to."""

DESCENDING = -(2**62)
"""What a neighbour has to beat where the node's own key begins the rendezvous key: only a child may take it."""

_BELOW_ONE = math.nextafter(1.0, 0.0)


class OverlaySettings(BaseModel):
    """The settings that all protocols of a key-based overlay share, and hooks for what each does in its own way.

    The engine, the brokers and the metrics ask these hooks, and never for the name of a protocol.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    attribute_bits: int = setting(6, ge=1, le=MOST_BITS, description="Bits of a rendezvous key for each attribute (l).")
    mapping: Mapping = setting(
        "split",
        description="A rendezvous key lists the attributes' bits one attribute after the other (the paper), or"
        " interleaves them (Morton).",
    )
    query_trees: Literal["all", "own"] = setting(
        "all", description="A query goes to all trees (the paper), or only to the subscriber's own."
    )
    event_trees: Literal["own", "all"] = setting(
        "own", description="An event goes to its publisher's own tree (the paper's Fig. 2), or to all (its text)."
    )

    zones: Literal["arrival", "subtree"] = setting(
        "arrival",
        description="Each child gets half of what its parent has left, in the order in which they join (the paper),"
        " or a share that depends on the size of its subtree.",
    )

    @model_validator(mode="after")
    def _must_fit(self) -> OverlaySettings:
        if self.zones == "subtree" and self.routing_code() not in (STRICT, TREE_EDGES):
            problem = 'zones = "subtree" needs routing = "strict" or "tree-edges": the others count on keys by arrival'
            self._refuse(("zones", "routing"), problem)
        return self

    def _refuse(self, keys: tuple[str, str], problem: str) -> NoReturn:
        violation = {"keys": keys, "problem": problem, "offset": None, "width": 1}
        error = PydanticCustomError("violation", "{problem}", violation)
        lines = [InitErrorDetails(type=error, loc=keys[:1], input=getattr(self, keys[0]))]
        raise ValidationError.from_exception_data(type(self).__name__, lines)

    @model_validator(mode="after")
    def _must_meet(self) -> OverlaySettings:
        if self.query_trees == "own" and self.event_trees == "own":
            problem = (
                'query_trees = "own" needs event_trees = "all": in trees of their own, query and event need not meet'
            )
            self._refuse(("query_trees", "event_trees"), problem)
        return self

    @abstractmethod
    def layers(self, trees: int) -> list[list[int]]:
        """The trees, by number, in layers: trees of one layer share no node, so a node has one key in each layer.

        Each tree stands in one layer; the trees of a layer are in ascending order.
        """

    @abstractmethod
    def own_layer(self, node: int, layers: int) -> int:
        """The layer, of so many, in which the node stands in its *own* tree."""

    @abstractmethod
    def routing_code(self) -> int:
        """How messages find their way within a tree: `STRICT`, `GREEDY`, `TREE_EDGES` or `AS_PRINTED`."""


class Settings(OverlaySettings):
    """One name for each point that the paper leaves open, or gets wrong."""

    name: Literal["tinymq"] = "tinymq"
    routing: Routing = setting(
        "strict",
        description="Besides tree edges, a message may take a link to a neighbour whose key shares more with its"
        " rendezvous key than the node's own does, or (greedy) is nearer in the tree; or along tree edges only; or as"
        " the paper prints it, which loses events.",
    )

    def layers(self, trees: int) -> list[list[int]]:
        """One layer: a node stands in one of the trees, which share the network out among themselves (III.B)."""
        return [list(range(trees))]

    def own_layer(self, node: int, layers: int) -> int:
        """There is only one."""
        return 0

    def routing_code(self) -> int:
        """As the setting `routing` says."""
        return ROUTINGS.index(self.routing)


# ---- III.B: node keys


@rule
def head_of_child(head: int, length: int, nth: int, bits: int) -> int:
    """The head of the key of the nth child (1, 2, ..): the parent's key, then nth - 1 zeros and a one."""
    place = length + nth
    return head | (1 << (bits - place)) if place <= bits else head


@rule
def is_prefix(head: int, length: int, rendezvous_key: int, bits: int) -> bool:
    """Whether the node key (or the prefix) of this length begins the rendezvous key; one longer than it never does."""
    return length <= bits and (head ^ rendezvous_key) >> (bits - length) == 0


@rule
def common_prefix(head: int, length: int, rendezvous_key: int, bits: int) -> int:
    """How many bits the node key and the rendezvous key have in common from the start."""
    return min(length, bits - bit_length(head ^ rendezvous_key))


@rule
def ones(word: int) -> int:
    """How many bits are one."""
    count = 0
    while word:
        word &= word - 1  # the lowest one becomes a zero
        count += 1
    return count


# ---- III.D: where a message with a rendezvous key goes from a node of the tree it is for


@rule
def to_beat(
    routing: int, head: int, length: int, depth: int, parent_length: int, rendezvous_key: int, bits: int
) -> int:
    """What a neighbour's key must be better than for a message to leave the tree's edges; the node's own is given.

    Strict: the node's own common prefix. As printed (Alg. 3.2 line 10): its parent's, so that two siblings send a
    message back and forth. Greedy: the node's own closeness in the tree.
    """
    if routing == GREEDY:
        return closeness(head, length, depth, rendezvous_key, bits)
    if is_prefix(head, length, rendezvous_key, bits):
        return DESCENDING
    shared = common_prefix(head, length, rendezvous_key, bits)
    return min(shared, parent_length) if routing == AS_PRINTED else shared


@rule
def preference(
    routing: int, relation: int, beat: int, head: int, length: int, depth: int, rendezvous_key: int, bits: int
) -> int:
    """How much the neighbour with this key is preferred as the next hop; `NEVER` if it may not be that.

    The message goes to the neighbour preferred most, of several to the one with the lowest number. If there is none,
    the node itself is the rendezvous: query and event meet here.
    """
    if relation == OTHER_TREE and routing != AS_PRINTED:
        return NEVER
    if routing == GREEDY:
        return better_by(closeness(head, length, depth, rendezvous_key, bits), beat)
    if beat == DESCENDING:  # Alg. 3.2 lines 14-17
        return 1 if relation == CHILD and is_prefix(head, length, rendezvous_key, bits) else NEVER
    if relation == CHILD:
        return NEVER
    if relation == PARENT:
        return 0  # when nobody else is better (lines 12-13)
    if routing == TREE_EDGES:
        return NEVER
    return better_by(common_prefix(head, length, rendezvous_key, bits), beat)


@rule
def better_by(merit: int, beat: int) -> int:
    """By how much a neighbour beats what it has to beat, or `NEVER`."""
    return merit - beat if merit > beat else NEVER


@rule
def closeness(head: int, length: int, depth: int, rendezvous_key: int, bits: int) -> int:
    """How near the node with this key is to the rendezvous along the tree: larger is nearer, by one a hop.

    Keys gain one 1 a level, so the ones of the common prefix count the levels that the two paths from the root share.
    """
    return 2 * ones(rendezvous_key >> (bits - common_prefix(head, length, rendezvous_key, bits))) - depth


@rule
def is_nearer(hops: int, best: int) -> bool:
    """Whether a neighbour so far from the wanted tree's root is a better next hop than the best seen (3.2 line 4).

    A node outside of the tree begins with its own distance as the best, and asks its neighbours in order of number.
    """
    return hops < best


@rule
def is_split(head: int, length: int, prefix: int, prefix_length: int, bits: int) -> bool:
    """Whether rendezvous keys under `prefix` may share more or less with this node key: it begins so too, and goes on.

    If that holds for none of the node keys that a node knows (its own, its neighbours'), one next hop serves them all.
    """
    return min(length, bits) > prefix_length and is_prefix(prefix, prefix_length, head, bits)


# ---- III.C: rendezvous keys


@rule
def cell_of(value: float, low: float, high: float, whole: bool, attribute_bits: int) -> int:
    """h: the cell of a value of an attribute; values beyond its domain low .. high fall into the outer cells.

    Cells are 0 .. 2^attribute_bits - 1. The attribute is real, or (`whole`) an integer: low .. high are then
    high - low + 1 values. A missing value (NaN) matches only a query that leaves the attribute free, and so touches
    every cell: cell 0 will do.
    """
    if math.isnan(value):
        return 0
    cells = 2.0**attribute_bits
    place = (min(max(value, low), high) - low) * (cells / (high - low + (1.0 if whole else 0.0)))
    # The largest float below cells, not cells - 1: beyond 2^53 float64 cannot tell that from cells.
    return math.floor(min(place, cells * _BELOW_ONE))


@rule
def cells_touched(
    box_low: float, box_high: float, low: float, high: float, whole: bool, attribute_bits: int
) -> tuple[int, int]:
    """H: the first and last cell of an attribute that the query's range touches; 0, -1 if it touches none."""
    if not (box_low <= high and box_high >= low and box_low <= box_high):
        return 0, -1
    return cell_of(box_low, low, high, whole, attribute_bits), cell_of(box_high, low, high, whole, attribute_bits)


@rule
def rendezvous_key_of(cells: Cells, mapping: int, attribute_bits: int) -> int:
    """EK: the rendezvous key of an event in these cells: attribute after attribute, or their bits in turn."""
    attributes, rendezvous_key = len(cells), 0
    for place in range(attributes * attribute_bits):
        attribute = place // attribute_bits if mapping == SPLIT else place % attributes
        bit = place % attribute_bits if mapping == SPLIT else place // attributes
        rendezvous_key = rendezvous_key << 1 | (cells[attribute] >> (attribute_bits - 1 - bit) & 1)
    return rendezvous_key


@rule
def touches(first: Cells, last: Cells, prefix: int, prefix_length: int, mapping: int, attribute_bits: int) -> bool:
    """Whether some rendezvous key of the query's box first .. last begins with the prefix (whose other bits are zero).

    SK without listing it: the rendezvous keys under a prefix are a box of cells, too.
    """
    for attribute in range(len(first)):
        lowest = lowest_cell(prefix, attribute, len(first), mapping, attribute_bits)
        free = attribute_bits - fixed_bits(prefix_length, attribute, len(first), mapping, attribute_bits)
        if not first[attribute] >> free <= lowest >> free <= last[attribute] >> free:
            return False
    return True


@rule
def fixed_bits(prefix_length: int, attribute: int, attributes: int, mapping: int, attribute_bits: int) -> int:
    """How many bits of an attribute a prefix of this length says."""
    if mapping == SPLIT:
        return min(max(prefix_length - attribute * attribute_bits, 0), attribute_bits)
    return (prefix_length + attributes - 1 - attribute) // attributes


@rule
def lowest_cell(rendezvous_key: int, attribute: int, attributes: int, mapping: int, attribute_bits: int) -> int:
    """The attribute's cell in a rendezvous key; in a prefix, with zeros behind it, the lowest cell under it."""
    if mapping == SPLIT:
        upto = rendezvous_key >> (attributes - 1 - attribute) * attribute_bits
        return upto - (upto >> attribute_bits << attribute_bits)
    cell = 0
    for bit in range(attribute_bits):
        place = bit * attributes + attribute
        cell = cell << 1 | (rendezvous_key >> (attributes * attribute_bits - 1 - place) & 1)
    return cell
