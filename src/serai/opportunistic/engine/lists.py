"""Lists: what a node tells a neighbour about itself, and what that one makes of it: DPSP's core operation, step 1."""

from serai.core.jit import engine, step
from serai.opportunistic.dpsp import FAR, is_news, lapses_s, renewals
from serai.opportunistic.engine.state import NONE, Net
from serai.opportunistic.engine.stores import bit_of, bundle_at, end_word, first_word
from serai.opportunistic.prophet import HERE, after_encounter, aging_factor, by_way_of
from serai.opportunistic.rules import (
    BLOOM,
    DPSP,
    PROPHET,
    Rules,
    bloom_bit,
    bloom_hashes,
    bloom_size,
    is_expired,
    link_key,
    list_bytes,
    tells_seen,
)

_ENTRY = 65536  # an entry of a subscription list is one number: renewals times this, plus hops


@engine
def write_list(net: Net, rules: Rules, link: int) -> int:
    """Write down what the sender tells the receiver; return its size in bytes."""
    sender = net.links[link].sender
    if rules.protocol == DPSP:
        entries = write_subscriptions(net, rules, link, sender)
    elif rules.protocol == PROPHET:
        entries = write_predictabilities(net, rules, link, sender)
    else:
        entries = 0
        for channel in range(net.views.shape[1]):
            net.row[link, channel] = HERE if net.wants[channel, sender] > 0 else 0.0
            entries += net.wants[channel, sender] > 0
    return list_bytes(rules, entries, write_seen(net, rules, link, sender))


@step
def write_seen(net: Net, rules: Rules, link: int, sender: int) -> int:
    """Put what the sender has seen into its list; how many bundles that are."""
    count = 0
    for word in range(first_word(net), end_word(net)):
        bits = net.words[sender, word].seen & net.alive[word] if tells_seen(rules) else 0
        net.link_words[link, word].told = bits
        while bits:
            bits &= bits - 1
            count += 1
    if tells_seen(rules) and rules.seen == BLOOM:
        mistake_some(net, rules, link, count)
    return count


@step
def mistake_some(net: Net, rules: Rules, link: int, count: int) -> None:
    """Add to what a list tells those bundles that its Bloom filter cannot tell from seen ones."""
    size, hashes = bloom_size(rules.bloom_bits, count), bloom_hashes(rules.bloom_bits)
    salt = link_key(net.run[0].key, net.links[link].sender, net.links[link].receiver)
    for place in range(size):
        net.filter[place] = 0
    for word in range(first_word(net), end_word(net)):
        bits = net.link_words[link, word].told
        while bits:
            for which in range(hashes):
                net.filter[bloom_bit(salt, bundle_at(word, bits), which, size)] = 1
            bits &= bits - 1
    for word in range(first_word(net), end_word(net)):
        bits = net.alive[word] & ~net.link_words[link, word].told
        while bits:
            bundle, found = bundle_at(word, bits), True
            bits &= bits - 1
            for which in range(hashes):
                found = found and net.filter[bloom_bit(salt, bundle, which, size)] == 1
            if found:
                net.link_words[link, word].told |= bit_of(bundle)


@step
def learn(net: Net, rules: Rules, link: int) -> None:
    """A list has arrived; what its receiver knows of its sender is kept with the link back."""
    back = link ^ 1
    for word in range(first_word(net), end_word(net)):
        net.link_words[back, word].known |= net.link_words[link, word].told
    if rules.protocol == DPSP:
        learn_subscriptions(net, rules, link, back)
    elif rules.protocol == PROPHET:
        learn_predictabilities(net, rules, link, back)
    else:
        for channel in range(net.views.shape[1]):
            net.views[back, channel].theirs = net.row[link, channel]
    net.links[back].lists += 1


