"""Stores: words of bits, bytes in use, and what is written down when a copy comes or goes."""

from serai.core.rules import lowest_bit, step
from serai.opportunistic.engine.state import BITS, RELAYED, UNFINISHED, Net
from serai.opportunistic.rules import EVICT_FIRST_IN, EVICT_MOST_COPIED


@step
def bit_of(bundle: int) -> int:
    """The bit of a bundle in its word."""
    return 1 << (int(bundle) % BITS)  # uncompiled, a bundle from a record is one of numpy's 32 bits, and so is its bit


@step
def first_word(net: Net) -> int:
    """The first word that has a bundle alive."""
    return int(net.run[0].first) // BITS


@step
def end_word(net: Net) -> int:
    """The word after the last one that has a bundle born."""
    return (int(net.run[0].born) + BITS - 1) // BITS


@step
def bundle_at(word: int, bits: int) -> int:
    """The bundle of the lowest bit of a word."""
    return word * BITS + lowest_bit(bits)


@step
def use_bytes(net: Net, node: int, change: int) -> None:
    """A node's store holds so many bytes more (or less) from now on."""
    who, now_s = net.nodes[node], net.run[0].now_s
    who.stored_byte_s += who.used_bytes * (now_s - who.since_s)
    who.since_s = now_s
    who.used_bytes += change
    who.peak_bytes = max(who.peak_bytes, who.used_bytes)
    net.run[0].stored += 1 if change > 0 else -1


@step
def put(net: Net, node: int, bundle: int) -> None:
    """Store a bundle for which there is room."""
    net.words[node, bundle // BITS].store |= bit_of(bundle)
    net.nodes[node].gained += 1
    if net.medium.when_full == EVICT_FIRST_IN:
        net.came_s[node, bundle] = net.run[0].now_s
    if net.medium.when_full == EVICT_MOST_COPIED:
        net.handed_on[node, bundle] = 0
    use_bytes(net, node, net.bundles[bundle].size_bytes)


@step
def remove(net: Net, node: int, bundle: int) -> None:
    """Remove a bundle from a node's store."""
    net.words[node, bundle // BITS].store &= ~bit_of(bundle)
    use_bytes(net, node, -net.bundles[bundle].size_bytes)


@step
def take_out(net: Net, node: int, bundle: int, reason: int) -> None:
    """Remove a bundle that a node loses, and say why."""
    remove(net, node, bundle)
    note_drop(net, node, bundle, reason, True)


@step
def note_drop(net: Net, node: int, bundle: int, reason: int, held: bool) -> None:
    """Write down that a node has lost a bundle, which it held or never took in."""
    net.drops[reason] += 1
    if net.medium.full_log:
        run = net.run[0]
        row = net.drop_log[run.drops]
        row.time_s, row.bundle, row.node, row.reason = net.run[0].now_s, bundle, node, reason
        row.held, row.after = held, run.transfers
        run.drops += 1


@step
def note_delivery(net: Net, node: int, bundle: int) -> None:
    """Write down that a subscriber has got a bundle, unless it had it before or is its source."""
    word, bit = bundle // BITS, bit_of(bundle)
    if net.words[node, word].given & bit or net.bundles[bundle].source == node:
        return
    net.words[node, word].given |= bit
    run = net.run[0]
    row = net.deliveries[run.deliveries]
    row.time_s, row.bundle, row.node = net.run[0].now_s, bundle, node
    row.hops = net.hops[node, bundle]
    run.deliveries += 1


@step
def note_list(net: Net, link: int, sent: int, outcome: int) -> None:
    """Write down how the transfer of a list went, and how many bytes of it were sent."""
    run, at = net.run[0], net.links[link]
    run.control_bytes += sent
    run.lists += outcome == RELAYED
    if net.medium.full_log:
        row = net.list_log[run.listings]
        row.start_s, row.end_s, row.bytes, row.entries = at.start_s, run.now_s, sent, at.entries
        row.sender, row.receiver, row.outcome = at.sender, at.receiver, outcome
        run.listings += 1


@step
def note_transfer(net: Net, link: int, sent: int, outcome: int, stored: bool, moved: bool) -> None:
    """Write down how the transfer of a bundle on a link went, how many bytes were sent, and who has it since."""
    run, at = net.run[0], net.links[link]
    net.transfers[outcome] += 1
    run.payload_bytes += sent
    if outcome == RELAYED:
        net.bundles[at.carries].relays += 1
    elif outcome != UNFINISHED:
        run.wasted_bytes += sent
    if net.medium.full_log:
        row = net.transfer_log[run.transfers]
        row.start_s, row.end_s, row.bytes, row.bundle = at.start_s, net.run[0].now_s, sent, at.carries
        row.sender, row.receiver, row.outcome = at.sender, at.receiver, outcome
        row.stored, row.moved = stored, moved
        run.transfers += 1
