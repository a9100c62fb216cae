"""PUB-2-SUB+, the baseline of TinyMQ's paper: some trees, each of which spans every node.

D. A. Tran, C. Pham: A Content-Guided Publish/Subscribe Mechanism for Sensor Networks without Location Information.
Computer Communications 2010, 33(13), 1515-1523.

Keys, zones and strings are TinyMQ's (III.B: "similar with PUB-2-SUB+"). What differs: a node stands in every tree, with
a key in each, and messages keep to the edges of their tree. The rules are those of serai.overlay.tinymq with
`routing = "tree-edges"`; `own_tree` says which of its trees is a node's own.
"""

from typing import Literal

from serai.overlay.tinymq import OverlaySettings

PAPER = "Tran, Pham: PUB-2-SUB+. Computer Communications 2010, 33(13), 1515-1523"


class Settings(OverlaySettings):
    """What the baseline leaves open: only what TinyMQ does, too."""

    name: Literal["pub2sub"] = "pub2sub"
