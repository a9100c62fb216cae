"""What the nodes of an overlay have agreed on before they begin; and so, what events and queries look like to them."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from serai.core.content import Attribute
from serai.core.errors import BadInput
from serai.overlay.broker.messages import Event, Query
from serai.overlay.tinymq import (
    MAPPINGS,
    MOST_BITS,
    Flags,
    Floats,
    OverlaySettings,
    cell_box,
    cells_of,
    rendezvous_keys_of,
)


@dataclass(frozen=True)
class NetworkConfiguration:
    """What all nodes of a network have agreed on beforehand."""

    roots: tuple[int, ...]
    attributes: tuple[Attribute, ...]
    settings: OverlaySettings
    lease_s: float = 3600.0
    """A subquery of a query that has not been renewed for so long is forgotten."""
    renewal_s: float = 1200.0
    """A subscriber sends its queries anew after so long."""

    def __post_init__(self) -> None:
        if self.bits > MOST_BITS:
            each = self.settings.attribute_bits
            raise BadInput(
                f"attribute_bits: {len(self.attributes)} attributes of {each} bits make rendezvous keys of {self.bits}"
                f" bits; at most {MOST_BITS}, so at most {MOST_BITS // len(self.attributes)} bits an attribute"
            )

    @property
    def bits(self) -> int:
        """How long a rendezvous key is."""
        return len(self.attributes) * self.settings.attribute_bits

    @property
    def mapping(self) -> int:
        """How the attributes' bits make a rendezvous key."""
        return MAPPINGS.index(self.settings.mapping)

    def event(self, name: Hashable, values: Sequence[float]) -> Event:
        """The event with these values."""
        row = np.asarray(values, np.float64)
        cells = cells_of(row, *self._domains(), self.settings.attribute_bits)
        return Event(name, row, int(rendezvous_keys_of(cells, self.mapping, self.settings.attribute_bits)))

    def query(self, name: Hashable, low: Sequence[float], high: Sequence[float]) -> Query:
        """The query for events whose values lie in low .. high, bounds included."""
        least, most = np.asarray(low, np.float64), np.asarray(high, np.float64)
        first, last = cell_box(least, most, *self._domains(), self.settings.attribute_bits)
        for number in np.flatnonzero(first > last):
            domain = self.attributes[number]
            raise BadInput(
                f"query {name!r}: {least[number]:g} .. {most[number]:g} holds no value of {domain.name},"
                f" which lies in {domain.low:g} .. {domain.high:g}"
            )
        return Query(name, least, most, first, last)

    def _domains(self) -> tuple[Floats, Floats, Flags]:
        low, high = ([getattr(attribute, end) for attribute in self.attributes] for end in ("low", "high"))
        whole = [attribute.kind == "integer" for attribute in self.attributes]
        return np.array(low, np.float64), np.array(high, np.float64), np.array(whole, np.bool_)
