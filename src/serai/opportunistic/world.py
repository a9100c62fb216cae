"""What an opportunistic network is given before a run: who meets whom, what is published, who wants it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.world.contacts import Contacts, pair_of
from serai.world.grid import Floats, Numbers
from serai.world.orders import order_of


class Bundles(NamedTuple):
    """What is published, in order of creation; a bundle's number is its row."""

    source: Numbers
    channel: Numbers
    created_s: Floats
    size_bytes: NDArray[np.int64]
    lifetime_s: Floats


class Subscriptions(NamedTuple):
    """Who wants which channel while `from_s` <= time < `to_s`, by (from, node, channel); each row has its own id."""

    node: Numbers
    channel: Numbers
    from_s: Floats
    to_s: Floats


class ContactWorld(NamedTuple):
    """All that is given before the first contact."""

    nodes: int
    channels: int
    contacts: Contacts
    bundles: Bundles
    subscriptions: Subscriptions
    carries: NDArray[np.bool_]  # of each node: whether it takes bundles that it has not subscribed to


class Published(NamedTuple):
    """What is published: bundles, the names of their channels, and who may publish."""

    bundles: Bundles
    channels: tuple[str, ...]
    sources: Numbers  # nodes with this role
    values: Floats  # [bundles, attributes] with ranges; else no columns
    targets: Numbers  # of each bundle: the one node it is for, or -1


class Wanted(NamedTuple):
    """Who wants what: subscriptions, who makes them, and with ranges their text and their box."""

    subscriptions: Subscriptions
    sinks: Numbers
    where: tuple[str, ...] = ()  # [sinks]
    low: Floats = np.empty((0, 0))  # [sinks, attributes]
    high: Floats = np.empty((0, 0))


def within_ranges(published: Published, wanted: Wanted, bundle: Numbers, node: Numbers) -> NDArray[np.bool_]:
    """Whether each bundle's content lies within its node's ranges; always, if there are no ranges."""
    if not wanted.low.size:
        return np.ones(len(bundle), np.bool_)
    sink = np.searchsorted(wanted.sinks, node)
    low, high, values = wanted.low[sink], wanted.high[sink], published.values[bundle]
    free = (low == -np.inf) & (high == np.inf)  # only there a missing value (NaN) matches: serai.core.content.matches
    fits: NDArray[np.bool_] = (free | ((low <= values) & (values <= high))).all(axis=1)
    return fits


def check(world: ContactWorld) -> None:
    """Complain about a world that no run can be based on."""
    a, b, up_s, down_s = world.contacts
    nodes = np.concatenate((a, b, world.bundles.source, world.subscriptions.node))
    if nodes.size and not (nodes.min() >= 0 and nodes.max() < world.nodes):
        raise BadInput(f"node {nodes.max()}: there are only {world.nodes} nodes, numbered from 0")
    if np.any(a >= b):
        raise BadInput(f"contact {int(np.argmax(a >= b))}: its nodes must be two, the one with the lower number first")
    if np.any(~(up_s <= down_s)):
        raise BadInput(f"contact {int(np.argmax(~(up_s <= down_s)))}: ends before it begins")
    if not _ascend(up_s) or not _ascend(world.bundles.created_s) or not _ascend(world.subscriptions.from_s):
        raise BadInput("contacts, bundles and subscriptions must be in order of time")
    pair = pair_of(a, b)
    by_pair = order_of(pair)  # and of one pair by time, as they stand
    if np.any((np.diff(pair[by_pair]) == 0) & (up_s[by_pair][1:] < down_s[by_pair][:-1])):
        raise BadInput("contacts of the same two nodes overlap; make them one first (serai.world.contacts.merged)")


def _ascend(times_s: Floats) -> bool:
    return bool(np.all(times_s[1:] >= times_s[:-1]))
