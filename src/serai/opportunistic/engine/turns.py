"""Turns: what a node begins to send when its turn comes."""

from serai.core.rules import step
from serai.opportunistic.engine.forwarding import choose, goes_before, offer_of
from serai.opportunistic.engine.links import has_nothing
from serai.opportunistic.engine.state import EXPIRED, NONE, Net
from serai.opportunistic.engine.stores import bundle_at, end_word, first_word, take_out
from serai.opportunistic.engine.transfers import begin, begin_list, finish, knows_enough, may_begin
from serai.opportunistic.engine.waiting import is_time_to_look, node_in_line, sort_line
from serai.opportunistic.rules import Offer, RouterRules, has_unit_left


@step
def take_turns(net: Net, rules: RouterRules) -> None:
    """All in line take their turn. Nobody joins the line meanwhile: a turn begins things, or ends them at a tick."""
    sort_line(net)
    count = net.run[0].line
    for place in range(count):
        take_turn(net, rules, node_in_line(net, place))
    for place in range(count):
        net.nodes[node_in_line(net, place)].stirred = 0
    net.run[0].line = 0


@step
def take_turn(net: Net, rules: RouterRules, node: int) -> None:
    """A node begins what it has to send: on each of its links, or on one if it can do one thing at a time.

    With one thing at a time, The ONE's order: own lists, then bundles that a neighbour wants, then bundles that a
    neighbour has and this node wants, then all others.
    """
    who, single = net.nodes[node], net.medium.single
    if net.medium.step_s > 0:
        if who.busy > 0:
            finish_at_tick(net, rules, node)
        if is_time_to_look(net, node):
            drop_old(net, node)
    first_round = 3 if not single else 0 if rules.lists else 1
    for this_round in range(first_round, 4):
        if (this_round == 1 or this_round == 2) and not rules.wanted_first:
            continue
        if this_round == 2 and not may_miss(net, rules, node):
            continue
        if this_round == 3 and single and rules.best_of_links:
            begin_best(net, rules, node)
            return
        own = who.first
        while own != NONE:
            if single and who.busy > 0:
                return
            link = own ^ 1 if this_round == 2 else own
            if this_round > 0 and (single or not rules.lists) and has_nothing(net, link):
                own = net.links[own].next
                continue
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
def begin_best(net: Net, rules: RouterRules, node: int) -> None:
    """Of the best bundles for each neighbour, begin the best."""
    if net.nodes[node].busy > 0:
        return
    best_link, best, best_offer = NONE, NONE, Offer(False, 0, 0.0, 0.0, 0.0, 0.0)
    link = net.nodes[node].first
    while link != NONE:
        if not has_nothing(net, link) and may_begin(net, link) and knows_enough(net, rules, link):
            bundle = choose(net, rules, link, False)
            if bundle != NONE:
                offer = offer_of(net, rules, link, bundle)
                if best == NONE or goes_before(rules, offer, best_offer, False):
                    best_link, best, best_offer = link, bundle, offer
        link = net.links[link].next
    if best != NONE:
        begin(net, rules, best_link, best, net.bundles[best].size_bytes)


@step
def drop_old(net: Net, node: int) -> None:
    """Drop what has too little of its lifetime left, unless the node is sending: then it looks when it is done."""
    unit_s, now_s = net.medium.lifetime_unit_s, net.run[0].now_s
    link = net.nodes[node].first
    while link != NONE:
        if net.links[link].carries != NONE:
            return
        link = net.links[link].next
    net.nodes[node].looked_s = now_s
    for word in range(first_word(net), end_word(net)):
        bits = net.words[node, word].store
        while bits:
            bundle = bundle_at(word, bits)
            bits &= bits - 1
            if not has_unit_left(now_s, net.bundles[bundle].expires_s, unit_s):
                take_out(net, node, bundle, EXPIRED)


@step
def may_miss(net: Net, rules: RouterRules, node: int) -> bool:
    """Whether there may be a bundle that the node wants and its neighbours know that it wants; else save the search."""
    return bool(rules.lists or net.nodes[node].missing > 0)


@step
def finish_at_tick(net: Net, rules: RouterRules, node: int) -> None:
    """What the node was sending and has ended since the last tick has arrived."""
    link = net.nodes[node].first
    while link != NONE:
        if net.links[link].carries != NONE and net.links[link].end_s <= net.run[0].now_s:
            finish(net, rules, link)
        link = net.links[link].next
