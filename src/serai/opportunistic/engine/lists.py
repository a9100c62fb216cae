"""Lists: what a node tells a neighbour about itself, and what that one makes of it: DPSP's core operation, step 1."""

from serai.core.rules import rule, step
from serai.opportunistic.engine.answers import learns, writes
from serai.opportunistic.engine.state import NONE, Net
from serai.opportunistic.engine.stores import bit_of, bundle_at, end_word, first_word
from serai.opportunistic.rules import (
    BLOOM,
    EVICT_LEAST_WANTED,
    RouterRules,
    bloom_bit,
    bloom_hashes,
    bloom_size,
    link_key,
    list_bytes,
    tells_seen,
)


@rule
def write_list(net: Net, rules: RouterRules, link: int) -> int:
    """Write down what the sender tells the receiver; return its size in bytes."""
    entries = writes(rules, net, link)
    net.links[link].entries = entries
    return list_bytes(rules, entries, write_seen(net, rules, link, net.links[link].sender))


@step
def write_seen(net: Net, rules: RouterRules, link: int, sender: int) -> int:
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
def mistake_some(net: Net, rules: RouterRules, link: int, count: int) -> None:
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
def learn(net: Net, rules: RouterRules, link: int) -> None:
    """A list has arrived; what its receiver knows of its sender is kept with the link back."""
    for word in range(first_word(net), end_word(net)):
        net.link_words[link ^ 1, word].known |= net.link_words[link, word].told
    learns(rules, net, link)
    if net.medium.when_full == EVICT_LEAST_WANTED and net.links[link ^ 1].lists == 0:
        for channel in range(len(net.wants)):
            net.asked[net.links[link].receiver, channel] += net.views[link ^ 1, channel].theirs == rules.if_wanted
    net.links[link ^ 1].lists += 1
    net.links[link ^ 1].nothing = NONE
