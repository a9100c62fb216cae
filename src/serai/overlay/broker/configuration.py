"""What the nodes of an overlay have agreed on before they begin; and so, what events and queries look like to them."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from serai.core.content import Attribute
from serai.core.errors import BadInput
from serai.overlay.broker.messages import Event, Query
from serai.overlay.tinymq import MAPPINGS, MOST_BITS, OverlaySettings, cell_of, cells_touched, rendezvous_key_of


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
    mends: bool = True
    """Whether a query of which a part was lost is sent anew at the next tick already, and a part that had nowhere to go
    is sent on as soon as it has. Without, both wait for the renewal."""

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
        row = tuple(map(float, values))
        bits = self.settings.attribute_bits
        cells = [cell_of(value, *domain, bits) for value, domain in zip(row, self._domains(), strict=True)]
        return Event(name, row, rendezvous_key_of(cells, self.mapping, bits))

    def query(self, name: Hashable, low: Sequence[float], high: Sequence[float]) -> Query:
        """The query for events whose values lie in low .. high, bounds included."""
        bits, first, last = self.settings.attribute_bits, [], []
        for least, most, attribute, domain in zip(low, high, self.attributes, self._domains(), strict=True):
            ends = cells_touched(float(least), float(most), *domain, bits)
            if ends[0] > ends[1]:
                raise BadInput(
                    f"query {name!r}: {least:g} .. {most:g} holds no value of {attribute.name},"
                    f" which lies in {attribute.low:g} .. {attribute.high:g}"
                )
            first.append(ends[0])
            last.append(ends[1])
        return Query(name, tuple(map(float, low)), tuple(map(float, high)), tuple(first), tuple(last))

    def _domains(self) -> list[tuple[float, float, bool]]:
        """Low, high and whether it is an integer, of each attribute."""
        return [(float(each.low), float(each.high), each.kind == "integer") for each in self.attributes]
