"""The line of nodes that may have something to do at an instant, in an order drawn for that instant."""

from serai.core.order import key_in_slot
from serai.core.rules import step
from serai.opportunistic.engine.state import NONE, Net


@step
def stir(net: Net, node: int) -> None:
    """Put a node in line for a turn at this instant."""
    who = net.nodes[node]
    if who.stirred or (who.first == NONE and not is_time_to_look(net, node)):
        return
    who.stirred = 1
    run = net.run[0]
    net.line[run.line] = (key_in_slot(net.run[0].key, node) << 31) | int(node)
    run.line += 1


@step
def is_time_to_look(net: Net, node: int) -> bool:
    """Whether the node should look for bundles that have too little of their lifetime left."""
    unit_s = net.medium.lifetime_unit_s
    return bool(unit_s > 0 and net.run[0].now_s - net.nodes[node].looked_s >= unit_s)


@step
def stir_neighbours(net: Net, node: int) -> None:
    """Put all whom a node is in contact with in line."""
    link = net.nodes[node].first
    while link != NONE:
        stir(net, net.links[link].receiver)
        link = net.links[link].next


@step
def stir_all(net: Net) -> None:
    """Put everybody in line who is in contact with somebody, or should look after its store."""
    for node in range(len(net.nodes)):
        stir(net, node)


@step
def sort_line(net: Net) -> None:
    """Sort the line by the nodes' keys: Shell's method, in place."""
    line, count = net.line, net.run[0].line
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, count):
            entry, place = line[i], i
            while place >= gap and line[place - gap] > entry:
                line[place] = line[place - gap]
                place -= gap
            line[place] = entry
        gap //= 3


@step
def node_in_line(net: Net, place: int) -> int:
    """The node at a place in line."""
    return int(net.line[place] & 0x7FFFFFFF)
