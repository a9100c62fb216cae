"""A router as a pure object, for a node in the field: what happens goes in, what to do comes out.

It reads no clock and does no I/O: whoever drives it (a live node, or a test that joins several in memory) says what has
happened and when, and asks for the next message whenever a link has room for one. It needs neither numpy nor numba.

    router = Router(3, dpsp.PROTOCOL, dpsp.rules_of(dpsp.Settings()))
    router.subscribe(7, "news", now_s=0.0)             -> bundles carried so far that are now delivered
    router.contact_up(8, now_s=5.0, rate_bps=1e6)
    router.next_message(8, now_s=5.0)                  -> ControlMessage (a list) or DataMessage (a bundle), or None
    router.sent(8, message, accepted=True)             it has ended; several may be under way at once
    router.receive_control(8, message, now_s=5.1)      -> entries that were news
    router.receive_data(8, message, now_s=5.2)         -> Received: what became of it, and whether it is delivered
    router.contact_down(8)
    router.expire(now_s=7.0)                           -> bundles dropped

Nodes and peers are called by anything that can be a key of a dict; a name that is not a number needs a `mark`, by which
it takes part in random orders. A bundle's `key` is its place in order of creation, its `mark` is its name.

The compiled twin for simulations is `serai.opportunistic.engine`; both ask the same rules, and random tests hold them
equal.
"""

from serai.opportunistic.router.knowledge import Matching
from serai.opportunistic.router.messages import Bundle, ControlMessage, DataMessage
from serai.opportunistic.router.router import Received, Router

__all__ = ["Bundle", "ControlMessage", "DataMessage", "Matching", "Received", "Router"]
