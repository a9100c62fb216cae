"""The loop that all routers of opportunistic networks share: contacts, lists, queues, transfers, stores.

DPSP's core operation (seed text 004) with the protocol's own rules where it asks: what a list says, what is learned from it,
what is offered, what goes first. Flooding, direct delivery, spray-and-wait and PRoPHET are other answers to the same
questions. What happens at one instant happens in this order (docs/dpsp.md):

    transfers end > contacts end > bundles expire > subscriptions begin and end > bundles are born > contacts begin >
    nodes take their turns, in an order drawn for the instant: they begin what there is to send

This is the fast twin of `serai.protocols.router`: the same rules, over arrays.
"""

from collections.abc import Callable
from typing import Any

from serai._jit import engine, step
from serai.engine.contacts.links import close_link, open_pair, schedule
from serai.engine.contacts.setup import Needs, drive, lay_out, outcome_of
from serai.engine.contacts.state import (
    BITS,
    BROKEN,
    DUPLICATE,
    EVICTED,
    EXPIRED,
    FULL,
    IDLE,
    LATE,
    LIST,
    NONE,
    REFUSED,
    RELAYED,
    UNFINISHED,
    Medium,
    Net,
    Outcome,
)
from serai.engine.contacts.stores import (
    bit_of,
    bundle_at,
    end_word,
    first_word,
    note_delivery,
    note_drop,
    note_transfer,
    put,
    take_out,
)
from serai.engine.contacts.turns import node_in_line, sort_line, stir, stir_all, stir_neighbours
from serai.protocols import direct, dpsp, flooding, prophet, spray
from serai.protocols.dpsp import FAR, Standing, is_news, lapses_s, passes, renewals, verdict
from serai.protocols.prophet import HERE, after_encounter, aging_factor, by_way_of
from serai.protocols.routing import (
    BLOOM,
    DIRECT,
    DPSP,
    EVICT_OLDEST,
    LIVE,
    PROPHET,
    REFUSE,
    SPRAY,
    Rules,
    bloom_bit,
    bloom_hashes,
    bloom_size,
    instant_key,
    is_expired,
    leaves_before,
    link_key,
    list_bytes,
    sent_bytes,
    tells_seen,
    tie_rank,
    transfer_s,
)
from serai.world.bundles import ContactWorld, check

RULES_OF: dict[str, Callable[[Any], Rules]] = {
    "flooding": flooding.rules_of,
    "direct": direct.rules_of,
    "spray": spray.rules_of,
    "prophet": prophet.rules_of,
    "dpsp": dpsp.rules_of,
}
"""How the settings of each protocol are read."""

_MOST_HOPS = 255  # a byte holds a copy's hop count
_ENTRY = 65536  # an entry of a list is one number: renewals times this, plus hops


def simulate(world: ContactWorld, medium: Medium, settings: Any) -> Outcome:
    """Run a router over a world of contacts."""
    check(world)
    rules = RULES_OF[settings.name](settings)
    net = drive(lay_out(world, medium, needs_of(world, rules)), lambda state: advance(state, rules))
    return outcome_of(net)


def needs_of(world: ContactWorld, rules: Rules) -> Needs:
    """What a protocol wants the state to have room for."""
    channels = max(world.channels, 1)
    rows = {DPSP: max(len(world.subscriptions.node), 1), PROPHET: world.nodes + channels}
    return Needs(
        lists=rules.lists,
        row=rows.get(rules.protocol, channels),
        subscription_lists=rules.protocol == DPSP,
        copies=rules.protocol == SPRAY,
        predictabilities=rules.protocol == PROPHET,
        filter_bits=bloom_size(rules.bloom_bits, len(world.bundles.source)) if rules.seen == BLOOM else 8,
    )


# ---- the loop


@engine
def advance(net: Net, rules: Rules) -> bool:
    """Run to the end; or return False, between two instants, if a log must be grown first."""
    ticks = net.medium.step_s > 0
    while True:
        if short_of_room(net):
            return False
        birth_only = go_to_next_instant(net)
        if net.clock[0].now_s > net.medium.duration_s:
            break
        net.clock[0].key = instant_key(net.medium.key, net.clock[0].now_s)
        if not ticks:
            finish_what_is_due(net, rules)
        if not birth_only:
            end_contacts(net, rules)
        expire(net)
        change_subscriptions(net, rules)
        give_births(net, rules, birth_only)
        if not birth_only:
            begin_contacts(net)
        if ticks:
            stir_all(net)
        take_turns(net, rules)
    break_off(net)
    return True


