"""Why events never reached who wanted them: the reasons of `serai.log.losses`, in a field.

Towards the subscriber are copies that went out for it: `stranded` means that the subscriber had left, or that the copy
was given to somebody else. They met if, while the event lived, the subscriber was within reach of a place where it lay:
its sensor's community, and those to which it was returned; under DG the sensor itself. `full` and `dead` then tell what
became of the event's own copy, which met a full queue at birth or went with its sensor.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from serai.core.interested import who_wants
from serai.field.collection.settings import CommunitySettings
from serai.field.contacts import exact_contacts, sensor_contacts
from serai.field.engine.state import DROPS, RETURN
from serai.field.log import Drops, FieldRun, Transfers
from serai.field.naps import cut
from serai.field.visits import Reach
from serai.log.losses import DEAD, EXPIRED, FULL, NEVER_MET, NOT_SENT, STRANDED, Losses
from serai.world.ranges import SensorContacts

_OF_DROP: Final = {"stranded": STRANDED, "expired": EXPIRED, "full": FULL, "dead": DEAD, "spent": NOT_SENT}

Numbers = NDArray[Any]


def losses_of(run: FieldRun) -> Losses | None:
    """Why each lost pair was lost; None without a full log."""
    if run.full is None:
        return None
    event, subscriber = lost_pairs(run)
    if not len(event):  # spares a pass over the whole log
        return Losses(event, subscriber, event, event, event)
    pair = event * len(run.world.low) + subscriber
    why = np.full(len(pair), NOT_SENT)
    node, time_s = run.world.event_sensor[event].astype(np.int64), expiry_s(run)[event]
    own = _own_copys_end(run)[event]
    why[(own == FULL) | (own == DEAD)] = own[(own == FULL) | (own == DEAD)]
    why[~_met(run, event, subscriber)] = NEVER_MET
    for rows in (run.full.transfers, run.full.drops):  # what is told of last holds
        last, found = _last_towards(run, rows, pair)
        reason = STRANDED if isinstance(rows, Transfers) else _reasons()[rows.reason[last[found]]]
        why[found] = reason
        node[found] = (rows.receiver if isinstance(rows, Transfers) else rows.node)[last[found]]
        time_s[found] = rows.time_s[last[found]]
    return Losses(event, subscriber, why, node, time_s)


def lost_pairs(run: FieldRun) -> tuple[Numbers, Numbers]:
    """Event and subscriber of each pair that was wanted and not delivered before the event grew too old."""
    world, ledger = run.world, run.ledger
    missed = who_wants(world.event_values, world.low, world.high)
    missed[ledger.reception_event, ledger.reception_subscriber] = False
    end_s = run.scenario.duration_s if ledger.ended_s is None else math.floor(ledger.ended_s) + 1
    missed &= (run.born & (expiry_s(run) < end_s))[:, None]
    event, subscriber = np.nonzero(missed)
    return event, subscriber


def contacts_of(run: FieldRun) -> SensorContacts:
    """Who could hear whom under the run's protocol, in whole seconds."""
    rules = run.scenario.protocol
    reach: Reach = getattr(rules, "reach", "touching")
    return _while_alive(run, sensor_contacts(run.world, run.scenario.duration_s, reach, rules.silent_while_pausing))


def logged_contacts(run: FieldRun) -> SensorContacts:
    """The same for the log: to the exact time, where reach is in metres."""
    if run.world.ranges is None:
        return contacts_of(run)
    silent = run.scenario.protocol.silent_while_pausing
    return _while_alive(run, exact_contacts(run.world, run.scenario.duration_s, silent))


def _while_alive(run: FieldRun, contacts: SensorContacts) -> SensorContacts:
    row, start_s, end_s = cut(run.ledger, contacts.sensor, contacts.start_s, contacts.end_s)
    pieces = SensorContacts(contacts.subscriber[row], contacts.sensor[row], start_s, end_s)
    order = np.lexsort((pieces.sensor, pieces.subscriber, pieces.start_s))
    return SensorContacts._make(column[order] for column in pieces)


