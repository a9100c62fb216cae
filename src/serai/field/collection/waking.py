"""Dead sensors wake: sessions of their kin end, and communities form anew."""

from serai.core.jit import step
from serai.field.collection.deaths import found_community
from serai.field.collection.kin import are_kin, form_anew, is_renewed, wake_sensors
from serai.field.collection.sessions import end_session, make_all_pending
from serai.field.collection.settings import CollectionRules
from serai.field.engine.sessions import session_of_bit
from serai.field.engine.state import NONE, UNCOUNTED, Field


@step
def wake(field: Field, rules: CollectionRules) -> None:
    """The end of the slot for sensors that have harvested enough."""
    for i in range(wake_sensors(field)):
        kin = field.power.kin[field.power.woken[i]]
        if not is_renewed(field, kin):
            end_all_sessions(field, rules, kin)
            share_who_was_met(field, rules, kin)
            form_anew(field, kin)
            forget_links(field, kin)
            for community in range(field.tally[0].communities):
                if are_kin(field, community, kin):
                    found_community(field, rules, community)


@step
def end_all_sessions(field: Field, rules: CollectionRules, kin: int) -> None:
    """All sessions of these kin end."""
    for community in range(field.tally[0].communities):
        if are_kin(field, community, kin):
            for word in range(field.communities[community].words):
                while field.in_session[community, word]:
                    end_session(field, rules, session_of_bit(field, community, word, field.in_session[community, word]))


@step
def share_who_was_met(field: Field, rules: CollectionRules, kin: int) -> None:
    """Whoever has been met by some has been met by all: what the others have stored becomes pending for them."""
    words = field.communities[kin].words
    for word in range(words):
        field.within_reach[word] = 0
    for community in range(field.tally[0].communities):
        if are_kin(field, community, kin):
            for word in range(words):
                field.within_reach[word] |= field.met[community, word]
    for community in range(field.tally[0].communities):
        group = field.communities[community]
        if not are_kin(field, community, kin):
            continue
        for word in range(words):
            bits = field.within_reach[word] & ~field.met[community, word]
            while bits:
                session = session_of_bit(field, community, word, bits)
                for i in range(group.start, group.start + group.sensors):
                    make_all_pending(field, rules, session, field.members[i])
                bits &= bits - 1
    for word in range(words):
        field.met[kin, word] = field.within_reach[word]
    for nth in range(field.communities[kin].meets):
        session = field.sessions[field.communities[kin].sessions + nth]
        session.met = bool(field.within_reach[session.word] & session.bit)


@step
def forget_links(field: Field, kin: int) -> None:
    """Nothing is on its way over any link, and nobody has counted what is pending."""
    group, members = field.communities[kin], field.power.start[kin + 1] - field.power.start[kin]
    for nth in range(group.meets):
        links = field.sessions[group.sessions + nth].links
        for i in range(members):
            link = field.links[links + i]
            link.layer, link.relayed, link.pending = NONE, NONE, UNCOUNTED
