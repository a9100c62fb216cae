"""A node of a key-based overlay as a pure object: what arrives goes in, what to send comes out.

messages          what nodes say to each other, and what a broker wants done
configuration     what all nodes have agreed on before they begin
membership        one node's place in the trees, and how it joins and repairs them
routes            the next hop of an event, and how a query is split among next hops
queries           its own queries, and the subqueries of others
broker            the node: what happens to it; events and notifications
"""

from serai.overlay.broker.broker import Broker
from serai.overlay.broker.configuration import NetworkConfiguration
from serai.overlay.broker.messages import Deliver, Drop, Send

__all__ = ["Broker", "Deliver", "Drop", "NetworkConfiguration", "Send"]
