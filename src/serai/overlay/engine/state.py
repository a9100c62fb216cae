"""What the overlay's kernels work on: nodes with their keys, the links between them, and the layers they form."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.jit import rule
from serai.overlay.engine.graph import Numbers, Places

NONE = -1
"""No node, no tree."""

# One record per node and per link, not one array per field: a node's next hop looks at all fields of all its links,
# which stand side by side in memory.
NODE = np.dtype(
    [
        ("head", np.int64),  # the first bits of the key, zeros behind it
        ("length", np.int32),  # of the whole key
        ("depth", np.int32),  # hops to the root along the tree
        ("tree", np.int32),  # NONE: no key yet
        ("parent", np.int32),  # NONE: a root
        ("nth", np.int32),  # which child of its parent: 1, 2, ..; 0: a root, or its key was given by subtree
        (
            "zone_length",
            np.int32,
        ),  # keys of new children begin so: with the key, or with what was kept ...
        ("zone_head", np.int64),  # ... when the zone was shared out by subtree
    ],
    align=True,
)
LINK = np.dtype(
    [
        ("head", np.int64),  # the neighbour's key
        ("length", np.int32),
        ("depth", np.int32),
        ("node", np.int32),  # the neighbour
        ("relation", np.int32),  # what it is to the node: serai.overlay.tinymq.PARENT, ...
    ]
)

Nodes = Any  # np.recarray of NODE: which fields it has is not known to a type checker
Links = Any  # np.recarray of LINK


class Layer(NamedTuple):
    """Trees that share no node; which trees those are, the protocol says (`OverlaySettings.layers`)."""

    trees: Numbers  # the trees of the layer, by number
    roots: Numbers  # of these trees
    nodes: Nodes
    link_start: Places  # links of node x, by number of the neighbour: links[link_start[x] : link_start[x + 1]]
    links: Links  # only those that routing may use
    hops: Numbers  # [tree of the layer, node] how far the tree's root is, in the network
    toward: Numbers  # [tree of the layer, node] the neighbour on the path to the tree's root; NONE at the root


@rule
def longer(array: NDArray[Any], room: int) -> NDArray[Any]:
    """The same array with more room."""
    longer = np.zeros(room, array.dtype)
    for place in range(len(array)):  # with a slice, what raises an error about shapes is compiled as well: 3 s
        longer[place] = array[place]
    return longer


def records(count: int, kind: np.dtype[Any]) -> Any:
    """So many records, all zero."""
    return np.zeros(count, kind).view(np.recarray)


def empty_nodes(count: int) -> Nodes:
    """Nodes of which none has a key."""
    nodes = records(count, NODE)
    nodes["tree"] = nodes["parent"] = NONE
    return nodes
