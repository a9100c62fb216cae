"""Random orders that need no stream: a fixed mix of (key, time, who), so that idle nodes cost nothing.

A stream of draws would tie the result to how many nodes were asked. A mix of the run's key with the slot and the
node gives every node its own place in the order of the slot, whether or not anybody else had something to send.
"""

from serai.core.rules import rule

LOW_32_BITS = 0xFFFFFFFF


@rule
def mix(number: int) -> int:
    """A 32-bit mix of a number (two multiplications, three shifts): flipping any bit flips half of the result."""
    h = int(number)  # from Python a node's number may come as numpy's 32 bits, which would overflow below
    h ^= h >> 16
    h = (h * 0x21F0AAAD) & LOW_32_BITS
    h ^= h >> 15
    h = (h * 0x735A2D97) & LOW_32_BITS
    h ^= h >> 15
    return h


@rule
def slot_key(key: int, t: int) -> int:
    """What the orders of slot t are drawn from."""
    return mix(mix(mix(key & LOW_32_BITS) ^ (key >> 32)) ^ t)


@rule
def key_in_slot(key_of_slot: int, node: int) -> int:
    """The place of a node in the order that belongs to a slot's key."""
    return mix(key_of_slot ^ mix(node + 1))


@rule
def service_key(key: int, t: int, sensor: int) -> int:
    """When the sensor's turn comes in slot t: sensors are served in increasing order of it."""
    return key_in_slot(slot_key(key, t), sensor)


@rule
def is_lost(key_of_slot: int, sender: int, receiver: int, message: int, nth: int, loss: float) -> bool:
    """Whether the nth sending of a message from one node to another is lost, as a part `loss` of all are."""
    link = mix(key_in_slot(key_of_slot, sender) ^ mix(receiver + 1))
    return mix(mix(link ^ mix(message + 1)) ^ (nth + 1)) < loss * (LOW_32_BITS + 1.0)


@rule
def contact_rank(key: int, t: int, subscriber: int, sensor: int) -> int:
    """The rank of a contact that begins in slot t among the subscriber's contacts (DG)."""
    return key_in_slot(mix(slot_key(key, t) ^ mix(subscriber + 1)), sensor)
