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
    """A node begins what it has to send: on each of its links, or on one if it can do one thing at a time."""
    who = net.nodes[node]
    if net.medium.step_s > 0:
        if who.sending > 0:
            finish_at_tick(net, rules, node)
        if is_time_to_look(net, node):
            drop_old(net, node)
    if net.medium.single:
        begin_one(net, rules, node)
        return
    link = who.first
    while link != NONE:
        if (rules.lists or not has_nothing(net, link)) and may_begin(net, link):
            begin_list(net, rules, link)
            if may_begin(net, link):
                begin_bundle(net, rules, link, False)
        link = net.links[link].next


@step
def begin_one(net: Net, rules: RouterRules, node: int) -> None:
    """With one thing at a time, The ONE's order: own lists, then bundles that a neighbour wants, then bundles that a
    neighbour has and this node wants, then all others."""
    who = net.nodes[node]
    if who.busy > 0 or (rules.lists and begins_list(net, rules, node)):
        return
    count = look_round(net, node)
    if count == 0:
        return
    if rules.wanted_first:
        for place in range(count):
            link = net.worth_trying[place]
            may = not has_nothing(net, link) and may_miss(net, rules, net.links[link].receiver)
            if may and begin_bundle(net, rules, link, True):
                return
        for place in range(count if may_miss(net, rules, node) else 0):
            link = net.worth_trying[place] ^ 1
            if not has_nothing(net, link) and begin_bundle(net, rules, link, True):
                return
    if rules.best_of_links:
        begin_best(net, rules, count)
        return
    for place in range(count):
        link = net.worth_trying[place]
        if not has_nothing(net, link) and begin_bundle(net, rules, link, False):
            return


@step
def begins_list(net: Net, rules: RouterRules, node: int) -> bool:
    """Whether a list of the node's was due, and is begun."""
    link = net.nodes[node].first
    while link != NONE:
        if may_begin(net, link):
            begin_list(net, rules, link)
            if net.nodes[node].busy > 0:
                return True
        link = net.links[link].next
    return False


@step
def look_round(net: Net, node: int) -> int:
    """Note the links to neighbours who are free and to whom, or from whom, there may be something; how many."""
    count, gained, link = 0, net.nodes[node].gained, net.nodes[node].first
    while link != NONE:
        at = net.links[link]
        other = net.nodes[at.receiver]
        if other.busy == 0 and (at.nothing != gained or net.links[link ^ 1].nothing != other.gained):
            net.worth_trying[count] = link
            count += 1
        link = at.next
    return count


@step
def begin_bundle(net: Net, rules: RouterRules, link: int, wanted_only: bool) -> bool:
    """Whether there is a bundle for the receiver; then the best one is begun."""
    if not knows_enough(net, rules, link):
        return False
    bundle = choose(net, rules, link, wanted_only)
    if bundle == NONE:
        return False
    begin(net, rules, link, bundle, net.bundles[bundle].size_bytes)
    return True


@step
def begin_best(net: Net, rules: RouterRules, count: int) -> None:
    """Of the best bundles for each neighbour that is worth trying, begin the best."""
    best_link, best, best_offer = NONE, NONE, Offer(False, 0, 0.0, 0.0, 0.0, 0.0)
    for place in range(count):
        link = net.worth_trying[place]
        if not has_nothing(net, link) and knows_enough(net, rules, link):
            bundle = choose(net, rules, link, False)
            if bundle != NONE:
                offer = offer_of(net, rules, link, bundle)
                if best == NONE or goes_before(rules, offer, best_offer, False):
                    best_link, best, best_offer = link, bundle, offer
    if best != NONE:
        begin(net, rules, best_link, best, net.bundles[best].size_bytes)


@step
def drop_old(net: Net, node: int) -> None:
    """Drop what has too little of its lifetime left, unless the node is sending: then it looks when it is done."""
    unit_s, now_s = net.medium.lifetime_unit_s, net.run[0].now_s
    if net.nodes[node].sending > 0:
        return
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
