"""Turns: what a node begins to send when its turn comes."""

from serai.core.rules import step
from serai.opportunistic.engine.forwarding import choose
from serai.opportunistic.engine.state import NONE, Net
from serai.opportunistic.engine.transfers import begin, begin_list, finish, knows_enough, may_begin
from serai.opportunistic.engine.waiting import node_in_line, sort_line
from serai.opportunistic.rules import RouterRules


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
