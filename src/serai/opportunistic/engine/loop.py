"""The loop that all routers of opportunistic networks share: contacts, lists, queues, transfers, stores.

DPSP's core operation, with the protocol's own answers where it asks (`serai.opportunistic.routing`): what a list says,
what is learned from it, what is offered, what goes first, who keeps copies. What happens at one instant happens in this
order (docs/dpsp.md):

    transfers end > contacts end > bundles expire > subscriptions begin and end > bundles are born > contacts begin >
    nodes take their turns, in an order drawn for the instant: they begin what there is to send

This is the fast twin of `serai.opportunistic.router`: the same rules, over arrays.
"""

from serai.core.jit import engine, shared
from serai.core.rules import step
from serai.opportunistic.engine.answers import compiled_rules, protocol_of
from serai.opportunistic.engine.changes import begin_contacts, change_subscriptions, end_contacts, expire, give_births
from serai.opportunistic.engine.links import schedule
from serai.opportunistic.engine.setup import drive, lay_out, outcome_of, size_of
from serai.opportunistic.engine.state import IDLE, NONE, UNFINISHED, Medium, Net, Outcome
from serai.opportunistic.engine.transfers import finish, give_up
from serai.opportunistic.engine.turns import take_turns
from serai.opportunistic.engine.waiting import stir, stir_all
from serai.opportunistic.rules import RouterRules, instant_key
from serai.opportunistic.settings import RouterSettings
from serai.opportunistic.world import ContactWorld, check


def simulate(world: ContactWorld, medium: Medium, settings: RouterSettings) -> Outcome:
    """Run a router over a world of contacts."""
    check(world)
    rules, room = compiled_rules(settings), protocol_of(settings).room_for(size_of(world))
    net = drive(lay_out(world, medium, rules, room), lambda state: advance(state, rules))
    return outcome_of(net)


@engine
def advance(net: Net, rules: RouterRules) -> bool:
    """Run to the end; or return False, between two instants, if a log must be grown first."""
    net = shared(net)
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
            begin_contacts(net, rules)
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
    short = run.transfers + len(net.links) > len(net.transfer_log) or run.drops + more > len(net.drop_log)
    return bool(short or run.listings + len(net.links) > len(net.list_log))


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
def finish_what_is_due(net: Net, rules: RouterRules) -> None:
    """Transfers that end now have arrived; senders of lists that are due now may send them."""
    while net.run[0].links > 0 and net.links[net.heap[0]].when_s <= net.run[0].now_s:
        link = net.heap[0]
        if net.links[link].carries == NONE:
            schedule(net, link, IDLE)
            stir(net, net.links[link].sender)
        else:
            finish(net, rules, link)


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
