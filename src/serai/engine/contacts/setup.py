"""From a world to the state of a run, bigger logs when a run outgrows them, and from the state to the outcome."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.engine.contacts.state import (
    BITS,
    CLOCK,
    DELIVERY,
    DROP,
    DROPS,
    LINK,
    NODE,
    NONE,
    TALLY,
    TRANSFER,
    TRANSFERS,
    Medium,
    Net,
    Outcome,
    Records,
)
from serai.world.bundles import Bundles, ContactWorld, Subscriptions
from serai.world.meetings import Meetings

_FIRST_LOG = 1 << 14


class Needs(NamedTuple):
    """What a protocol wants the state to have room for."""

    lists: bool = False
    row: int = 1  # length of a list's row
    subscription_lists: bool = False
    copies: bool = False
    predictabilities: bool = False
    filter_bits: int = 8


def lay_out(world: ContactWorld, medium: Medium, needs: Needs) -> Net:
    """The state at the start of a run."""
    meetings = meetings_that_count(world.meetings, medium)
    bundles, subscriptions = world.bundles, world.subscriptions
    nodes, channels, count = world.nodes, max(world.channels, 1), len(bundles.source)
    words = max((count + BITS - 1) // BITS, 1)
    links = 2 * most_at_once(meetings)
    expires_s = bundles.created_s + bundles.lifetime_s
    from_s = np.maximum(subscriptions.from_s, 0.0)
    listed = links if needs.lists else 0
    people = records(nodes, NODE, first=NONE, last=NONE)
    people.carries = world.carries
    rows = _FIRST_LOG if medium.full_log else 0
    return Net(
        medium=medium,
        clock=records(1, CLOCK),
        tally=records(1, TALLY, free=links // 2),
        a=meetings.a,
        b=meetings.b,
        up_s=meetings.up_s,
        down_s=meetings.down_s,
        by_down=order_of(meetings.down_s),
        source=bundles.source.astype(np.int32),
        channel=bundles.channel.astype(np.int32),
        created_s=bundles.created_s.astype(np.float64),
        expires_s=expires_s.astype(np.float64),
        size_bytes=bundles.size_bytes.astype(np.int64),
        by_expiry=order_of(expires_s),
        subscriber=subscriptions.node.astype(np.int32),
        subscribed=subscriptions.channel.astype(np.int32),
        from_s=from_s,
        to_s=subscriptions.to_s.astype(np.float64),
        by_end=order_of(subscriptions.to_s),
        nodes=people,
        links=records(links, LINK),
        link_of=np.empty(len(meetings.a), np.int32),
        free=np.arange(links - 2, -1, -2, dtype=np.int32) if links else np.empty(0, np.int32),
        heap=np.empty(links, np.int32),
        line=np.empty(nodes, np.int64),
        alive=np.zeros(words, np.int64),
        store=np.zeros((nodes, words), np.int64),
        seen=np.zeros((nodes, words), np.int64),
        given=np.zeros((nodes, words), np.int64),
        wanted=np.zeros((nodes, words), np.int64),
        hops=np.zeros((nodes, count), np.uint8),
        copies=np.zeros((nodes, count) if needs.copies else (0, 0), np.int16),
        known=np.zeros((links, words), np.int64),
        told=np.zeros((listed, words), np.int64),
        row=np.zeros((listed, needs.row)),
        theirs=np.zeros((listed, channels)),
        mine=np.zeros((listed, channels)),
        popularity=np.zeros((listed, channels)),
        wants=np.zeros((channels, nodes), np.int16),
        renewed=np.full((nodes, len(from_s)) if needs.subscription_lists else (0, 0), NONE, np.int32),
        distance=np.zeros((nodes, len(from_s)) if needs.subscription_lists else (0, 0), np.int32),
        predictability=np.zeros((nodes, nodes + channels) if needs.predictabilities else (0, 0)),
        filter=np.zeros(needs.filter_bits, np.uint8),
        deliveries=records(most_deliveries(bundles, subscriptions, channels), DELIVERY),
        transfers=np.zeros(len(TRANSFERS), np.int64),
        drops=np.zeros(len(DROPS), np.int64),
        relays=np.zeros(count, np.int64),
        transfer_log=records(rows, TRANSFER),
        drop_log=records(rows, DROP),
    )


def records(count: int, dtype: np.dtype[np.void], **fields: int) -> Records:
    """So many blank records, with the given fields set in all of them."""
    made = np.zeros(count, dtype).view(np.recarray)
    for name, value in fields.items():
        made[name] = value
    return made


def order_of(times_s: NDArray[np.float64]) -> NDArray[np.int32]:
    """The rows in order of time, those of one time in the order in which they stand."""
    return np.argsort(times_s, kind="stable").astype(np.int32)


def meetings_that_count(meetings: Meetings, medium: Medium) -> Meetings:
    """The contacts that last and begin within the run; with ticks, as they are seen at ticks.

    On a contact of no length nothing can be sent. A tick sees a contact from the first tick not before its begin up to
    the first not before its end; one between two ticks is never seen.
    """
    up_s, down_s = meetings.up_s.astype(np.float64), meetings.down_s.astype(np.float64)
    if medium.step_s > 0:
        up_s, down_s = (np.ceil(time_s / medium.step_s) * medium.step_s for time_s in (up_s, down_s))
    counts = (up_s < down_s) & (up_s <= medium.duration_s)
    if counts.all():
        return Meetings(meetings.a.astype(np.int32), meetings.b.astype(np.int32), up_s, down_s)
    return Meetings(
        meetings.a[counts].astype(np.int32), meetings.b[counts].astype(np.int32), up_s[counts], down_s[counts]
    )


def most_at_once(meetings: Meetings) -> int:
    """How many contacts there are at most at one time."""
    begun = np.arange(1, len(meetings.up_s) + 1)
    over = np.searchsorted(np.sort(meetings.down_s), meetings.up_s, side="right")
    return int((begun - over).max(initial=0))


def most_deliveries(bundles: Bundles, subscriptions: Subscriptions, channels: int) -> int:
    """How many deliveries there can be: every bundle to everybody who ever subscribes to its channel."""
    subscribers = np.bincount(subscriptions.channel, minlength=channels)
    return int(subscribers[bundles.channel].sum())


def drive(net: Net, advance: Callable[[Net], bool]) -> Net:
    """Let `advance` run to the end; whenever it stops short of room in the logs, they are grown."""
    while not advance(net):
        net = net._replace(
            transfer_log=with_room(net.transfer_log, int(net.tally[0].transfers), most_logged(net)),
            drop_log=with_room(net.drop_log, int(net.tally[0].drops), most_logged(net)),
        )
    return net


def most_logged(net: Net) -> int:
    """How many rows one instant can add to a log at most."""
    return int(net.tally[0].stored) + len(net.links) + len(net.source) - int(net.tally[0].born)


def with_room(log: Records, used: int, more: int) -> Records:
    """The log with room for `more` rows, twice as long as it is full."""
    grown = records(2 * (used + more) + 1, log.dtype)
    grown[:used] = log[:used]
    return grown


def outcome_of(net: Net) -> Outcome:
    """What a finished run gave."""
    tally, rows = net.tally[0], net.deliveries[: net.tally[0].deliveries]
    rest_s = net.medium.duration_s - net.nodes.since_s
    return Outcome(
        delivery_bundle=rows.bundle.copy(),
        delivery_node=rows.node.copy(),
        delivery_s=rows.time_s.copy(),
        delivery_hops=rows.hops.copy(),
        payload_bytes=int(tally.payload_bytes),
        control_bytes=int(tally.control_bytes),
        wasted_bytes=int(tally.wasted_bytes),
        lists=int(tally.lists),
        contacts=int(tally.up),
        transfers=dict(zip(TRANSFERS, net.transfers.tolist(), strict=True)),
        drops=dict(zip(DROPS, net.drops.tolist(), strict=True)),
        relays=net.relays,
        stored_byte_s=net.nodes.stored_byte_s + net.nodes.used_bytes * rest_s,
        peak_bytes=net.nodes.peak_bytes.copy(),
        transfer_log=net.transfer_log[: tally.transfers].copy(),
        drop_log=net.drop_log[: tally.drops].copy(),
    )
