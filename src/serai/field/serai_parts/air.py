"""Events that are lost on the air (`radio.loss`): sent until they are acknowledged, four times at most.

Who does not hear an event pays nothing for it. Acknowledgements, all other control messages and offers are not lost.
"""

from serai.core.jit import step
from serai.core.order import is_lost
from serai.field.engine.ledger import log_lost
from serai.field.serai_parts.control import count_message, hear, tell, tell_subscriber
from serai.field.serai_parts.state import ACK, Serai

MOST_TRIES = 4
ACK_BITS = 16


@step
def tries(net: Serai) -> int:
    """How often an event is sent at most; where nothing is lost nobody acknowledges."""
    return MOST_TRIES if net.field.limits.loss > 0.0 else 1


@step
def gets_lost(net: Serai, event: int, sender: int, receiver: int, addressee: int, kind: int, nth: int) -> bool:
    """Whether the nth sending of an event from node to node is lost; if so, it is in the log."""
    field = net.field
    lost = field.limits.loss > 0.0 and is_lost(field.clock[0].key, sender, receiver, event, nth, field.limits.loss)
    if lost:
        log_lost(field, event, sender, receiver, addressee, kind)
    return bool(lost)


@step
def acknowledge(net: Serai, sender: int, receiver: int) -> None:
    """ACK: a node that got an event says so to the node that sent it, where events may be lost."""
    sensors = len(net.field.sensors)
    if net.field.limits.loss == 0.0:
        return
    count_message(net, ACK, ACK_BITS)
    if receiver >= sensors:
        hear(net, sender, ACK_BITS)
        net.walkers[receiver - sensors].spent_bits += ACK_BITS
    elif sender >= sensors:
        tell_subscriber(net, receiver, sender - sensors, ACK_BITS)
    else:
        tell(net, receiver, sender, ACK_BITS)
