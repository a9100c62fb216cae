"""TinyMQ: trees of binary keys over a static network; events and queries meet at the node their content names.

K. Shi, Z. Deng, X. Qin: TinyMQ: A Content-based Publish/Subscribe Middleware for Wireless Sensor Networks.
SENSORCOMM 2011, 12-17.

Where to find what, in the paper's order:

    III.B  trees, keys given by the parent              head_of_child; who joins whom: serai.overlay.broker.broker
           key zones                                    is_prefix: a string belongs to the longest key that begins it
           the way to another tree, by distance         is_nearer
    III.C  h, EK: an event is one string                cells_of, strings_of
           SK: a query is a box of strings              cell_box, touches
    III.D  Algorithm 3.2, event routing                 to_beat, preference
           Algorithm 3.1, subscription routing          the same, for each string of the query; is_split

Both algorithms lose most events as they are printed (`routing = "as-printed"` shows it). The corrected reading, why it
ends and why nothing is lost, is in docs/overlay/tinymq.md; each open point is a setting below.

A string has `bits` = (attributes) x (bits an attribute) <= 63 bits, its first bit the most significant one. A key is
(head, length, depth): `head` is the key's first `bits` bits, zeros behind it if it is shorter; `length` is the whole
key's, which may be longer than a string; `depth`, the number of its ones, is the number of hops to the root.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic import Field as setting
from pydantic_core import InitErrorDetails, PydanticCustomError

from serai.core.jit import bit_length, rule

PAPER = "Shi, Deng, Qin: TinyMQ. SENSORCOMM 2011, 12-17"

Routing = Literal["strict", "greedy", "tree-edges", "as-printed"]
ROUTINGS: tuple[Routing, ...] = ("strict", "greedy", "tree-edges", "as-printed")
STRICT, GREEDY, TREE_EDGES, AS_PRINTED = range(len(ROUTINGS))

Mapping = Literal["split", "morton"]
MAPPINGS: tuple[Mapping, ...] = ("split", "morton")
SPLIT, MORTON = range(len(MAPPINGS))

MOST_BITS = 63
"""The longest string: what a signed word holds without its sign."""

PARENT, CHILD, SAME_TREE, OTHER_TREE = range(4)  # what a neighbour is to a node, in one tree

NEVER = -1
"""The preference for a neighbour that a string does not go to."""

DESCENDING = -(2**62)
"""What a neighbour has to beat where the node's own key begins the string: nothing, only a child may take it."""

Strings = NDArray[np.int64]
Cells = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


class OverlaySettings(BaseModel):
    """What TinyMQ and PUB-2-SUB+ both leave open."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attribute_bits: int = setting(6, ge=1, le=MOST_BITS, description="Bits of a string for each attribute (l).")
    mapping: Mapping = setting(
        "split",
        description="A string is one attribute's bits after the other's (the paper), or their bits in turn (Morton).",
    )
    query_trees: Literal["all", "own"] = setting(
        "all", description="A query goes to all trees (the paper), or only to the subscriber's own."
    )
    event_trees: Literal["own", "all"] = setting(
        "own", description="An event goes to its publisher's own tree (the paper's Fig. 2), or to all (its text)."
    )

    @model_validator(mode="after")
    def _must_meet(self) -> "OverlaySettings":
        if self.query_trees == "own" and self.event_trees == "own":
            problem = (
                'query_trees = "own" needs event_trees = "all": in trees of their own, query and event need not meet'
            )
            violation = {"keys": ("query_trees", "event_trees"), "problem": problem, "offset": None, "width": 1}
            error = PydanticCustomError("violation", "{problem}", violation)
            lines = [InitErrorDetails(type=error, loc=("query_trees",), input=self.query_trees)]
            raise ValidationError.from_exception_data(type(self).__name__, lines)
        return self


class Settings(OverlaySettings):
    """One name for each point that the paper leaves open, or gets wrong."""

    name: Literal["tinymq"] = "tinymq"
    routing: Routing = setting(
        "strict",
        description="Past the tree's edges a string goes to a neighbour whose key shares more with it than the node's"
        " own, or (greedy) is nearer in the tree; or along tree edges only; or as the paper prints it, which loses.",
    )


# ---- III.B: keys


@rule
def head_of_child(head: int, length: int, nth: int, bits: int) -> int:
    """The head of the key of the nth child (1, 2, ..): the parent's key, then nth - 1 zeros and a one."""
    place = length + nth
    return head | (1 << (bits - place)) if place <= bits else head


@rule
def is_prefix(head: int, length: int, string: int, bits: int) -> bool:
    """Whether the key (or the prefix) of this length begins the string; one longer than a string begins none."""
    return length <= bits and (head ^ string) >> (bits - length) == 0


@rule
def common_prefix(head: int, length: int, string: int, bits: int) -> int:
    """How many bits the beginnings of the key and the string have in common."""
    return min(length, bits - bit_length(head ^ string))


@rule
def ones(string: int) -> int:
    """How many bits are one."""
    count = 0
    while string:
        string &= string - 1
        count += 1
    return count


# ---- III.D: where a string goes from a node of the tree it is for


@rule
def to_beat(routing: int, head: int, length: int, depth: int, parent_length: int, string: int, bits: int) -> int:
    """What a neighbour's key must be better than for the string to leave the tree's edges; the node's own is given.

    Strict: the node's own common prefix. As printed (Alg. 3.2 line 10): its parent's, so that two siblings send a
    string back and forth. Greedy: the node's own closeness in the tree.
    """
    if routing == GREEDY:
        return closeness(head, length, depth, string, bits)
    if is_prefix(head, length, string, bits):
        return DESCENDING
    shared = common_prefix(head, length, string, bits)
    return min(shared, parent_length) if routing == AS_PRINTED else shared