def expiry_s(run: FieldRun) -> Numbers:
    """The second in which each event is first too old, as `serai.field.engine.queues.expiry_slot` says."""
    expiry: Numbers = np.floor(run.world.event_time_s + run.scenario.events.lifetime_s).astype(np.int64) + 1
    return expiry


def _reasons() -> Numbers:
    return np.array([_OF_DROP[name] for name in DROPS])


def _last_towards(run: FieldRun, rows: Transfers | Drops, pair: Numbers) -> tuple[Numbers, Numbers]:
    """The last row that concerns a copy on its way to the pair's subscriber, and which pairs have one."""
    subscribers = len(run.world.low)
    of_lost = np.zeros(len(run.world.event_sensor), np.bool_)
    of_lost[pair // max(subscribers, 1)] = True
    of_copy = np.flatnonzero((rows.addressee >= 0) & of_lost[rows.event])
    told = rows.event[of_copy].astype(np.int64) * subscribers + rows.addressee[of_copy] - len(run.world.sensor_x)
    order = np.argsort(told, kind="stable")
    place = np.searchsorted(told[order], pair, side="right") - 1
    last = of_copy[order][place] if len(order) else np.zeros(len(pair), np.int64)
    found = np.zeros(len(pair), np.bool_) if not len(order) else (place >= 0) & (told[order][place] == pair)
    return last, found


def _own_copys_end(run: FieldRun) -> Numbers:
    """Why the copy that an event's own sensor stored was dropped, as a place in `LOST`."""
    assert run.full is not None
    drops, ends = run.full.drops, np.full(len(run.world.event_sensor), EXPIRED)
    own = (drops.addressee < 0) & (drops.node == run.world.event_sensor[drops.event])
    ends[drops.event[own][::-1]] = _reasons()[drops.reason[own][::-1]]  # the first one, should it have come back
    return ends


def _met(run: FieldRun, event: Numbers, subscriber: Numbers) -> NDArray[np.bool_]:
    """Whether each pair's subscriber was ever within reach of a place where the event lay, while it lived."""
    assert run.full is not None
    world, transfers = run.world, run.full.transfers
    group_of: Numbers = np.arange(len(world.sensor_x))
    if isinstance(run.scenario.protocol, CommunitySettings):
        group_of = world.communities.of_sensor
    returned = np.flatnonzero(transfers.stored & (transfers.kind >= RETURN))
    laid = np.concatenate([np.arange(len(world.event_sensor)), transfers.event[returned]])
    group = group_of[np.concatenate([world.event_sensor, transfers.receiver[returned]])]
    since = np.concatenate([np.ceil(world.event_time_s).astype(np.int64), transfers.time_s[returned]])
    order = np.argsort(laid, kind="stable")
    first, end = (np.searchsorted(laid[order], event, side) for side in ("left", "right"))
    pair = np.repeat(np.arange(len(event)), end - first)
    place = order[np.arange(len(pair)) - np.repeat(np.cumsum(end - first) - (end - first), end - first) + first[pair]]
    within = _within_reach(run, group_of, group[place], subscriber[pair], since[place], expiry_s(run)[event[pair]])
    return np.bincount(pair[within], minlength=len(event)) > 0


def _within_reach(
    run: FieldRun, group_of: Numbers, group: Numbers, subscriber: Numbers, since: Numbers, until: Numbers
) -> NDArray[np.bool_]:
    """Whether a contact of the subscriber with a sensor of the group touches the time from `since` to `until`."""
    world, contacts = run.world, contacts_of(run)
    span = run.scenario.duration_s + 2  # no contact, and so no key below, reaches into the next one's numbers
    key = (group_of[contacts.sensor].astype(np.int64) * len(world.low) + contacts.subscriber) * span
    order = np.argsort(key + contacts.start_s, kind="stable")
    begin = (key + contacts.start_s)[order]
    last_end = np.maximum.accumulate((key + contacts.end_s)[order]) if len(order) else begin
    wanted = (group.astype(np.int64) * len(world.low) + subscriber) * span
    place = np.searchsorted(begin, wanted + np.minimum(until, span - 1), side="left") - 1
    found: NDArray[np.bool_] = (place >= 0) & (len(order) > 0)
    found[found] = last_end[place[found]] > (wanted + since)[found]
    return found
