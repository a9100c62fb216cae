"""Which bundle goes to a neighbour next, and what becomes of one that arrives: DPSP's core operation, steps 2 to 5."""

from serai.core.rules import step
from serai.opportunistic import direct, prophet, spray
from serai.opportunistic.dpsp import Standing, passes, verdict
from serai.opportunistic.engine.state import BITS, DUPLICATE, EVICTED, LATE, NONE, REFUSED, RELAYED, Net
from serai.opportunistic.engine.stores import (
    bit_of,
    bundle_at,
    end_word,
    first_word,
    note_delivery,
    note_transfer,
    put,
    take_out,
)
from serai.opportunistic.prophet import HERE
from serai.opportunistic.rules import (
    DIRECT,
    DPSP,
    EVICT_OLDEST,
    LIVE,
    PROPHET,
    REFUSE,
    SPRAY,
    Rules,
    is_expired,
    leaves_before,
    link_key,
    tie_rank,
    transfer_s,
)

_MOST_HOPS = 255  # a byte holds a copy's hop count


@step
def choose(net: Net, rules: Rules, link: int, wanted_only: bool) -> int:
    """The bundle that the sender sends next, or NONE: the best of those it may offer.

    A vote of priorities may go round in a circle, so the way to the best is part of the rule: bundles are looked at in
    order of their creation, and each that beats the best so far takes its place.
    """
    sender, receiver = net.links[link].sender, net.links[link].receiver
    key = link_key(net.run[0].key, sender, receiver)
    best, best_wanted, best_rank = NONE, False, 0
    for word in range(first_word(net), end_word(net)):
        bits = net.words[sender, word].store & ~net.link_words[link, word].known
        if rules.seen == LIVE and rules.duplicate_filter:
            bits &= ~net.words[receiver, word].seen
        if wanted_only and not rules.lists:
            bits &= net.words[receiver, word].wanted
        while bits:
            bundle = bundle_at(word, bits)
            bits &= bits - 1
            wanted = is_wanted(net, rules, link, bundle)
            if (wanted_only and not wanted) or not is_offered(net, rules, link, bundle, wanted):
                continue
            rank = tie_rank(rules.order, key, bundle)
            if best != NONE:
                if rules.wanted_first and wanted != best_wanted:
                    if best_wanted:
                        continue
                else:
                    says = compare(net, rules, link, bundle, best)
                    if says < 0 or (says == 0 and rank >= best_rank):
                        continue
            best, best_wanted, best_rank = bundle, wanted, rank
    return best


@step
def is_wanted(net: Net, rules: Rules, link: int, bundle: int) -> bool:
    """Whether the receiver wants the bundle, as far as the sender knows."""
    channel = net.bundles[bundle].channel
    if not rules.lists:
        return bool(net.wants[channel, net.links[link].receiver] > 0)
    return bool(net.views[link, channel].theirs == (0.0 if rules.protocol == DPSP else HERE))


@step
def is_offered(net: Net, rules: Rules, link: int, bundle: int, wanted: bool) -> bool:
    """Whether the sender offers the bundle at all."""
    at, channel = net.links[link], net.bundles[bundle].channel
    if not wanted and not net.nodes[at.receiver].carries:
        return False
    if rules.skip_late:
        ends_s = net.run[0].now_s + transfer_s(net.bundles[bundle].size_bytes, net.medium.rate_bps)
        if is_expired(ends_s, net.bundles[bundle].expires_s):
            return False
    if rules.protocol == DIRECT:
        return direct.offers(wanted)
    if rules.protocol == SPRAY:
        return spray.offers(net.copies[at.sender, bundle], wanted)
    if rules.protocol == PROPHET:
        return prophet.offers(wanted, net.views[link, channel].theirs, net.views[link, channel].mine)
    if rules.protocol == DPSP:
        return passes(rules, net.views[link, channel].theirs, net.views[link, channel].mine)
    return True