@step
def short_of_room(net: Net) -> bool:
    """Whether a full log might not hold what one more instant can add to it."""
    tally = net.tally[0]
    if not net.medium.full_log:
        return False
    more = tally.stored + len(net.links) + len(net.source) - tally.born
    return bool(tally.transfers + len(net.links) > len(net.transfer_log) or tally.drops + more > len(net.drop_log))


@step
def go_to_next_instant(net: Net) -> bool:
    """Set the clock to the next instant at which something happens; whether it is a birth between ticks."""
    clock, tally = net.clock[0], net.tally[0]
    born_s = net.created_s[tally.born] if tally.born < len(net.created_s) else IDLE
    if net.medium.step_s > 0:
        # As The ONE does: a birth is an instant of its own, before anybody has moved; then comes the tick.
        tick_s = clock.tick * net.medium.step_s
        if born_s <= tick_s:
            clock.now_s = born_s
            return True
        clock.tick += 1
        clock.now_s = tick_s
        return False
    next_s = born_s
    if tally.up < len(net.up_s):
        next_s = min(next_s, net.up_s[tally.up])
    if tally.down < tally.up:
        next_s = min(next_s, net.down_s[net.by_down[tally.down]])
    if tally.expired < len(net.by_expiry):
        next_s = min(next_s, net.expires_s[net.by_expiry[tally.expired]])
    if tally.began < len(net.from_s):
        next_s = min(next_s, net.from_s[tally.began])
    if tally.ended < len(net.by_end):
        next_s = min(next_s, net.to_s[net.by_end[tally.ended]])
    if tally.links > 0:
        next_s = min(next_s, net.links[net.heap[0]].when_s)
    clock.now_s = next_s
    return False


@step
def finish_what_is_due(net: Net, rules: Rules) -> None:
    """Transfers that end now have arrived; senders of lists that are due now may send them."""
    while net.tally[0].links > 0 and net.links[net.heap[0]].when_s <= net.clock[0].now_s:
        link = net.heap[0]
        if net.links[link].carries == NONE:
            schedule(net, link, IDLE)
            stir(net, net.links[link].sender)
        else:
            finish(net, rules, link)


@step
def take_turns(net: Net, rules: Rules) -> None:
    """All in line take their turn. Nobody joins the line meanwhile: a turn only begins things, or ends them at a tick."""
    sort_line(net)
    count = net.tally[0].line
    for place in range(count):
        take_turn(net, rules, node_in_line(net, place))
    for place in range(count):
        net.nodes[node_in_line(net, place)].stirred = 0
    net.tally[0].line = 0


@step
def break_off(net: Net) -> None:
    """The run is over: what is under way stays unfinished."""
    net.clock[0].now_s = net.medium.duration_s
    for node in range(len(net.nodes)):
        link = net.nodes[node].first
        while link != NONE:
            if net.links[link].carries != NONE:
                give_up(net, link, UNFINISHED)
            link = net.links[link].next


# ---- what happens to contacts, bundles, subscriptions


@step
def end_contacts(net: Net, rules: Rules) -> None:
    """Contacts that end now are over, and what was under way in them is broken."""
    tally, now_s = net.tally[0], net.clock[0].now_s
    while tally.down < tally.up and net.down_s[net.by_down[tally.down]] <= now_s:
        pair = net.link_of[net.by_down[tally.down]]
        tally.down += 1
        for link in range(pair, pair + 2):
            at = net.links[link]
            if at.carries != NONE:
                if at.end_s <= now_s:  # at a tick: it ended since the last one
                    finish(net, rules, link)
                else:
                    give_up(net, link, BROKEN)
            if net.medium.single:
                stir_neighbours(net, at.sender)
                stir(net, at.sender)
        for link in range(pair, pair + 2):
            close_link(net, link)
        net.free[tally.free] = pair
        tally.free += 1


@step
def begin_contacts(net: Net) -> None:
    """Contacts that begin now: nobody knows anything of the other yet."""
    tally = net.tally[0]
    while tally.up < len(net.up_s) and net.up_s[tally.up] <= net.clock[0].now_s:
        pair = open_pair(net, tally.up)
        tally.up += 1
        for link in range(pair, pair + 2):
            for word in range(first_word(net), end_word(net)):
                net.known[link, word] = 0
            stir(net, net.links[link].sender)