@rule
def preference(
    routing: int, relation: int, beat: int, head: int, length: int, depth: int, string: int, bits: int
) -> int:
    """How much the neighbour with this key is preferred as the string's next hop; `NEVER` if it may not be that.

    The string goes to the neighbour preferred most, of several to the one with the lowest number. If there is none, the
    node itself is the string's rendezvous: query and event meet here.
    """
    if relation == OTHER_TREE and routing != AS_PRINTED:
        return NEVER
    if routing == GREEDY:
        return better_by(closeness(head, length, depth, string, bits), beat)
    if beat == DESCENDING:  # Alg. 3.2 lines 14-17
        return 1 if relation == CHILD and is_prefix(head, length, string, bits) else NEVER
    if relation == CHILD:
        return NEVER
    if relation == PARENT:
        return 0  # when nobody else is better (lines 12-13)
    if routing == TREE_EDGES:
        return NEVER
    return better_by(common_prefix(head, length, string, bits), beat)


@rule
def better_by(merit: int, beat: int) -> int:
    """By how much a neighbour beats what it has to beat, or `NEVER`."""
    return merit - beat if merit > beat else NEVER


@rule
def closeness(head: int, length: int, depth: int, string: int, bits: int) -> int:
    """How near the key's node is to the string's rendezvous along the tree: larger is nearer, by one a hop.

    Keys gain one 1 a level, so the ones of the common prefix count the levels that the two ways from the root share.
    """
    return 2 * ones(string >> (bits - common_prefix(head, length, string, bits))) - depth


@rule
def is_nearer(hops: int, best: int) -> bool:
    """Whether a neighbour so far from the wanted tree's root is a better way there than the best seen (3.2 line 4).

    A node outside of the tree begins with its own distance as the best, and asks its neighbours in order of number.
    """
    return hops < best


@rule
def is_split(head: int, length: int, prefix: int, prefix_length: int, bits: int) -> bool:
    """Whether strings that begin with `prefix` may share more or less with this key: it begins so too, and goes on.

    If that holds for none of the keys a node knows (its own and its neighbours'), one next hop serves them all.
    """
    return min(length, bits) > prefix_length and is_prefix(prefix, prefix_length, head, bits)


@rule
def own_tree(node: int, trees: int) -> int:
    """The own tree of a node that stands in all of them (PUB-2-SUB+): shared out evenly."""
    return node % trees


# ---- III.C: strings


def cells_of(values: Floats, low: Floats, high: Floats, whole: Flags, attribute_bits: int) -> Cells:
    """h: the cell of each value [.., attribute]; values beyond the domain fall into its outer cells.

    Cells are 0 .. 2^attribute_bits - 1. `whole` says which attributes are integers: low .. high are then
    high - low + 1 values. A missing value (NaN) matches only a query that leaves the attribute free, and so touches
    every cell: cell 0 will do.
    """
    cells = 2.0**attribute_bits
    place = (np.clip(values, low, high) - low) * (cells / (high - low + whole))
    # Not cells - 1, which float64 cannot tell from cells beyond 2^53.
    return np.nan_to_num(np.floor(np.minimum(place, np.nextafter(cells, 0.0))), nan=0.0).astype(np.int64)


def cell_box(
    box_low: Floats, box_high: Floats, low: Floats, high: Floats, whole: Flags, attribute_bits: int
) -> tuple[Cells, Cells]:
    """H: the first and last cell of each attribute that the query's box touches; 0 .. -1 where it touches none."""
    outside = ~((box_low <= high) & (box_high >= low) & (box_low <= box_high))
    first = np.where(outside, 0, cells_of(box_low, low, high, whole, attribute_bits))
    last = np.where(outside, -1, cells_of(box_high, low, high, whole, attribute_bits))
    return first, last


def strings_of(cells: Cells, mapping: int, attribute_bits: int) -> Strings:
    """EK: the string of each row of cells [.., attribute]: one attribute after the other, or their bits in turn."""
    attributes = cells.shape[-1]
    strings = np.zeros(cells.shape[:-1], np.int64)
    for place in range(attributes * attribute_bits):
        attribute = place // attribute_bits if mapping == SPLIT else place % attributes
        bit = place % attribute_bits if mapping == SPLIT else place // attributes
        strings = strings << 1 | (cells[..., attribute] >> (attribute_bits - 1 - bit) & 1)
    return strings


@rule
def touches(first: Cells, last: Cells, prefix: int, prefix_length: int, mapping: int, attribute_bits: int) -> bool:
    """Whether some string of the query's box first .. last begins with the prefix (whose other bits are zero).

    SK without listing it: the strings under a prefix are a box of cells, too.
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
def lowest_cell(string: int, attribute: int, attributes: int, mapping: int, attribute_bits: int) -> int:
    """The attribute's cell in a string; in a prefix, with zeros behind it, the lowest cell under it."""
    if mapping == SPLIT:
        upto = string >> (attributes - 1 - attribute) * attribute_bits
        return upto - (upto >> attribute_bits << attribute_bits)
    cell = 0
    for bit in range(attribute_bits):
        place = bit * attributes + attribute
        cell = cell << 1 | (string >> (attributes * attribute_bits - 1 - place) & 1)
    return cell
