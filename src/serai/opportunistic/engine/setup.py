"""From a world to the state of a run, bigger logs when a run outgrows them, and from the state to the outcome."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from serai.core.progress import measured_by
from serai.opportunistic.engine.state import (
    BITS,
    BUNDLE,
    CONTACT,
    DELIVERY,
    DROP,
    DROPS,
    LINK,
    LINK_WORD,
    LISTING,
    NODE,
    NONE,
    RUN,
    SUBSCRIPTION,
    TRANSFER,
    TRANSFERS,
    VIEW,
    WORD,
    Medium,
    Net,
    Outcome,
    Records,
)
from serai.opportunistic.routing import Room, Size
from serai.opportunistic.rules import (
    BLOOM,
    EVICT_FIRST_IN,
    EVICT_LEAST_WANTED,
    EVICT_MOST_COPIED,
    RouterRules,
    bloom_size,
)
from serai.opportunistic.world import Bundles, ContactWorld, Subscriptions
from serai.world.contacts import Contacts, in_order
from serai.world.orders import order_of

_FIRST_LOG = 1 << 14


def lay_out(world: ContactWorld, medium: Medium, rules: RouterRules, room: Room) -> Net:
    """The state at the start of a run; `room`: what the protocol wants to keep."""
    contacts = contact_records(contacts_that_count(world.contacts, medium))
    bundles, subscriptions = bundle_records(world.bundles), subscription_records(world.subscriptions)
    nodes, channels, count = world.nodes, size_of(world).channels, len(bundles)
    words = max((count + BITS - 1) // BITS, 1)
    links = 2 * most_at_once(contacts)
    listed = links if rules.lists else 0
    people = records(nodes, NODE, first=NONE, last=NONE)
    people.carries, people.mixed = world.carries, mixed(nodes)
    rows = _FIRST_LOG if medium.full_log else 0
    return Net(
        medium=medium,
        run=records(1, RUN, free=links // 2),
        contacts=contacts,
        bundles=bundles,
        subscriptions=subscriptions,
        nodes=people,
        links=records(links, LINK),
        free=2 * np.arange(links // 2 - 1, -1, -1, dtype=np.int32),
        heap=np.empty(links, np.int32),
        line=np.empty(nodes, np.int64),
        sorting=np.empty(nodes, np.int64),
        places=np.empty(nodes + 1, np.int32),
        worth_trying=np.empty(links, np.int32),
        alive=np.zeros(words, np.int64),
        words=records((nodes, words), WORD),
        hops=np.zeros((nodes, count), np.uint8),
        holders=np.zeros((nodes, words) if medium.keep_own > 1 else (0, 0), np.int64),
        came_s=np.zeros((nodes, count) if medium.when_full == EVICT_FIRST_IN else (0, 0)),
        handed_on=np.zeros((nodes, count) if medium.when_full == EVICT_MOST_COPIED else (0, 0), np.int32),
        asked=np.zeros((nodes, channels) if medium.when_full == EVICT_LEAST_WANTED else (0, 0), np.int32),
        copies=np.zeros((nodes, count) if rules.copies > 0 else (0, 0), np.int16),
        link_words=records((links, words), LINK_WORD),
        row=np.zeros((listed, room.in_list)),
        views=records((listed, channels), VIEW),
        wants=np.zeros((channels, nodes), np.int16),
        memory=np.full((nodes, room.in_memory), room.at_first),
        filter=np.zeros(bloom_size(rules.bloom_bits, count) if rules.seen == BLOOM else 0, np.uint8),
        deliveries=records(most_deliveries(world.bundles, world.subscriptions, channels), DELIVERY),
        transfers=np.zeros(len(TRANSFERS), np.int64),
        drops=np.zeros(len(DROPS), np.int64),
        transfer_log=records(rows, TRANSFER),
        drop_log=records(rows, DROP),
        list_log=records(rows, LISTING),
    )


def size_of(world: ContactWorld) -> Size:
    """How large the world is; there is always a channel."""
    return Size(world.nodes, max(world.channels, 1), len(world.subscriptions.node))


def contact_records(contacts: Contacts) -> Records:
    """Contacts as the kernel reads them."""
    made = records(len(contacts.a), CONTACT, link=NONE)
    made.a, made.b, made.up_s, made.down_s = contacts
    made.by_down = order_of(contacts.down_s)
    return made


def bundle_records(bundles: Bundles) -> Records:
    """Bundles as the kernel reads them."""
    made = records(len(bundles.source), BUNDLE)
    made.source, made.channel, made.created_s = bundles.source, bundles.channel, bundles.created_s
    made.mixed = mixed(len(bundles.source))
    made.size_bytes, made.expires_s = bundles.size_bytes, bundles.created_s + bundles.lifetime_s
    made.by_expiry = order_of(made.expires_s)
    return made


def subscription_records(subscriptions: Subscriptions) -> Records:
    """Subscriptions as the kernel reads them; time begins at 0."""
    made = records(len(subscriptions.node), SUBSCRIPTION)
    made.node, made.channel = subscriptions.node, subscriptions.channel
    made.from_s, made.to_s = np.maximum(subscriptions.from_s, 0.0), subscriptions.to_s
    made.by_end = order_of(made.to_s)
    return made


def records(shape: int | tuple[int, int], dtype: np.dtype[np.void], **fields: int) -> Records:
    """Blank records, with the given fields set in all of them."""
    made = np.zeros(shape, dtype).view(np.recarray)
    for name, value in fields.items():
        made[name] = value
    return made


def mixed(count: int) -> NDArray[np.uint32]:
    """`mix(number + 1)` of so many numbers: products of 32-bit words overflow as they should."""
    h = np.arange(1, count + 1, dtype=np.uint32)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x21F0AAAD)
    h ^= h >> np.uint32(15)
    h *= np.uint32(0x735A2D97)
    h ^= h >> np.uint32(15)
    return h


def contacts_that_count(contacts: Contacts, medium: Medium) -> Contacts:
    """The contacts that last and begin within the run; with ticks, as they are seen at ticks.

    On a contact of no length nothing can be sent. A tick sees a contact from the first tick not before its begin up to
    the first not before its end; one between two ticks is never seen.
    """
    if medium.step_s > 0:
        up_s, down_s = (np.ceil(time_s / medium.step_s) * medium.step_s for time_s in (contacts.up_s, contacts.down_s))
        contacts = in_order(Contacts(contacts.a, contacts.b, up_s, down_s))
    counts = (contacts.up_s < contacts.down_s) & (contacts.up_s <= medium.duration_s)
    return contacts if counts.all() else contacts.at(counts)


def most_at_once(contacts: Records) -> int:
    """How many contacts there are at most at one time."""
    begun = np.arange(1, len(contacts) + 1)
    over = np.searchsorted(contacts.down_s[contacts.by_down], contacts.up_s, side="right")
    return int((begun - over).max(initial=0))


def most_deliveries(bundles: Bundles, subscriptions: Subscriptions, channels: int) -> int:
    """How many deliveries there can be: every bundle to everybody who ever subscribes to its channel."""
    subscribers = np.bincount(subscriptions.channel, minlength=channels)
    return int(subscribers[bundles.channel].sum())


def drive(net: Net, advance: Callable[[Net], bool]) -> Net:
    """Let `advance` run to the end; whenever it stops short of room in the logs, they are grown."""
    run, duration_s = net.run, max(net.medium.duration_s, 1e-9)
    with measured_by(lambda: float(min(run[0].now_s / duration_s, 1.0))):
        while not advance(net):
            net = net._replace(
                transfer_log=with_room(net.transfer_log, int(net.run[0].transfers), most_logged(net)),
                drop_log=with_room(net.drop_log, int(net.run[0].drops), most_logged(net)),
                list_log=with_room(net.list_log, int(net.run[0].listings), len(net.links)),
            )
    return net


def most_logged(net: Net) -> int:
    """How many rows one instant can add to a log at most."""
    return int(net.run[0].stored) + len(net.links) + len(net.bundles) - int(net.run[0].born)


def with_room(log: Records, used: int, more: int) -> Records:
    """The log with room for `more` rows, twice as long as it is full."""
    grown = records(2 * (used + more) + 1, log.dtype)
    grown[:used] = log[:used]
    return grown


def outcome_of(net: Net) -> Outcome:
    """What a finished run gave."""
    run, rows = net.run[0], net.deliveries[: net.run[0].deliveries]
    rest_s = net.medium.duration_s - net.nodes.since_s
    return Outcome(
        delivery_bundle=rows.bundle.copy(),
        delivery_node=rows.node.copy(),
        delivery_s=rows.time_s.copy(),
        delivery_hops=rows.hops.copy(),
        payload_bytes=int(run.payload_bytes),
        control_bytes=int(run.control_bytes),
        wasted_bytes=int(run.wasted_bytes),
        lists=int(run.lists),
        contacts=int(run.up),
        transfers=dict(zip(TRANSFERS, net.transfers.tolist(), strict=True)),
        drops=dict(zip(DROPS, net.drops.tolist(), strict=True)),
        relays=net.bundles.relays.copy(),
        stored_byte_s=net.nodes.stored_byte_s + net.nodes.used_bytes * rest_s,
        peak_bytes=net.nodes.peak_bytes.copy(),
        transfer_log=net.transfer_log[: run.transfers].copy(),
        drop_log=net.drop_log[: run.drops].copy(),
        list_log=net.list_log[: run.listings].copy() if net.medium.full_log else None,
    )
