"""TinyMQ III.C, for many at once: the rendezvous keys of events, and the boxes of cells that queries touch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.content import Attribute
from serai.core.jit import kernel
from serai.overlay.engine.graph import Floats
from serai.overlay.tinymq import cell_of, cells_touched, rendezvous_key_of

RendezvousKeys = NDArray[np.int64]
Cells = NDArray[np.int64]


class Domains(NamedTuple):
    """The domain of each attribute, and whether it is an integer."""

    low: Floats
    high: Floats
    whole: NDArray[np.bool_]


def domains_of(attributes: Sequence[Attribute]) -> Domains:
    """The domains of the attributes."""
    low, high = ([getattr(attribute, end) for attribute in attributes] for end in ("low", "high"))
    whole = [attribute.kind == "integer" for attribute in attributes]
    return Domains(np.array(low, np.float64), np.array(high, np.float64), np.array(whole, np.bool_))


@kernel
def rendezvous_keys_of(values: Floats, domains: Domains, mapping: int, attribute_bits: int) -> RendezvousKeys:
    """The rendezvous key of each event [event, attribute]."""
    rendezvous_keys, cells = np.empty(len(values), np.int64), np.empty(values.shape[1], np.int64)
    for event in range(len(values)):
        for k in range(len(cells)):
            cells[k] = cell_of(values[event, k], domains.low[k], domains.high[k], domains.whole[k], attribute_bits)
        rendezvous_keys[event] = rendezvous_key_of(cells, mapping, attribute_bits)
    return rendezvous_keys


@kernel
def cell_boxes(low: Floats, high: Floats, domains: Domains, attribute_bits: int) -> tuple[Cells, Cells]:
    """The first and last cell of each attribute that each query's box [query, attribute] touches."""
    first, last = np.empty(low.shape, np.int64), np.empty(low.shape, np.int64)
    for query in range(len(low)):
        for k in range(low.shape[1]):
            first[query, k], last[query, k] = cells_touched(
                low[query, k], high[query, k], domains.low[k], domains.high[k], domains.whole[k], attribute_bits
            )
    return first, last
