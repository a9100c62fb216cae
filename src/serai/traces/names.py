"""The names of nodes: their natural order, in which n2 comes before n10, and how files call them."""

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from serai.core.errors import BadInput, did_you_mean
from serai.world.grid import Numbers


def natural_order(book: Iterable[str]) -> tuple[tuple[str, ...], Numbers]:
    """The names in natural order, and for each name as given its place in that order."""
    given = list(book)
    order = sorted(range(len(given)), key=lambda place: natural_key(given[place]))
    number = np.empty(len(given), np.int32)
    number[order] = np.arange(len(given), dtype=np.int32)
    return tuple(given[place] for place in order), number


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """What to sort a name by: runs of digits count as the number that they are."""
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), part) if place % 2 else (1, 0, part) for place, part in enumerate(parts) if part]


class NodeNames:
    """The nodes of a network by name; another file may call them n94 where the trace says 94, or the reverse."""

    def __init__(self, names: Iterable[str], growing: bool = False) -> None:
        self.names = list(names)
        self._growing = growing  # whether a name that is new is a node that meets nobody
        self._number = {name: number for number, name in enumerate(self.names)}
        bare = [_bare(name) for name in self.names]
        often = Counter(bare)
        self._by_bare = {word: number for number, word in enumerate(bare) if often[word] == 1}

    def number(self, name: str, file: object) -> int:
        """The number of the node that `file` calls by this name."""
        if name in self._number:
            return self._number[name]
        found = self._by_bare.get(_bare(name))
        if found is None:
            if not self._growing:
                raise BadInput(f'{file}: no node is called "{name}"; {did_you_mean(name, self.names)}')
            found = len(self.names)
            self.names.append(name)
        self._number[name] = found
        return found


def _bare(name: str) -> str:
    """The name without the letters before its number: n94 is 94."""
    return re.sub(r"^[^0-9]+(?=[0-9]+$)", "", name)
