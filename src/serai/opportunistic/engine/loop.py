"""The loop that all routers of opportunistic networks share: contacts, lists, queues, transfers, stores.

DPSP's core operation, with the protocol's own rules where it asks: what a list says, what is learned from it, what is
offered, what goes first. Flooding, direct delivery, spray-and-wait and PRoPHET are other answers to the same questions.
What happens at one instant happens in this order (docs/opportunistic/dpsp.md):

    transfers end > contacts end > bundles expire > subscriptions begin and end > bundles are born > contacts begin >
    nodes take their turns, in an order drawn for the instant: they begin what there is to send

This is the fast twin of `serai.opportunistic.router.router`: the same rules, over arrays.
"""

from collections.abc import Callable
from typing import Any

from serai.core.jit import engine, step
from serai.opportunistic import direct, dpsp, flooding, prophet, spray
from serai.opportunistic.engine.forwarding import arrive, choose, make_room, reserve_copies, return_copies
from serai.opportunistic.engine.links import close_link, open_pair, schedule
from serai.opportunistic.engine.lists import learn, write_list
from serai.opportunistic.engine.setup import Needs, drive, lay_out, outcome_of
from serai.opportunistic.engine.state import (
    BITS,
    BROKEN,
    EXPIRED,
    FULL,
    IDLE,
    LIST,
    NONE,
    UNFINISHED,
    Medium,
    Net,
    Outcome,
)
from serai.opportunistic.engine.stores import (
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
from serai.opportunistic.engine.turns import node_in_line, sort_line, stir, stir_all, stir_neighbours
from serai.opportunistic.rules import (
    BLOOM,
    DPSP,
    PROPHET,
    SPRAY,
    Rules,
    bloom_size,
    instant_key,
    is_expired,
    sent_bytes,
    transfer_s,
)
from serai.opportunistic.world import ContactWorld, check

RULES_OF: dict[str, Callable[[Any], Rules]] = {
    "flooding": flooding.rules_of,
    "direct": direct.rules_of,
    "spray": spray.rules_of,
    "prophet": prophet.rules_of,
    "dpsp": dpsp.rules_of,
}
"""How the settings of each protocol are read."""


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
        if net.run[0].now_s > net.medium.duration_s:
            break
        net.run[0].key = instant_key(net.medium.key, net.run[0].now_s)
        if not ticks:
            finish_what_is_due(net, rules)
        if not birth_only:
            end_contacts(net, rules)
        expire(net)
        change_subscriptions(net, rules)
        give_births(net, rules)
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
    run = net.run[0]
    if not net.medium.full_log:
        return False
    more = run.stored + len(net.links) + len(net.bundles) - run.born
    return bool(run.transfers + len(net.links) > len(net.transfer_log) or run.drops + more > len(net.drop_log))


@step
def go_to_next_instant(net: Net) -> bool:
    """Set the clock to the next instant at which something happens; whether it is a birth between ticks."""
    run = net.run[0]
    born_s = net.bundles[run.born].created_s if run.born < len(net.bundles) else IDLE
    if net.medium.step_s > 0:
        # As The ONE does: a birth is an instant of its own, before anybody has moved; then comes the tick.
        tick_s = run.tick * net.medium.step_s
        if born_s <= tick_s:
            run.now_s = born_s
            return True
        run.tick += 1
        run.now_s = tick_s
        return False
    next_s = born_s
    if run.up < len(net.contacts):
        next_s = min(next_s, net.contacts[run.up].up_s)
    if run.down < run.up:
        next_s = min(next_s, net.contacts[net.contacts[run.down].by_down].down_s)
    if run.expired < len(net.bundles):
        next_s = min(next_s, net.bundles[net.bundles[run.expired].by_expiry].expires_s)
    if run.began < len(net.subscriptions):
        next_s = min(next_s, net.subscriptions[run.began].from_s)
    if run.ended < len(net.subscriptions):
        next_s = min(next_s, net.subscriptions[net.subscriptions[run.ended].by_end].to_s)
    if run.links > 0:
        next_s = min(next_s, net.links[net.heap[0]].when_s)
    run.now_s = next_s
    return False


@step
def finish_what_is_due(net: Net, rules: Rules) -> None:
    """Transfers that end now have arrived; senders of lists that are due now may send them."""
    while net.run[0].links > 0 and net.links[net.heap[0]].when_s <= net.run[0].now_s:
        link = net.heap[0]
        if net.links[link].carries == NONE:
            schedule(net, link, IDLE)
            stir(net, net.links[link].sender)
        else:
            finish(net, rules, link)


@step
def take_turns(net: Net, rules: Rules) -> None:
    """All in line take their turn. Nobody joins the line meanwhile: a turn begins things, or ends them at a tick."""
    sort_line(net)
    count = net.run[0].line
    for place in range(count):
        take_turn(net, rules, node_in_line(net, place))
    for place in range(count):
        net.nodes[node_in_line(net, place)].stirred = 0
    net.run[0].line = 0


@step
def break_off(net: Net) -> None:
    """The run is over: what is under way stays unfinished."""
    net.run[0].now_s = net.medium.duration_s
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
    run = net.run[0]
    now_s = run.now_s
    while run.down < run.up and net.contacts[net.contacts[run.down].by_down].down_s <= now_s:
        pair = net.contacts[net.contacts[run.down].by_down].link
        run.down += 1
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
        net.free[run.free] = pair
        run.free += 1


@step
def begin_contacts(net: Net) -> None:
    """Contacts that begin now: nobody knows anything of the other yet."""
    run = net.run[0]
    while run.up < len(net.contacts) and net.contacts[run.up].up_s <= net.run[0].now_s:
        pair = open_pair(net, run.up)
        run.up += 1
        for link in range(pair, pair + 2):
            for word in range(first_word(net), end_word(net)):
                net.link_words[link, word].known = 0
            stir(net, net.links[link].sender)


@step
def expire(net: Net) -> None:
    """Bundles whose lifetime is over leave all stores."""
    run = net.run[0]
    while run.expired < len(net.bundles):
        bundle = net.bundles[run.expired].by_expiry
        if not is_expired(net.run[0].now_s, net.bundles[bundle].expires_s):
            break
        run.expired += 1
        word, bit = bundle // BITS, bit_of(bundle)
        if net.alive[word] & bit:
            net.alive[word] &= ~bit
            for node in range(len(net.nodes)):
                at = net.words[node, word]
                if at.wanted & ~at.seen & bit:
                    net.nodes[node].missing -= 1
                if at.store & bit:
                    take_out(net, node, bundle, EXPIRED)
    forget_the_dead(net)


@step
def forget_the_dead(net: Net) -> None:
    """Move the window of bundles alive past those that are not."""
    run = net.run[0]
    while run.first < run.born and not net.alive[run.first // BITS] & bit_of(run.first):
        run.first += 1


@step
def change_subscriptions(net: Net, rules: Rules) -> None:
    """Subscriptions that begin now, then those that end."""
    run = net.run[0]
    now_s = run.now_s
    while run.began < len(net.subscriptions) and net.subscriptions[run.began].from_s <= now_s:
        subscription = run.began
        run.began += 1
        node, channel = net.subscriptions[subscription].node, net.subscriptions[subscription].channel
        if net.subscriptions[subscription].to_s > net.subscriptions[subscription].from_s:
            net.wants[channel, node] += 1
            want(net, node, channel, now_s < net.subscriptions[subscription].to_s)
            if not rules.lists:  # the neighbours know at once
                stir(net, node)
                stir_neighbours(net, node)
    while run.ended < len(net.subscriptions) and net.subscriptions[net.subscriptions[run.ended].by_end].to_s <= now_s:
        subscription = net.subscriptions[run.ended].by_end
        run.ended += 1
        if net.subscriptions[subscription].to_s > net.subscriptions[subscription].from_s:
            net.wants[net.subscriptions[subscription].channel, net.subscriptions[subscription].node] -= 1
            want(net, net.subscriptions[subscription].node, net.subscriptions[subscription].channel, False)


@step
def want(net: Net, node: int, channel: int, deliver: bool) -> None:
    """Mark which bundles alive the node wants by now; hand over those it has carried for others so far."""
    wants = net.wants[channel, node] > 0
    for word in range(first_word(net), end_word(net)):
        bits, at = net.alive[word], net.words[node, word]
        while bits:
            bundle = bundle_at(word, bits)
            bits &= bits - 1
            bit = bit_of(bundle)
            if net.bundles[bundle].channel == channel:
                if wants != (at.wanted & bit != 0):
                    at.wanted ^= bit
                    if not at.seen & bit:
                        net.nodes[node].missing += 1 if wants else -1
                if deliver and at.store & bit:
                    note_delivery(net, node, bundle)


@step
def give_births(net: Net, rules: Rules) -> None:
    """Bundles that are created now enter their sources' stores."""
    run = net.run[0]
    now_s = run.now_s
    while run.born < len(net.bundles) and net.bundles[run.born].created_s <= now_s:
        bundle = run.born
        run.born += 1
        if bundle % BITS == 0:
            blank_word(net, bundle // BITS)
        source, word, bit = net.bundles[bundle].source, bundle // BITS, bit_of(bundle)
        net.words[source, word].seen |= bit
        if is_expired(now_s, net.bundles[bundle].expires_s):
            note_drop(net, source, bundle, EXPIRED)
            forget_the_dead(net)
            continue
        net.alive[word] |= bit
        for node in range(len(net.nodes)):
            if net.wants[net.bundles[bundle].channel, node] > 0:
                net.words[node, word].wanted |= bit
                net.nodes[node].missing += node != source
        if rules.protocol == SPRAY:
            net.copies[source, bundle] = rules.copies
        if make_room(net, source, net.bundles[bundle].size_bytes):
            put(net, source, bundle)
            stir(net, source)
            if net.medium.single and rules.wanted_first:
                stir_neighbours(net, source)  # they may ask for it before it is offered
        else:
            note_drop(net, source, bundle, FULL)


@step
def blank_word(net: Net, word: int) -> None:
    """Links know nothing of bundles in a word that is used from now on."""
    for link in range(len(net.links)):
        net.link_words[link, word].known = 0


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
    first_round = 3 if not single else 0 if rules.lists else 1
    for this_round in range(first_round, 4):
        if (this_round == 1 or this_round == 2) and not rules.wanted_first:
            continue
        if this_round == 2 and not may_miss(net, rules, node):
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
                    if this_round == 1 and not may_miss(net, rules, net.links[link].receiver):
                        own = net.links[own].next
                        continue
                    bundle = choose(net, rules, link, this_round < 3)
                    if bundle != NONE:
                        begin(net, rules, link, bundle, net.bundles[bundle].size_bytes)
            own = net.links[own].next


@step
def may_miss(net: Net, rules: Rules, node: int) -> bool:
    """Whether there may be a bundle that the node wants and its neighbours know that it wants; else save the search."""
    return bool(rules.lists or net.nodes[node].missing > 0)


@step
def finish_at_tick(net: Net, rules: Rules, node: int) -> None:
    """What the node was sending and has ended since the last tick has arrived."""
    link = net.nodes[node].first
    while link != NONE:
        if net.links[link].carries != NONE and net.links[link].end_s <= net.run[0].now_s:
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
def begin(net: Net, rules: Rules, link: int, what: int, size_bytes: int) -> None:
    """The sender begins to send a bundle or a list."""
    at, now_s = net.links[link], net.run[0].now_s
    at.carries, at.bytes, at.start_s = what, size_bytes, now_s
    at.end_s = now_s + transfer_s(size_bytes, net.medium.rate_bps)
    at.gives = at.reserved = 0
    if what != LIST and rules.protocol == SPRAY:
        reserve_copies(net, rules, link)
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
        schedule(net, link, at.due_s if at.due_s > net.run[0].now_s else IDLE)
        stir(net, at.sender)
        stir(net, at.receiver)
        if net.medium.single:
            stir_neighbours(net, at.sender)
            stir_neighbours(net, at.receiver)


@step
def give_up(net: Net, link: int, outcome: int) -> None:
    """What the link carries does not arrive."""
    at = net.links[link]
    sent = sent_bytes(at.bytes, net.medium.rate_bps, net.run[0].now_s - at.start_s)
    if at.carries == LIST:
        net.run[0].control_bytes += sent
    else:
        return_copies(net, link)
        note_transfer(net, link, sent, outcome)
    release(net, link)


@engine
def finish(net: Net, rules: Rules, link: int) -> None:
    """What the link carries has arrived."""
    at = net.links[link]
    if at.carries == LIST:
        net.run[0].control_bytes += at.bytes
        net.run[0].lists += 1
        learn(net, rules, link)
    else:
        arrive(net, rules, link)
    release(net, link)


@step
def begin_list(net: Net, rules: Rules, link: int) -> None:
    """Send the sender's list, if there are lists and one is due."""
    at, now_s = net.links[link], net.run[0].now_s
    if not rules.lists or at.due_s > now_s:
        return
    at.due_s = now_s + rules.repeat_s
    begin(net, rules, link, LIST, write_list(net, rules, link))
