"""What happens to contacts, bundles and subscriptions at an instant: they begin, and they are over."""

from serai.core.rules import step
from serai.opportunistic.engine.answers import meets
from serai.opportunistic.engine.forwarding import make_room
from serai.opportunistic.engine.links import close_link, look_again, open_pair
from serai.opportunistic.engine.state import BITS, BROKEN, EXPIRED, FULL, NONE, Net
from serai.opportunistic.engine.stores import (
    bit_of,
    bundle_at,
    end_word,
    first_word,
    note_delivery,
    note_drop,
    put,
    take_out,
)
from serai.opportunistic.engine.transfers import finish, give_up
from serai.opportunistic.engine.waiting import stir, stir_neighbours
from serai.opportunistic.rules import EVICT_LEAST_WANTED, RouterRules, is_expired


@step
def end_contacts(net: Net, rules: RouterRules) -> None:
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
def begin_contacts(net: Net, rules: RouterRules) -> None:
    """Contacts that begin now: nobody knows anything of the other yet."""
    run = net.run[0]
    while run.up < len(net.contacts) and net.contacts[run.up].up_s <= net.run[0].now_s:
        pair = open_pair(net, run.up)
        run.up += 1
        for link in range(pair, pair + 2):
            for word in range(first_word(net), end_word(net)):
                net.link_words[link, word].known = 0
            stir(net, net.links[link].sender)
            if not rules.lists and net.medium.when_full == EVICT_LEAST_WANTED:
                for channel in range(len(net.wants)):
                    net.asked[net.links[link].sender, channel] += net.wants[channel, net.links[link].receiver] > 0
            if not rules.lists and meets(rules, net, link):
                look_again(net, net.links[link].sender)
                net.nodes[net.links[link].sender].gained += 1
                stir_neighbours(net, net.links[link].sender)


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
    skip_expired(net)


@step
def skip_expired(net: Net) -> None:
    """Move the window of bundles alive past those that are not."""
    run = net.run[0]
    while run.first < run.born and not net.alive[run.first // BITS] & bit_of(run.first):
        run.first += 1


@step
def change_subscriptions(net: Net, rules: RouterRules) -> None:
    """Subscriptions that begin now, then those that end."""
    run = net.run[0]
    now_s = run.now_s
    while run.began < len(net.subscriptions) and net.subscriptions[run.began].from_s <= now_s:
        subscription = run.began
        run.began += 1
        node, channel = net.subscriptions[subscription].node, net.subscriptions[subscription].channel
        if net.subscriptions[subscription].to_s > net.subscriptions[subscription].from_s:
            net.wants[channel, node] += 1
            noticed = now_s < net.subscriptions[subscription].to_s
            net.subscriptions[subscription].noticed = noticed
            want(net, node, channel, noticed)
            if noticed:
                announce(net, rules, node)
            if not rules.lists:  # the neighbours know at once
                look_again(net, node)
                stir(net, node)
                stir_neighbours(net, node)
    while run.ended < len(net.subscriptions) and net.subscriptions[net.subscriptions[run.ended].by_end].to_s <= now_s:
        subscription = net.subscriptions[run.ended].by_end
        run.ended += 1
        if net.subscriptions[subscription].to_s > net.subscriptions[subscription].from_s:
            net.wants[net.subscriptions[subscription].channel, net.subscriptions[subscription].node] -= 1
            want(net, net.subscriptions[subscription].node, net.subscriptions[subscription].channel, False)
            if net.subscriptions[subscription].noticed:
                announce(net, rules, net.subscriptions[subscription].node)


@step
def announce(net: Net, rules: RouterRules, node: int) -> None:
    """With `announce = "change"` the node's lists are due, now that its subscriptions have changed."""
    if not rules.lists or not rules.announce:
        return
    link = net.nodes[node].first
    while link != NONE:
        net.links[link].due_s = min(net.links[link].due_s, net.run[0].now_s)
        link = net.links[link].next
    stir(net, node)


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
def give_births(net: Net, rules: RouterRules) -> None:
    """Bundles that are created now enter their sources' stores."""
    run = net.run[0]
    now_s = run.now_s
    while run.born < len(net.bundles) and net.bundles[run.born].created_s <= now_s:
        bundle = run.born
        run.born += 1
        if bundle % BITS == 0:
            blank_word(net, bundle // BITS)
        source, word, bit = net.bundles[bundle].source, bundle // BITS, bit_of(bundle)
        is_late = is_expired(now_s, net.bundles[bundle].expires_s)
        if is_late or not make_room(net, rules, source, net.bundles[bundle].size_bytes):
            note_drop(net, source, bundle, EXPIRED if is_late else FULL, False)
            skip_expired(net)
            continue
        net.words[source, word].seen |= bit
        net.alive[word] |= bit
        for node in range(len(net.nodes)):
            if net.wants[net.bundles[bundle].channel, node] > 0:
                net.words[node, word].wanted |= bit
                net.nodes[node].missing += node != source
        if rules.copies > 0:
            net.copies[source, bundle] = rules.copies
        put(net, source, bundle)
        stir(net, source)
        if net.medium.single and rules.wanted_first:
            stir_neighbours(net, source)  # they may ask for it before it is offered


@step
def blank_word(net: Net, word: int) -> None:
    """Links know nothing of bundles in a word that is used from now on."""
    for link in range(len(net.links)):
        net.link_words[link, word].known = 0
