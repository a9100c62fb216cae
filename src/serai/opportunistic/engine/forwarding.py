"""Which bundle goes to a neighbour next, and what becomes of one that arrives: DPSP's core operation, steps 2 to 5."""

from serai.core.order import mix
from serai.core.rules import step
from serai.opportunistic.engine.answers import looks, offers, prefers, splits
from serai.opportunistic.engine.links import look_again, note_nothing
from serai.opportunistic.engine.state import BITS, DUPLICATE, EVICTED, LATE, NONE, REFUSED, RELAYED, Net
from serai.opportunistic.engine.stores import (
    bit_of,
    bundle_at,
    end_word,
    first_word,
    note_delivery,
    note_transfer,
    put,
    remove,
    take_out,
)
from serai.opportunistic.engine.waiting import stir_neighbours
from serai.opportunistic.rules import (
    EVICT_FIRST_IN,
    EVICT_LEAST_WANTED,
    EVICT_MOST_COPIED,
    EVICT_OLDEST,
    LIVE,
    RANDOM,
    REFUSE,
    Kept,
    Offer,
    RouterRules,
    has_unit_left,
    is_expired,
    leaves_before,
    tie_rank,
    transfer_s,
)

_MOST_HOPS = 255  # a byte holds a copy's hop count


@step
def choose(net: Net, rules: RouterRules, link: int, wanted_only: bool) -> int:
    """The bundle that the sender sends next, or NONE: the best of those it may offer.

    A vote of priorities may go round in a circle, so the way to the best is part of the rule: bundles are looked at in
    order of their creation, and each that beats the best so far takes its place.
    """
    sender, receiver = net.links[link].sender, net.links[link].receiver
    best, best_rank, key, left = NONE, (0.0, 0), NONE, 0
    best_offer = Offer(False, 0, 0.0, 0.0, 0.0, 0.0)
    for word in range(first_word(net), end_word(net)):
        bits = net.words[sender, word].store & ~net.link_words[link, word].known
        if rules.seen == LIVE and rules.leaves_out_seen:
            bits &= ~net.words[receiver, word].seen
        left |= bits
        if wanted_only and not rules.lists:
            bits &= net.words[receiver, word].wanted
        if bits and key == NONE:
            key = key_on(net, sender, receiver)
        while bits:
            bundle = bundle_at(word, bits)
            bits &= bits - 1
            offer = offer_of(net, rules, link, bundle)
            if (wanted_only and not offer.wanted) or not is_offered(net, rules, link, bundle, offer):
                continue
            rank = rank_of(net, rules, key, bundle)
            if best == NONE or goes_before(rules, offer, best_offer, rank < best_rank):
                best, best_offer, best_rank = bundle, offer, rank
    if best == NONE and not (wanted_only and left):
        note_nothing(net, link)
    return best


@step
def key_on(net: Net, sender: int, receiver: int) -> int:
    """`link_key`, by what was mixed before."""
    return mix(mix(net.run[0].key ^ net.nodes[sender].mixed) ^ net.nodes[receiver].mixed)


@step
def rank_of(net: Net, rules: RouterRules, key_of_link: int, bundle: int) -> tuple[float, int]:
    """`tie_rank`, by what was mixed before."""
    row = net.bundles[bundle]
    if rules.order == RANDOM:
        return 0.0, mix(key_of_link ^ row.mixed)
    return tie_rank(rules.order, key_of_link, bundle, row.size_bytes, row.expires_s)


@step
def goes_before(rules: RouterRules, offer: Offer, best: Offer, if_equal: bool) -> bool:
    """Whether a bundle goes before the best so far."""
    if rules.wanted_first and offer.wanted != best.wanted:
        return offer.wanted
    says = prefers(rules, offer, best)
    return bool(says > 0 or (says == 0 and if_equal))


