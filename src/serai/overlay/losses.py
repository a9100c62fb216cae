"""Why events were never told to who had asked: the reasons of `serai.log.losses`, in an overlay.

Links do not break, nobody moves, and nothing grows old. An event is `stranded` if it found no rendezvous in one of its
trees; `never_met` means that no tree took it at all, as in a part of the network without a root; `not_sent` that it
came to a rendezvous where the query did not lie.
"""

from __future__ import annotations

import numpy as np

from serai.core.interested import who_wants
from serai.log.losses import NEVER_MET, NOT_SENT, STRANDED, Losses
from serai.overlay.engine.state import NONE
from serai.overlay.log import OverlayRun


def losses_of(run: OverlayRun) -> Losses | None:
    """Why events were not told to subscriptions that they match, all at time 0; None without a full log."""
    if not run.full_log:
        return None
    network, arrivals, told = run.network, run.outcome.arrivals, run.outcome.notifications
    missed = who_wants(network.values, network.low, network.high)
    missed[told.event, told.query] = False
    event, subscription = np.nonzero(missed)
    why = np.full(len(network.publisher), NEVER_MET)
    why[arrivals.event] = NOT_SENT
    why[arrivals.event[arrivals.node == NONE]] = STRANDED
    node = network.publisher[event].astype(np.int64)
    return Losses(event, subscription, why[event], node, np.zeros(len(event)))