@step
def write_subscriptions(net: Net, rules: Rules, link: int, sender: int) -> int:
    """Put the subscriptions that the sender knows of, its own among them, into its list; how many that are."""
    now_s, count = net.run[0].now_s, 0
    net.links[link].entries = net.run[0].began
    for s in range(net.run[0].began):
        if net.subscriptions[s].node == sender:
            renewed = renewals(rules, net.subscriptions[s].from_s, now_s) if now_s < net.subscriptions[s].to_s else NONE
            hops = 0
        else:
            renewed, hops = net.entries[sender, s].renewed, net.entries[sender, s].hops
            if renewed != NONE and is_expired(now_s, lapses_s(rules, net.subscriptions[s].from_s, renewed)):
                renewed = NONE
        net.row[link, s] = NONE if renewed == NONE else renewed * _ENTRY + hops
        count += renewed != NONE
    return count


@step
def learn_subscriptions(net: Net, rules: Rules, link: int, back: int) -> None:
    """Merge the list's entries into the receiver's own; note each channel's hop counts, there and here.

    The receiver's own subscriptions do not count: whatever it has, it has already got.
    """
    node, now_s = net.links[link].receiver, net.run[0].now_s
    for channel in range(net.views.shape[1]):
        net.views[back, channel].theirs = net.views[back, channel].mine = FAR
        net.views[back, channel].popularity = 0.0
    for s in range(net.run[0].began):
        if net.subscriptions[s].node == node:
            continue
        channel = net.subscriptions[s].channel
        if s < net.links[link].entries and net.row[link, s] >= 0:
            renewed, hops = int(net.row[link, s]) // _ENTRY, int(net.row[link, s]) % _ENTRY
            if not is_expired(now_s, lapses_s(rules, net.subscriptions[s].from_s, renewed)):
                net.views[back, channel].theirs = min(net.views[back, channel].theirs, hops)
                if is_news(renewed, hops, net.entries[node, s].renewed, net.entries[node, s].hops):
                    net.entries[node, s].renewed, net.entries[node, s].hops = renewed, hops + 1
        known = net.entries[node, s].renewed
        if known != NONE and not is_expired(now_s, lapses_s(rules, net.subscriptions[s].from_s, known)):
            net.views[back, channel].mine = min(net.views[back, channel].mine, net.entries[node, s].hops)
            net.views[back, channel].popularity += 1.0


@step
def write_predictabilities(net: Net, rules: Rules, link: int, sender: int) -> int:
    """Put the sender's predictabilities, of nodes and then of channels, into its list; how many are above 0."""
    age(net, rules, sender)
    nodes, count = len(net.nodes), 0
    for e in range(net.predictability.shape[1]):
        here = e >= nodes and net.wants[e - nodes, sender] > 0
        net.row[link, e] = HERE if here else net.predictability[sender, e]
        count += net.row[link, e] > 0.0
    return count


@step
def learn_predictabilities(net: Net, rules: Rules, link: int, back: int) -> None:
    """The receiver has met the sender, and hears whom that one meets (RFC 6693 2.1)."""
    node, other, nodes = net.links[link].receiver, net.links[link].sender, len(net.nodes)
    age(net, rules, node)
    mine, first = net.predictability[node], net.links[back].lists == 0
    if first:
        mine[other] = after_encounter(rules, mine[other])
    for e in range(net.predictability.shape[1]):
        told = net.row[link, e]
        if e in (node, other) or told == 0.0:
            continue
        if e < nodes or told < HERE:
            mine[e] = by_way_of(rules, mine[e], mine[other], told)
        elif first:
            mine[e] = after_encounter(rules, mine[e])
    for channel in range(net.views.shape[1]):
        net.views[back, channel].theirs = net.row[link, nodes + channel]
        net.views[back, channel].mine = mine[nodes + channel]


@step
def age(net: Net, rules: Rules, node: int) -> None:
    """Age the node's predictabilities up to now."""
    who, now_s = net.nodes[node], net.run[0].now_s
    if now_s > who.aged_s:
        factor = aging_factor(rules, now_s - who.aged_s)
        for e in range(net.predictability.shape[1]):
            net.predictability[node, e] *= factor
        who.aged_s = now_s