@step
def expire(net: Net) -> None:
    """Bundles whose lifetime is over leave all stores."""
    tally = net.tally[0]
    while tally.expired < len(net.by_expiry):
        bundle = net.by_expiry[tally.expired]
        if not is_expired(net.clock[0].now_s, net.expires_s[bundle]):
            break
        tally.expired += 1
        word, bit = bundle // BITS, bit_of(bundle)
        if net.alive[word] & bit:
            net.alive[word] &= ~bit
            for node in range(len(net.nodes)):
                if net.store[node, word] & bit:
                    take_out(net, node, bundle, EXPIRED)
    forget_the_dead(net)


@step
def forget_the_dead(net: Net) -> None:
    """Move the window of bundles alive past those that are not."""
    tally = net.tally[0]
    while tally.first < tally.born and not net.alive[tally.first // BITS] & bit_of(tally.first):
        tally.first += 1


@step
def change_subscriptions(net: Net, rules: Rules) -> None:
    """Subscriptions that begin now, then those that end."""
    tally, now_s = net.tally[0], net.clock[0].now_s
    while tally.began < len(net.from_s) and net.from_s[tally.began] <= now_s:
        subscription = tally.began
        tally.began += 1
        node, channel = net.subscriber[subscription], net.subscribed[subscription]
        if net.to_s[subscription] > net.from_s[subscription]:
            net.wants[channel, node] += 1
            want(net, node, channel, now_s < net.to_s[subscription])
            if not rules.lists:  # the neighbours know at once
                stir(net, node)
                stir_neighbours(net, node)
    while tally.ended < len(net.by_end) and net.to_s[net.by_end[tally.ended]] <= now_s:
        subscription = net.by_end[tally.ended]
        tally.ended += 1
        if net.to_s[subscription] > net.from_s[subscription]:
            net.wants[net.subscribed[subscription], net.subscriber[subscription]] -= 1
            want(net, net.subscriber[subscription], net.subscribed[subscription], False)


@step
def want(net: Net, node: int, channel: int, deliver: bool) -> None:
    """Mark which bundles alive the node wants by now; hand over those it has carried for others so far."""
    wants = net.wants[channel, node] > 0
    for word in range(first_word(net), end_word(net)):
        bits = net.alive[word]
        while bits:
            bundle = bundle_at(word, bits)
            bits &= bits - 1
            if net.channel[bundle] == channel:
                bit = bit_of(bundle)
                net.wanted[node, word] = net.wanted[node, word] | bit if wants else net.wanted[node, word] & ~bit
                if deliver and net.store[node, word] & bit:
                    note_delivery(net, node, bundle)


@step
def give_births(net: Net, rules: Rules, one: bool) -> None:
    """Bundles that are created now enter their sources' stores."""
    tally, now_s = net.tally[0], net.clock[0].now_s
    while tally.born < len(net.created_s) and net.created_s[tally.born] <= now_s:
        bundle = tally.born
        tally.born += 1
        if bundle % BITS == 0:
            blank_word(net, bundle // BITS)
        source, word, bit = net.source[bundle], bundle // BITS, bit_of(bundle)
        net.seen[source, word] |= bit
        if is_expired(now_s, net.expires_s[bundle]):
            note_drop(net, source, bundle, EXPIRED)
            forget_the_dead(net)
            continue
        net.alive[word] |= bit
        for node in range(len(net.nodes)):
            if net.wants[net.channel[bundle], node] > 0:
                net.wanted[node, word] |= bit
        if rules.protocol == SPRAY:
            net.copies[source, bundle] = rules.copies
        if make_room(net, source, net.size_bytes[bundle]):
            put(net, source, bundle)
            stir(net, source)
        else:
            note_drop(net, source, bundle, FULL)
        if one:
            break


@step
def blank_word(net: Net, word: int) -> None:
    """Links know nothing of bundles in a word that is used from now on."""
    for link in range(len(net.links)):
        net.known[link, word] = 0


# ---- turns


@step
def take_turn(net: Net, rules: Rules, node: int) -> None:
    """A node begins what it has to send: on each of its links, or on one if it can do one thing at a time.

    With one thing at a time, The ONE's order: own lists, then bundles that a neighbour wants, then bundles that a
    neighbour has and this node wants, then all others.
    """
    who, single = net.nodes[node], net.medium.single
    if net.medium.step_s > 0:
        finish_at_tick(net, rules, node)
    first_round = 0 if single else 3
    for this_round in range(first_round, 4):
        if (this_round == 1 or this_round == 2) and not rules.wanted_first:
            continue
        own = who.first
        while own != NONE:
            if single and who.busy > 0:
                return
            link = own ^ 1 if this_round == 2 else own
            if may_begin(net, link):
                if this_round == 0 or not single:
                    begin_list(net, rules, link)
                if this_round > 0 and may_begin(net, link) and knows_enough(net, rules, link):
                    bundle = choose(net, rules, link, this_round < 3)
                    if bundle != NONE:
                        begin(net, link, bundle, net.size_bytes[bundle])
            own = net.links[own].next


@step
def finish_at_tick(net: Net, rules: Rules, node: int) -> None:
    """What the node was sending and has ended since the last tick has arrived."""
    link = net.nodes[node].first
    while link != NONE:
        if net.links[link].carries != NONE and net.links[link].end_s <= net.clock[0].now_s:
            finish(net, rules, link)
        link = net.links[link].next


@step
def may_begin(net: Net, link: int) -> bool:
    """Whether nothing is under way that would keep a transfer from beginning on the link."""
    at = net.links[link]
    if net.medium.single:
        return bool(net.nodes[at.sender].busy == 0 and net.nodes[at.receiver].busy == 0)
    return bool(at.carries == NONE)


@step
def knows_enough(net: Net, rules: Rules, link: int) -> bool:
    """Whether the sender has the receiver's list, if there are lists."""
    return bool(not rules.lists or net.links[link].lists > 0)


@step
def begin(net: Net, link: int, what: int, size_bytes: int) -> None:
    """The sender begins to send a bundle or a list."""
    at, now_s = net.links[link], net.clock[0].now_s
    at.carries, at.bytes, at.start_s = what, size_bytes, now_s
    at.end_s = now_s + transfer_s(size_bytes, net.medium.rate_bps)
    net.nodes[at.sender].busy += 1
    net.nodes[at.receiver].busy += 1
    if net.medium.step_s == 0:
        schedule(net, link, at.end_s)


@step
def release(net: Net, link: int) -> None:
    """The link carries nothing any more; those who may have waited for that are stirred."""
    at = net.links[link]
    at.carries = NONE
    net.nodes[at.sender].busy -= 1
    net.nodes[at.receiver].busy -= 1
    if net.medium.step_s == 0:
        schedule(net, link, at.due_s if at.due_s > net.clock[0].now_s else IDLE)
        stir(net, at.sender)
        stir(net, at.receiver)
        if net.medium.single:
            stir_neighbours(net, at.sender)
            stir_neighbours(net, at.receiver)


@step
def give_up(net: Net, link: int, outcome: int) -> None:
    """What the link carries does not arrive."""
    at = net.links[link]
    sent = sent_bytes(at.bytes, net.medium.rate_bps, net.clock[0].now_s - at.start_s)
    if at.carries == LIST:
        net.tally[0].control_bytes += sent
    else:
        note_transfer(net, link, sent, outcome)
    release(net, link)


@engine
def finish(net: Net, rules: Rules, link: int) -> None:
    """What the link carries has arrived."""
    at = net.links[link]
    if at.carries == LIST:
        net.tally[0].control_bytes += at.bytes
        net.tally[0].lists += 1
        learn(net, rules, link)
    else:
        arrive(net, rules, link)
    release(net, link)


# ---- which bundle next


@step
def choose(net: Net, rules: Rules, link: int, wanted_only: bool) -> int:
    """The bundle that the sender sends next, or NONE: the best of those it may offer.

    A vote of priorities may go round in a circle, so the way to the best is part of the rule: bundles are looked at in
    order of their creation, and each that beats the best so far takes its place.
    """
    sender, receiver = net.links[link].sender, net.links[link].receiver
    key = link_key(net.clock[0].key, sender, receiver)
    best, best_wanted, best_rank = NONE, False, 0
    for word in range(first_word(net), end_word(net)):
        bits = net.store[sender, word] & ~net.known[link, word]
        if rules.seen == LIVE and rules.duplicate_filter:
            bits &= ~net.seen[receiver, word]
        if wanted_only and not rules.lists:
            bits &= net.wanted[receiver, word]
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
    channel = net.channel[bundle]
    if not rules.lists:
        return bool(net.wants[channel, net.links[link].receiver] > 0)
    return bool(net.theirs[link, channel] == (0.0 if rules.protocol == DPSP else HERE))


@step
def is_offered(net: Net, rules: Rules, link: int, bundle: int, wanted: bool) -> bool:
    """Whether the sender offers the bundle at all."""
    at, channel = net.links[link], net.channel[bundle]
    if not wanted and not net.nodes[at.receiver].carries:
        return False
    if rules.skip_late:
        ends_s = net.clock[0].now_s + transfer_s(net.size_bytes[bundle], net.medium.rate_bps)
        if is_expired(ends_s, net.expires_s[bundle]):
            return False
    if rules.protocol == DIRECT:
        return direct.offers(wanted)
    if rules.protocol == SPRAY:
        return spray.offers(net.copies[at.sender, bundle], wanted)
    if rules.protocol == PROPHET:
        return prophet.offers(wanted, net.theirs[link, channel], net.mine[link, channel])
    if rules.protocol == DPSP:
        return passes(rules, net.theirs[link, channel], net.mine[link, channel])
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
    channel = net.channel[bundle]
    return Standing(net.created_s[bundle], net.theirs[link, channel], net.popularity[link, channel])


# ---- bundles that arrive


@step
def arrive(net: Net, rules: Rules, link: int) -> None:
    """A bundle has arrived: is it new and alive, is it wanted, is there room?"""
    at = net.links[link]
    bundle, sender, receiver = at.carries, at.sender, at.receiver
    word, bit = bundle // BITS, bit_of(bundle)
    net.known[link, word] |= bit  # not again in this contact, nor back
    net.known[link ^ 1, word] |= bit
    outcome = RELAYED
    if is_expired(net.clock[0].now_s, net.expires_s[bundle]):
        outcome = LATE
    elif net.seen[receiver, word] & bit:
        outcome = DUPLICATE
    else:
        wanted = net.wants[net.channel[bundle], receiver] > 0
        keeps = not (wanted and rules.consume)
        stays = keeps and make_room(net, receiver, net.size_bytes[bundle])
        if wanted or stays:
            net.seen[receiver, word] |= bit
            net.hops[receiver, bundle] = min(net.hops[sender, bundle] + 1, _MOST_HOPS)
            hand_over_copies(net, rules, sender, receiver, bundle)
        else:
            outcome = REFUSED
        if stays:
            put(net, receiver, bundle)
        if wanted:
            note_delivery(net, receiver, bundle)
    note_transfer(net, link, at.bytes, outcome)


@step
def hand_over_copies(net: Net, rules: Rules, sender: int, receiver: int, bundle: int) -> None:
    """In spray-and-wait the receiver gets some of the sender's copies."""
    if rules.protocol == SPRAY:
        gives = spray.given(rules, net.copies[sender, bundle])
        net.copies[receiver, bundle] = gives
        net.copies[sender, bundle] = spray.left(net.copies[sender, bundle], gives)


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
        bits = net.store[node, word]
        while bits:
            bundle = bundle_at(word, bits)
            bits &= bits - 1
            if is_being_sent(net, node, bundle):
                continue
            if victim == NONE or leaves_before(net.medium.when_full, net.expires_s[bundle], net.expires_s[victim]):
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


# ---- lists


@step
def begin_list(net: Net, rules: Rules, link: int) -> None:
    """Send the sender's list, if there are lists and one is due."""
    at, now_s = net.links[link], net.clock[0].now_s
    if not rules.lists or at.due_s > now_s:
        return
    at.due_s = now_s + rules.repeat_s
    begin(net, link, LIST, write_list(net, rules, link))


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
        for channel in range(net.theirs.shape[1]):
            net.row[link, channel] = HERE if net.wants[channel, sender] > 0 else 0.0
            entries += net.wants[channel, sender] > 0
    return list_bytes(rules, entries, write_seen(net, rules, link, sender))


@step
def write_seen(net: Net, rules: Rules, link: int, sender: int) -> int:
    """Put what the sender has seen into its list; how many bundles that are."""
    count = 0
    for word in range(first_word(net), end_word(net)):
        bits = net.seen[sender, word] & net.alive[word] if tells_seen(rules) else 0
        net.told[link, word] = bits
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
    salt = link_key(net.clock[0].key, net.links[link].sender, net.links[link].receiver)
    for place in range(size):
        net.filter[place] = 0
    for word in range(first_word(net), end_word(net)):
        bits = net.told[link, word]
        while bits:
            for which in range(hashes):
                net.filter[bloom_bit(salt, bundle_at(word, bits), which, size)] = 1
            bits &= bits - 1
    for word in range(first_word(net), end_word(net)):
        bits = net.alive[word] & ~net.told[link, word]
        while bits:
            bundle, found = bundle_at(word, bits), True
            bits &= bits - 1
            for which in range(hashes):
                found = found and net.filter[bloom_bit(salt, bundle, which, size)] == 1
            if found:
                net.told[link, word] |= bit_of(bundle)


@step
def learn(net: Net, rules: Rules, link: int) -> None:
    """A list has arrived; what its receiver knows of its sender is kept with the link back."""
    back = link ^ 1
    for word in range(first_word(net), end_word(net)):
        net.known[back, word] |= net.told[link, word]
    if rules.protocol == DPSP:
        learn_subscriptions(net, rules, link, back)
    elif rules.protocol == PROPHET:
        learn_predictabilities(net, rules, link, back)
    else:
        for channel in range(net.theirs.shape[1]):
            net.theirs[back, channel] = net.row[link, channel]
    net.links[back].lists += 1


@step
def write_subscriptions(net: Net, rules: Rules, link: int, sender: int) -> int:
    """Put the subscriptions that the sender knows of, its own among them, into its list; how many that are."""
    now_s, count = net.clock[0].now_s, 0
    net.links[link].entries = net.tally[0].began
    for s in range(net.tally[0].began):
        if net.subscriber[s] == sender:
            renewed = renewals(rules, net.from_s[s], now_s) if now_s < net.to_s[s] else NONE
            hops = 0
        else:
            renewed, hops = net.renewed[sender, s], net.distance[sender, s]
            if renewed != NONE and is_expired(now_s, lapses_s(rules, net.from_s[s], renewed)):
                renewed = NONE
        net.row[link, s] = NONE if renewed == NONE else renewed * _ENTRY + hops
        count += renewed != NONE
    return count


@step
def learn_subscriptions(net: Net, rules: Rules, link: int, back: int) -> None:
    """Merge the list's entries into the receiver's own; note each channel's hop counts, there and here.

    The receiver's own subscriptions do not count: whatever it has, it has already got.
    """
    node, now_s = net.links[link].receiver, net.clock[0].now_s
    for channel in range(net.theirs.shape[1]):
        net.theirs[back, channel] = net.mine[back, channel] = FAR
        net.popularity[back, channel] = 0.0
    for s in range(net.tally[0].began):
        if net.subscriber[s] == node:
            continue
        channel = net.subscribed[s]
        if s < net.links[link].entries and net.row[link, s] >= 0:
            renewed, hops = int(net.row[link, s]) // _ENTRY, int(net.row[link, s]) % _ENTRY
            if not is_expired(now_s, lapses_s(rules, net.from_s[s], renewed)):
                net.theirs[back, channel] = min(net.theirs[back, channel], hops)
                if is_news(renewed, hops, net.renewed[node, s], net.distance[node, s]):
                    net.renewed[node, s], net.distance[node, s] = renewed, hops + 1
        known = net.renewed[node, s]
        if known != NONE and not is_expired(now_s, lapses_s(rules, net.from_s[s], known)):
            net.mine[back, channel] = min(net.mine[back, channel], net.distance[node, s])
            net.popularity[back, channel] += 1.0


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
        if e == node or e == other or told == 0.0:
            continue
        if e < nodes or told < HERE:
            mine[e] = by_way_of(rules, mine[e], mine[other], told)
        elif first:
            mine[e] = after_encounter(rules, mine[e])
    for channel in range(net.theirs.shape[1]):
        net.theirs[back, channel] = net.row[link, nodes + channel]
        net.mine[back, channel] = mine[nodes + channel]


@step
def age(net: Net, rules: Rules, node: int) -> None:
    """Age the node's predictabilities up to now."""
    who, now_s = net.nodes[node], net.clock[0].now_s
    if now_s > who.aged_s:
        factor = aging_factor(rules, now_s - who.aged_s)
        for e in range(net.predictability.shape[1]):
            net.predictability[node, e] *= factor
        who.aged_s = now_s
