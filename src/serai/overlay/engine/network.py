"""What a run of an overlay starts from: who hears whom, what is published and asked where, and who will fail."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.content import Attribute
from serai.overlay.engine.graph import Floats, Graph, Numbers


class Network(NamedTuple):
    """A static network, its events and its subscriptions (queries), each at a node."""

    names: tuple[str, ...]
    x_m: Floats  # NaN where nobody says where the nodes stand
    y_m: Floats
    graph: Graph
    roots: Numbers
    attributes: tuple[Attribute, ...]
    publisher: Numbers  # [event] the node where it is published
    values: Floats  # [event, attribute]
    subscriber: Numbers  # [subscription] the node that asks
    low: Floats  # [subscription, attribute] the closed box of values that it asks for
    high: Floats
    where: tuple[str, ...]  # [subscription] the same as text
    fails: NDArray[np.bool_]  # [node]
