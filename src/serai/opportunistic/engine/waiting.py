"""The line of nodes that may have something to do at an instant, in an order drawn for that instant."""

from serai.core.order import mix
from serai.core.rules import step
from serai.opportunistic.engine.state import NONE, Net

_FEW = 8  # entries that are sorted as they stand


@step
def stir(net: Net, node: int) -> None:
    """Put a node in line for a turn at this instant."""
    who = net.nodes[node]
    if who.stirred or (who.first == NONE and not is_time_to_look(net, node)):
        return
    who.stirred = 1
    run = net.run[0]
    net.line[run.line] = (mix(net.run[0].key ^ who.mixed) << 31) | int(node)
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
    """Sort the line by the nodes' keys, which are spread evenly: each entry goes near its place, then to it."""
    count = net.run[0].line
    if count > _FEW:
        spread(net, count)
    line = net.line
    for i in range(1, count):
        entry, place = line[i], i
        while place > 0 and line[place - 1] > entry:
            line[place] = line[place - 1]
            place -= 1
        line[place] = entry


@step
def spread(net: Net, count: int) -> None:
    """Put the entries into as many buckets as there are entries: those of a lower one are lower."""
    line, sorting, places = net.line, net.sorting, net.places
    for bucket in range(count + 1):
        places[bucket] = 0
    for i in range(count):
        sorting[i] = line[i]
        places[bucket_of(line[i], count) + 1] += 1
    for bucket in range(count):
        places[bucket + 1] += places[bucket]
    for i in range(count):
        bucket = bucket_of(sorting[i], count)
        line[places[bucket]] = sorting[i]
        places[bucket] += 1


@step
def bucket_of(entry: int, count: int) -> int:
    """The bucket of an entry: the share of all keys that are below its key."""
    return ((entry >> 31) * count) >> 32


@step
def node_in_line(net: Net, place: int) -> int:
    """The node at a place in line."""
    return int(net.line[place] & 0x7FFFFFFF)
