"""CED 4.1 (d): the set Z of sensors that a subscriber will pass, and the routing graph towards it (Fig. 2)."""

from serai.core.jit import step
from serai.field.collection.settings import CollectionRules
from serai.field.engine.control import tell_layers
from serai.field.engine.reach import draw_zone, in_zone, note_zone
from serai.field.engine.state import NONE, Field


@step
def renew_zone(field: Field, rules: CollectionRules, session: int) -> None:
    """Z is worked out anew from here; the layers follow when somebody has something to send."""
    note_zone(field, session, rules.zone_in_range)
    field.sessions[session].stale = True
    tell_layers(field, field.sessions[session].community)


@step
def build_layers(field: Field, rules: CollectionRules, session: int) -> None:
    """The routing graph (Fig. 2): Z is layer 0, its neighbours layer 1, and so on through the community."""
    at = field.sessions[session]
    at.stale = False
    stamp = draw_zone(field, session, rules.zone_in_range)
    if not rules.zone_pruned and layers_fit(field, session, stamp):  # a set Z alone says nothing of pruned layers
        return
    group, reached = field.communities[at.community], 0
    for member in range(group.sensors):
        sensor, link = field.members[group.start + member], field.links[at.links + member]
        link.relays = 0
        if in_zone(field, session, member, stamp):
            link.layer = 0
            field.frontier[reached] = sensor
            reached += 1
        else:
            link.layer = NONE
    # Breadth first from all of Z at once; whoever is reached is one layer farther than who reached it. On the way each
    # sensor learns how many neighbours it has one layer closer: those are its relays.
    i = 0
    while i < reached:
        sensor = field.frontier[i]
        layer = field.links[at.links + field.sensors[sensor].member].layer + 1
        for n in range(field.sensors[sensor].first_edge, field.sensors[sensor].end_edge):
            link = field.links[at.links + field.neighbor_member[n]]
            if link.layer == NONE:
                link.layer = layer
                field.frontier[reached] = field.neighbors[n]
                reached += 1
            if link.layer == layer:
                link.relays += 1
        i += 1


@step
def prune_layers(field: Field, rules: CollectionRules, session: int) -> None:
    """CET 3.2.1: sensors of layer 0 that the subscriber has left lose their place, and so do routes only to them."""
    if field.sessions[session].stale:
        build_layers(field, rules, session)  # those of the place noted last
    note_zone(field, session, rules.zone_in_range)
    at, stamp = field.sessions[session], draw_zone(field, session, rules.zone_in_range)
    tell_layers(field, at.community)
    group, reached = field.communities[at.community], 0
    for member in range(group.sensors):
        sensor, link = field.members[group.start + member], field.links[at.links + member]
        link.relays = 0
        if link.layer == 0 and in_zone(field, session, member, stamp):
            field.frontier[reached] = sensor
            reached += 1
        elif link.layer == 0:
            link.layer = NONE
    i = 0
    while i < reached:
        here = field.sensors[field.frontier[i]]
        layer = field.links[at.links + here.member].layer + 1
        for n in range(here.first_edge, here.end_edge):
            link = field.links[at.links + field.neighbor_member[n]]
            if link.layer == layer:
                if link.relays == 0:
                    field.frontier[reached] = field.neighbors[n]
                    reached += 1
                link.relays += 1
        i += 1
    for member in range(group.sensors):
        link = field.links[at.links + member]
        if link.layer > 0 and link.relays == 0:
            link.layer = NONE


@step
def layers_fit(field: Field, session: int, stamp: int) -> bool:
    """Whether the layers are those of the stamped zone already: Z is what it was, and nothing is to be done."""
    at = field.sessions[session]
    group = field.communities[at.community]
    for member in range(group.sensors):
        if in_zone(field, session, member, stamp) != (field.links[at.links + member].layer == 0):
            return False
    return True
