"""Who hears whom in a static network: the radio-range graph of positions, or the links of a file.

A graph is kept as one list of neighbours per node, ascending, all lists in one array.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.core.jit import kernel, rule
from serai.world.components import connected_components
from serai.world.files import bad_file, csv_rows, read_text
from serai.world.neighbors import neighbors_in_range

Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]  # of nodes, trees, hops
Places = NDArray[np.int64]  # in an array of links, which may have more than 2^31

FAR = 2**31 - 1
"""The distance to a node that cannot be reached."""


class Graph(NamedTuple):
    """The neighbours of node x are `neighbors[start[x] : start[x + 1]]`, ascending."""

    start: Places
    neighbors: Numbers

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.start) - 1

    def neighbors_of(self, node: int) -> Numbers:
        """Who hears the node."""
        return self.neighbors[self.start[node] : self.start[node + 1]]


# ---- from positions


def radio_graph(x_m: Floats, y_m: Floats, range_m: float) -> Graph:
    """The graph in which two nodes are neighbours if they stand at most `range_m` apart."""
    return Graph(*neighbors_in_range(x_m, y_m, range_m))


def _starts(counts: NDArray[np.int64]) -> Places:
    """Where each group begins when groups of these sizes stand one after the other."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


# ---- from links


def graph_of_links(nodes: int, one: Sequence[int] | Numbers, other: Sequence[int] | Numbers) -> Graph:
    """The graph of these links, each given once and in either direction."""
    ends = np.concatenate([np.asarray(one, np.int32), np.asarray(other, np.int32)])
    far_ends = np.concatenate([np.asarray(other, np.int32), np.asarray(one, np.int32)])
    order = np.lexsort((far_ends, ends))
    return Graph(_starts(np.bincount(ends, minlength=nodes)), far_ends[order])


def read_links(path: Path) -> tuple[tuple[str, ...], Graph]:
    """The names and the graph of a CSV file with columns `from` and `to`, one link a line.

    Nodes are numbered in the order in which the file first names them.
    """
    path = Path(path)
    numbers: dict[str, int] = {}
    links: dict[tuple[int, int], int] = {}
    problems: list[str] = []
    for line, one, other in _link_rows(path):
        ends = [numbers.setdefault(name, len(numbers)) for name in (one, other) if name]
        if len(ends) < 2:
            problems.append(f"line {line}: a link needs a node at both ends")
        elif ends[0] == ends[1]:
            problems.append(f'line {line}: "{one}" is linked to itself')
        elif (earlier := links.setdefault((min(ends), max(ends)), line)) != line:
            problems.append(f'line {line}: the link "{one}" - "{other}" stands already in line {earlier}')
    if not links and not problems:
        problems.append("no links below the header")
    if problems:
        raise bad_file(path, problems)
    one_end, other_end = zip(*links, strict=True)
    return tuple(numbers), graph_of_links(len(numbers), one_end, other_end)


def _link_rows(path: Path) -> list[tuple[int, str, str]]:
    """Line, `from` and `to` of each row that is not empty."""
    rows = [(line, [cell.strip() for cell in row]) for line, row in csv_rows(path, read_text(path))]
    header = [name.lower() for name in rows[0][1]] if rows else []
    if missing := [name for name in ("from", "to") if header.count(name) != 1]:
        said = f"the header has: {', '.join(rows[0][1])}" if rows else "the file is empty"
        raise BadInput(f"{path}: missing column {', '.join(missing)} (one link a line: from,to); {said}")
    uneven = [
        f"line {line}: {len(row)} values, but the header has {len(header)}"
        for line, row in rows[1:]
        if len(row) != len(header)
    ]
    if uneven:
        raise bad_file(path, uneven)
    one, other = header.index("from"), header.index("to")
    return [(line, row[one], row[other]) for line, row in rows[1:]]


# ---- connectivity and distance


def is_connected(graph: Graph) -> bool:
    """Whether every node can reach every other."""
    return not connected_components(graph.start, graph.neighbors).any()


def largest_component(graph: Graph) -> NDArray[np.int64]:
    """The nodes of the largest component, ascending (of several: the one with the lowest node)."""
    of_node = connected_components(graph.start, graph.neighbors)
    return np.flatnonzero(of_node == np.bincount(of_node).argmax())


def subgraph(graph: Graph, kept: NDArray[np.int64]) -> Graph:
    """The graph of some of the nodes (ascending), numbered anew in that order."""
    number = np.full(graph.nodes, -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    owner = np.repeat(number, np.diff(graph.start))
    other = number[graph.neighbors]
    inside = (owner >= 0) & (other >= 0)
    return Graph(_starts(np.bincount(owner[inside], minlength=len(kept))), other[inside])


def check_connected(graph: Graph, names: Sequence[str], source: str) -> None:
    """Refuse a network in parts, naming them."""
    of_node = connected_components(graph.start, graph.neighbors)
    count = int(of_node.max(initial=-1)) + 1
    if count <= 1:
        return
    sizes = np.bincount(of_node)
    told = [_described(np.flatnonzero(of_node == part), names) for part in np.argsort(-sizes, kind="stable")[:5]]
    more = f"; and {count - 5} more" if count > 5 else ""
    raise BadInput(
        f"{source}: the network is in {count} parts, but every node must be able to reach every other: "
        f"{'; '.join(told)}{more}. Use only the largest with --largest (nodes.largest = true), "
        "or a longer radio range, or more nodes"
    )


def _described(members: NDArray[np.int64], names: Sequence[str]) -> str:
    shown = ", ".join(names[member] for member in members[:3])
    nodes = "1 node" if len(members) == 1 else f"{len(members)} nodes"
    return f"{nodes} ({shown}{', ...' if len(members) > 3 else ''})"


@rule
def spread(graph: Graph, sources: Numbers, hops: Numbers, waiting: Numbers) -> None:
    """Fill in how many hops each node is away from the nearest source (FAR: cannot be reached)."""
    hops[:] = FAR
    end = 0
    for source in sources:
        if hops[source] == FAR:
            hops[source] = 0
            waiting[end] = source
            end += 1
    first = 0
    while first < end:
        node = waiting[first]
        first += 1
        for place in range(graph.start[node], graph.start[node + 1]):
            other = graph.neighbors[place]
            if hops[other] == FAR:
                hops[other] = hops[node] + 1
                waiting[end] = other
                end += 1


@kernel
def hops_from(graph: Graph, sources: Numbers) -> Numbers:
    """How many hops each node is away from the nearest of the sources."""
    nodes = len(graph.start) - 1
    hops, waiting = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    spread(graph, sources, hops, waiting)
    return hops