@step
def compare(net: Net, rules: Rules, link: int, bundle: int, other: int) -> int:
    """Above 0 if the protocol's priorities send the bundle before the other, below 0 if after."""
    if rules.protocol != DPSP:
        return 0
    return verdict(rules, standing(net, link, bundle), standing(net, link, other))


@step
def standing(net: Net, link: int, bundle: int) -> Standing:
    """What priorities look at."""
    channel = net.bundles[bundle].channel
    return Standing(net.bundles[bundle].created_s, net.views[link, channel].theirs, net.views[link, channel].popularity)


# ---- bundles that arrive


@step
def arrive(net: Net, rules: Rules, link: int) -> None:
    """A bundle has arrived: is it new and alive, is it wanted, is there room?"""
    at = net.links[link]
    bundle, sender, receiver = at.carries, at.sender, at.receiver
    word, bit = bundle // BITS, bit_of(bundle)
    net.link_words[link, word].known |= bit  # not again in this contact, nor back
    net.link_words[link ^ 1, word].known |= bit
    outcome = RELAYED
    if is_expired(net.run[0].now_s, net.bundles[bundle].expires_s):
        outcome = LATE
    elif net.words[receiver, word].seen & bit:
        outcome = DUPLICATE
    else:
        wanted = net.wants[net.bundles[bundle].channel, receiver] > 0
        keeps = not (wanted and rules.consume)
        stays = keeps and make_room(net, receiver, net.bundles[bundle].size_bytes)
        if wanted or stays:
            net.words[receiver, word].seen |= bit
            net.nodes[receiver].missing -= wanted
            net.hops[receiver, bundle] = min(net.hops[sender, bundle] + 1, _MOST_HOPS)
            if rules.protocol == SPRAY:
                net.copies[receiver, bundle] = at.gives
        else:
            outcome = REFUSED
        if stays:
            put(net, receiver, bundle)
        if wanted:
            note_delivery(net, receiver, bundle)
    if outcome != RELAYED:
        return_copies(net, link)
    note_transfer(net, link, at.bytes, outcome)


@step
def reserve_copies(net: Net, rules: Rules, link: int) -> None:
    """In spray-and-wait a bundle is sent with some of the sender's copies; until it has arrived nobody has them."""
    at = net.links[link]
    copies = net.copies[at.sender, at.carries]
    at.gives = spray.given(rules, copies)
    at.reserved = copies - spray.left(copies, at.gives)
    net.copies[at.sender, at.carries] = copies - at.reserved


@step
def return_copies(net: Net, link: int) -> None:
    """What was reserved for a transfer that came to nothing is the sender's again."""
    at = net.links[link]
    if at.reserved > 0:
        net.copies[at.sender, at.carries] += at.reserved


@step
def make_room(net: Net, node: int, size_bytes: int) -> bool:
    """Whether a bundle of this size fits into the store, after others have left if need be."""
    capacity = net.medium.capacity_bytes
    if size_bytes > capacity:
        return False
    while net.nodes[node].used_bytes + size_bytes > capacity:
        victim = NONE if net.medium.when_full == REFUSE else first_to_leave(net, node)
        if victim == NONE:
            return False
        take_out(net, node, victim, EVICTED)
    return True


@step
def first_to_leave(net: Net, node: int) -> int:
    """The bundle that leaves a full store first, or NONE; what is being sent stays."""
    victim = NONE
    for word in range(first_word(net), end_word(net)):
        bits = net.words[node, word].store
        while bits:
            bundle = bundle_at(word, bits)
            bits &= bits - 1
            if is_being_sent(net, node, bundle):
                continue
            if victim == NONE or leaves_before(
                net.medium.when_full, net.bundles[bundle].expires_s, net.bundles[victim].expires_s
            ):
                victim = bundle
                if net.medium.when_full == EVICT_OLDEST:
                    return victim
    return victim


@step
def is_being_sent(net: Net, node: int, bundle: int) -> bool:
    """Whether a node is sending the bundle to somebody."""
    link = net.nodes[node].first
    while link != NONE:
        if net.links[link].carries == bundle:
            return True
        link = net.links[link].next
    return False
