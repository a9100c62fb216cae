"""PUB-2-SUB+, the baseline of TinyMQ's paper: some trees, each of which spans every node.

D. A. Tran, C. Pham: A Content-Guided Publish/Subscribe Mechanism for Sensor Networks without Location Information.
Computer Communications 2010, 33(13), 1515-1523.

Node keys, zones and rendezvous keys are TinyMQ's (III.B: "similar with PUB-2-SUB+"), and so are the rules: they stand
in serai.overlay.tinymq. What differs: a node stands in every tree, with a key in each, one of the trees is its own, and
messages keep to the edges of their tree.
"""

from typing import Literal

from serai.overlay.tinymq import TREE_EDGES, OverlaySettings

PAPER = "Tran, Pham: PUB-2-SUB+. Computer Communications 2010, 33(13), 1515-1523"


class Settings(OverlaySettings):
    """What the baseline leaves open: only what TinyMQ does, too."""

    name: Literal["pub2sub"] = "pub2sub"

    def layers(self, trees: int) -> list[list[int]]:
        """Each tree is a layer of its own: it spans every node."""
        return [[tree] for tree in range(trees)]

    def own_layer(self, node: int, layers: int) -> int:
        """The trees are shared out evenly among the nodes."""
        return node % layers

    def routing_code(self) -> int:
        """Along the edges of the tree only."""
        return TREE_EDGES
