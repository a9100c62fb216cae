"""Transfers: a link begins to carry a bundle or a list, which arrives or does not."""

from serai.core.rules import rule, step
from serai.opportunistic.engine.forwarding import arrive, reserve_copies, return_copies
from serai.opportunistic.engine.links import schedule
from serai.opportunistic.engine.lists import learn, write_list
from serai.opportunistic.engine.state import IDLE, LIST, NONE, RELAYED, Net
from serai.opportunistic.engine.stores import note_list, note_transfer
from serai.opportunistic.engine.waiting import stir, stir_neighbours
from serai.opportunistic.rules import RouterRules, sent_bytes, transfer_s


@step
def may_begin(net: Net, link: int) -> bool:
    """Whether nothing is under way that would keep a transfer from beginning on the link."""
    at = net.links[link]
    if net.medium.single:
        return bool(net.nodes[at.sender].busy == 0 and net.nodes[at.receiver].busy == 0)
    return bool(at.carries == NONE)


@step
def knows_enough(net: Net, rules: RouterRules, link: int) -> bool:
    """Whether the sender has the receiver's list, if there are lists."""
    return bool(not rules.lists or net.links[link].lists > 0)


@step
def begin(net: Net, rules: RouterRules, link: int, what: int, size_bytes: int) -> None:
    """The sender begins to send a bundle or a list."""
    at, now_s = net.links[link], net.run[0].now_s
    at.carries, at.bytes, at.start_s = what, size_bytes, now_s
    at.end_s = now_s + transfer_s(size_bytes, net.medium.rate_bps)
    at.gives = at.reserved = 0
    if what != LIST and rules.copies > 0:
        reserve_copies(net, rules, link)
    net.nodes[at.sender].busy += 1
    net.nodes[at.sender].sending += 1
    net.nodes[at.receiver].busy += 1
    if net.medium.step_s == 0:
        schedule(net, link, at.end_s)


@step
def release(net: Net, link: int) -> None:
    """The link carries nothing any more; those who may have waited for that are stirred."""
    at = net.links[link]
    at.carries = NONE
    net.nodes[at.sender].busy -= 1
    net.nodes[at.sender].sending -= 1
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
        note_list(net, link, sent, outcome)
    else:
        return_copies(net, link)
        note_transfer(net, link, sent, outcome, False, False)
    release(net, link)


@rule
def finish(net: Net, rules: RouterRules, link: int) -> None:
    """What the link carries has arrived."""
    at = net.links[link]
    if at.carries == LIST:
        note_list(net, link, at.bytes, RELAYED)
        learn(net, rules, link)
    else:
        arrive(net, rules, link)
    release(net, link)


@step
def begin_list(net: Net, rules: RouterRules, link: int) -> None:
    """Send the sender's list, if there are lists and one is due."""
    at, now_s = net.links[link], net.run[0].now_s
    if not rules.lists or at.due_s > now_s:
        return
    at.due_s = now_s + rules.repeat_s
    begin(net, rules, link, LIST, write_list(net, rules, link))
