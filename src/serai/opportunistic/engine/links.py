"""Links: opened in pairs when a contact begins, in a heap by when something is due on them."""

from serai.core.rules import step
from serai.opportunistic.engine.state import IDLE, NONE, Net


@step
def open_pair(net: Net, contact: int) -> int:
    """Open both links of a contact; return the one from a to b."""
    run = net.run[0]
    run.free -= 1
    link = net.free[run.free]
    net.contacts[contact].link = link
    one, other = net.contacts[contact].a, net.contacts[contact].b
    for side in range(2):
        fresh = net.links[link + side]
        fresh.sender, fresh.receiver = (one, other) if side == 0 else (other, one)
        fresh.carries, fresh.heap, fresh.lists, fresh.nothing = NONE, NONE, 0, NONE
        fresh.due_s = net.run[0].now_s
        append(net, link + side)
    return int(link)


@step
def append(net: Net, link: int) -> None:
    """Put a link behind the others of its sender."""
    fresh, node = net.links[link], net.nodes[net.links[link].sender]
    fresh.previous, fresh.next = node.last, NONE
    if node.last == NONE:
        node.first = link
    else:
        net.links[node.last].next = link
    node.last = link


@step
def close_link(net: Net, link: int) -> None:
    """Take a link from among those of its sender, and from the heap."""
    gone, node = net.links[link], net.nodes[net.links[link].sender]
    if gone.previous == NONE:
        node.first = gone.next
    else:
        net.links[gone.previous].next = gone.next
    if gone.next == NONE:
        node.last = gone.previous
    else:
        net.links[gone.next].previous = gone.previous
    schedule(net, link, IDLE)


# ---- links on which there is nothing to offer, until the sender gains something or learns something


@step
def has_nothing(net: Net, link: int) -> bool:
    """Whether it is known that there is nothing to offer on the link."""
    return bool(net.links[link].nothing == net.nodes[net.links[link].sender].gained)


@step
def note_nothing(net: Net, link: int) -> None:
    """There is nothing to offer on the link."""
    net.links[link].nothing = net.nodes[net.links[link].sender].gained


@step
def look_again(net: Net, node: int) -> None:
    """What the node would take has changed: whoever is in contact with it must look again."""
    link = net.nodes[node].first
    while link != NONE:
        net.links[link ^ 1].nothing = NONE
        link = net.links[link].next


# ---- the heap


@step
def schedule(net: Net, link: int, when_s: float) -> None:
    """Something is due on the link at `when_s`, or (IDLE) nothing is."""
    at, run = net.links[link], net.run[0]
    place = at.heap
    at.when_s = when_s
    if when_s == IDLE:
        if place == NONE:
            return
        run.links -= 1
        at.heap = NONE
        if place == run.links:
            return
        link = net.heap[run.links]
    elif place == NONE:
        place = run.links
        run.links += 1
    settle(net, link, place)


@step
def settle(net: Net, link: int, place: int) -> None:
    """Put a link into the heap at the empty `place`, or above or below it, where it belongs."""
    heap = net.heap
    while place > 0 and is_before(net, link, heap[(place - 1) >> 1]):
        heap[place] = heap[(place - 1) >> 1]
        net.links[heap[place]].heap = place
        place = (place - 1) >> 1
    count = net.run[0].links
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and is_before(net, heap[child + 1], heap[child]):
            child += 1
        if not is_before(net, heap[child], link):
            break
        heap[place] = heap[child]
        net.links[heap[place]].heap = place
        place = child
    heap[place] = link
    net.links[link].heap = place


@step
def is_before(net: Net, link: int, other: int) -> bool:
    """Whether a link's turn comes before another's: by time, then by sender and receiver."""
    one, two = net.links[link], net.links[other]
    if one.when_s != two.when_s:
        return bool(one.when_s < two.when_s)
    if one.sender != two.sender:
        return bool(one.sender < two.sender)
    return bool(one.receiver < two.receiver)