@step
def offer_of(net: Net, rules: RouterRules, link: int, bundle: int) -> Offer:
    """What rules look at: whether the receiver wants the bundle, as far as the sender knows, and what lists said."""
    channel, created_s = net.bundles[bundle].channel, net.bundles[bundle].created_s
    copies = net.copies[net.links[link].sender, bundle] if rules.copies > 0 else 0
    if not rules.lists:
        wanted = net.words[net.links[link].receiver, bundle // BITS].wanted & bit_of(bundle) != 0
        theirs, mine = looks(rules, net, link, channel)
        return Offer(wanted, copies, theirs, mine, 0.0, created_s)
    view = net.views[link, channel]
    return Offer(view.theirs == rules.if_wanted, copies, view.theirs, view.mine, view.popularity, created_s)


@step
def is_offered(net: Net, rules: RouterRules, link: int, bundle: int, offer: Offer) -> bool:
    """Whether the sender offers the bundle at all."""
    if not offer.wanted and not net.nodes[net.links[link].receiver].carries:
        return False
    unit_s, expires_s = net.medium.lifetime_unit_s, net.bundles[bundle].expires_s
    if unit_s > 0 and not offer.wanted and not has_unit_left(net.run[0].now_s, expires_s, unit_s):
        return False
    if rules.skip_late:
        ends_s = net.run[0].now_s + transfer_s(net.bundles[bundle].size_bytes, net.medium.rate_bps)
        if is_expired(ends_s, expires_s):
            return False
    return bool(offers(rules, offer))


# ---- bundles that arrive


@step
def arrive(net: Net, rules: RouterRules, link: int) -> None:
    """A bundle has arrived: is it new and alive, is it wanted, is there room?"""
    at = net.links[link]
    bundle, sender, receiver = at.carries, at.sender, at.receiver
    word, bit = bundle // BITS, bit_of(bundle)
    net.link_words[link, word].known |= bit  # not again in this contact, nor back
    net.link_words[link ^ 1, word].known |= bit
    outcome, stays, moves = RELAYED, False, False
    if is_expired(net.run[0].now_s, net.bundles[bundle].expires_s):
        outcome = LATE
    elif net.words[receiver, word].seen & bit:
        outcome = DUPLICATE
    else:
        wanted = net.words[receiver, word].wanted & bit != 0  # beside `seen`: a look elsewhere is slow
        keeps = not (wanted and rules.consume)
        stays = keeps and make_room(net, rules, receiver, net.bundles[bundle].size_bytes)
        if wanted or stays:
            net.words[receiver, word].seen |= bit
            net.nodes[receiver].missing -= wanted
            net.hops[receiver, bundle] = min(net.hops[sender, bundle] + 1, _MOST_HOPS)
            if rules.copies > 0:
                net.copies[receiver, bundle] = at.gives
        else:
            outcome = REFUSED
        if stays:
            put(net, receiver, bundle)
        if wanted:
            note_delivery(net, receiver, bundle)
    if outcome in (RELAYED, DUPLICATE) and sender == net.bundles[bundle].source:
        note_holder(net, receiver, bundle)
    if outcome == RELAYED and net.medium.when_full == EVICT_MOST_COPIED:
        net.handed_on[sender, bundle] += 1
    if outcome != RELAYED:
        return_copies(net, link)
    elif at.gives > 0 and net.copies[sender, bundle] == 0 and net.words[sender, word].store & bit:
        remove(net, sender, bundle)  # its last copy was given away
        moves = True
    note_transfer(net, link, at.bytes, outcome, stays, moves)


@step
def note_holder(net: Net, node: int, bundle: int) -> None:
    """A neighbour of the source has the bundle: it took it, or had it already. Each counts once."""
    if net.bundles[bundle].handed >= net.medium.keep_own:
        return
    if net.medium.keep_own > 1:
        word, bit = bundle // BITS, bit_of(bundle)
        if net.holders[node, word] & bit:
            return
        net.holders[node, word] |= bit
    net.bundles[bundle].handed += 1


@step
def reserve_copies(net: Net, rules: RouterRules, link: int) -> None:
    """Where copies are counted, some of the sender's go with the bundle; until it has arrived nobody has them."""
    at = net.links[link]
    copies = net.copies[at.sender, at.carries]
    at.gives, left = splits(rules, offer_of(net, rules, link, at.carries))
    at.reserved = copies - left
    net.copies[at.sender, at.carries] = left


@step
def return_copies(net: Net, link: int) -> None:
    """What was reserved for a transfer that came to nothing is the sender's again."""
    at = net.links[link]
    if at.reserved > 0:
        net.copies[at.sender, at.carries] += at.reserved
        net.nodes[at.sender].gained += 1


@step
def make_room(net: Net, rules: RouterRules, node: int, size_bytes: int) -> bool:
    """Whether a bundle of this size fits into the store, after others have left if need be."""
    capacity = net.medium.capacity_bytes
    if size_bytes > capacity:
        return False
    while net.nodes[node].used_bytes + size_bytes > capacity:
        victim = NONE if net.medium.when_full == REFUSE else first_to_leave(net, node)
        if victim == NONE:
            return False
        take_out(net, node, victim, EVICTED)
        if net.medium.when_full == EVICT_FIRST_IN:
            forget(net, rules, node, victim)
    return True


@step
def forget(net: Net, rules: RouterRules, node: int, bundle: int) -> None:
    """The node may take the bundle again, unless it was delivered there; neighbours who may ask see that at once."""
    at, bit = net.words[node, bundle // BITS], bit_of(bundle)
    if at.given & bit:
        return
    at.seen &= ~bit
    if at.wanted & bit:
        net.nodes[node].missing += 1
    if rules.seen == LIVE:
        link = net.nodes[node].first
        while link != NONE:
            net.link_words[link ^ 1, bundle // BITS].known &= ~bit
            link = net.links[link].next
        look_again(net, node)
        stir_neighbours(net, node)


@step
def first_to_leave(net: Net, node: int) -> int:
    """The bundle that leaves a full store first, or NONE; what is being sent stays."""
    victim = NONE
    for word in range(first_word(net), end_word(net)):
        bits = net.words[node, word].store
        while bits:
            bundle = bundle_at(word, bits)
            bits &= bits - 1
            if is_being_sent(net, node, bundle) or is_kept(net, node, bundle):
                continue
            if victim == NONE or leaves_first(net, node, bundle, victim):
                victim = bundle
                if net.medium.when_full == EVICT_OLDEST:
                    return victim
    return victim


@step
def leaves_first(net: Net, node: int, bundle: int, older: int) -> bool:
    """Whether a bundle leaves a full store before an older one."""
    return leaves_before(net.medium.when_full, kept(net, node, bundle), kept(net, node, older))


@step
def kept(net: Net, node: int, bundle: int) -> Kept:
    """What the rule looks at; where it does not look there is nothing to read."""
    at, when_full = net.bundles[bundle], net.medium.when_full
    came_s = net.came_s[node, bundle] if when_full == EVICT_FIRST_IN else 0.0
    sent = net.handed_on[node, bundle] if when_full == EVICT_MOST_COPIED else 0
    asked = net.asked[node, at.channel] if when_full == EVICT_LEAST_WANTED else 0
    return Kept(at.expires_s, at.size_bytes, came_s, sent, asked)


@step
def is_kept(net: Net, node: int, bundle: int) -> bool:
    """Whether the node is the bundle's source, and too few neighbours have it."""
    return bool(net.bundles[bundle].source == node and net.bundles[bundle].handed < net.medium.keep_own)


@step
def is_being_sent(net: Net, node: int, bundle: int) -> bool:
    """Whether a node is sending the bundle to somebody."""
    link = net.nodes[node].first
    while link != NONE:
        if net.links[link].carries == bundle:
            return True
        link = net.links[link].next
    return False
