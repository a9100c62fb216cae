"""SERAI, the obvious way, from its text alone.

    manual.py      the defaults
    messages.py    what nodes tell each other, and its size
    legs.py        places, who hears whom, walks
    routes.py      routes, walker alternative, flood and multicast: what all members of a community work out alike
    copies.py      what lies in queues
    sensor.py      what a sensor remembers and decides
    subscriber.py  what a subscriber remembers and decides
    network.py     the rules in their order within a second
    books.py       what messages cost, and the records

A `Sensor` and a `Subscriber` see only what a message told them: they have no way to reach each other or the world.
"""

from tests.field.naive.serai.network import Serai

__all__ = ["Serai"]
