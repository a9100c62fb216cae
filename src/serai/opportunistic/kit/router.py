"""What the author of a protocol writes: one class, derived from `Router`. One object of it runs at each node.

The engine keeps time, contacts, lists, queues, transfers, stores, deliveries and logs. A router sees its own state and
what neighbours sent, never another router, a clock or the event loop. Every method may be left as it is: then it is
flooding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from serai.own.content import entries_of
from serai.own.declaring import Guarded, drawn, put

MOST_HOPS = 255


class Copy(Guarded):
    """A bundle in a node's store."""

    __slots__ = (
        "arrived_s", "channel", "created_s", "expires_s", "hops", "id", "note", "sent", "size_bytes", "source",
    )  # fmt: skip

    id: int  # in order of creation
    source: int  # the node that published it
    channel: int
    created_s: float
    expires_s: float  # when it is thrown away everywhere
    size_bytes: int
    arrived_s: float  # when this copy came here
    hops: int  # transfers from the source to here
    sent: int  # how often this copy was handed on
    note: Any  # the holder's own; it dies with the copy, and never travels

    def __init__(self, id: int, source: int, channel: int, created_s: float, expires_s: float, size_bytes: int) -> None:
        put(self, id=id, source=source, channel=channel, created_s=created_s, expires_s=expires_s)
        put(self, size_bytes=size_bytes, arrived_s=created_s, hops=0, sent=0, note=None)

    def passed_on(self, arrived_s: float) -> Copy:
        """The same bundle one hop further."""
        fresh: Any = _Open.__new__(_Open)
        fresh.id, fresh.source, fresh.channel, fresh.size_bytes = self.id, self.source, self.channel, self.size_bytes
        fresh.created_s, fresh.expires_s, fresh.arrived_s = self.created_s, self.expires_s, arrived_s
        fresh.hops, fresh.sent, fresh.note = min(self.hops + 1, MOST_HOPS), 0, None
        fresh.__class__ = Copy
        made: Copy = fresh
        return made


class _Open(Copy):
    """A copy that is being made: filling it so is ten times as fast as `put`, and a run makes many."""

    __slots__ = ()
    __setattr__ = object.__setattr__  # type: ignore[assignment]


class Peer(Guarded):
    """A neighbour during one contact, as one side sees it."""

    __slots__ = ("bytes_in", "bytes_out", "carries", "channels", "id", "lists", "live", "note", "rate_bps", "since_s")
    OWN = ("note", "channels")

    id: int
    since_s: float  # when the contact began
    carries: bool  # whether it carries bundles for others
    rate_bps: float
    lists: int  # of its lists, how many have arrived in this contact
    bytes_in: int  # what came from it in this contact
    bytes_out: int
    channels: Any  # those that its last list said it wants; the default `hear` sets them
    note: Any  # this router's own, for the contact
    live: Any  # the channels it wants now, where there are no lists; else None

    def __init__(self, id: int, since_s: float, carries: bool, rate_bps: float, live: Any) -> None:
        put(self, id=id, since_s=since_s, carries=carries, rate_bps=rate_bps, live=live)
        put(self, lists=0, bytes_in=0, bytes_out=0, channels=frozenset(), note=None)

    def wants(self, copy: Copy) -> bool:
        """Whether it has subscribed to the bundle, as far as this node knows."""
        return copy.channel in (self.channels if self.live is None else self.live)


class Router:
    """A protocol: override what makes yours different."""

    leaves_out_seen: bool = True
    """Whether a neighbour is offered only what it has not seen; `start` may change it."""
    lists: ClassVar[bool | None] = None
    """Whether lists are exchanged: None: unless `seen = "live"`; True: always."""
    stable: ClassVar[bool] = False
    """Whether what `offers` and `priority` say of a copy for a neighbour changes only when this node hears a list, when
    that copy is transferred or when somebody subscribes: then they are not asked again before."""
    free_lists: bool = False
    """Whether lists arrive when a contact begins, for nothing, and are not sent again: only for comparisons with
    simulators in which that is so; `start` may change it."""
    best_of_links: bool = False
    """With one thing at a time (`radio.single`): the best bundle for all neighbours goes first, by `priority`, instead
    of the best one for the first neighbour; `start` may change it."""
    every_s: float | None = None
    """`periodic` is called at multiples of it; `start` may change it."""

    node: int
    """Its number."""
    store: Mapping[int, Copy]
    """Its copies, by id."""
    subscriptions: Mapping[int, tuple[int, float]]
    """Its own subscriptions, by id: the channel, and since when."""
    capacity_bytes: int

    _key: int
    _discard: Any

    def start(self) -> None:
        """A run begins: state goes into `self`, here. There is no `__init__`."""

    def created(self, copy: Copy, now: float) -> None:
        """The node has published a bundle: set `copy.note`."""

    def contact_up(self, peer: Peer, now: float) -> None:
        """A contact begins; nothing is known of the peer but its number."""

    def contact_down(self, peer: Peer, now: float) -> None:
        """It is over."""

    def tell(self, peer: Peer, now: float) -> Any:
        """What to tell a neighbour: plain data (numbers, texts, tuples, dicts, sets). Bytes and time are charged."""
        return frozenset(channel for channel, _ in self.subscriptions.values())

    def entries(self, content: Any) -> int:
        """For how many entries a list is charged; no less than its size allows."""
        return entries_of(content)

    def hear(self, peer: Peer, content: Any, now: float) -> None:
        """A neighbour's list has arrived: what its `tell` returned, frozen."""
        peer.channels = content

    def wanted(self, copy: Copy, peer: Peer) -> bool:
        """Whether the peer itself wants it."""
        return peer.wants(copy)

    def offers(self, copy: Copy, peer: Peer, now: float) -> bool:
        """Whether it is in the peer's queue. Asked only of copies in the store that the peer has not seen."""
        return True

    def priority(self, copy: Copy, peer: Peer, now: float) -> Any:
        """A number, or a tuple of numbers: the highest goes first, ties by `before`, then by the setting `order`."""
        return 0

    def before(self, one: Copy, other: Copy, peer: Peer) -> float:
        """Between copies of the same priority, where no number says it (votes): above 0, 0 or below 0.

        `one` is younger than `other`, the best so far: bundles are looked at in order of creation.
        """
        return 0

    def attach(self, copy: Copy, peer: Peer, now: float) -> Any:
        """A transfer begins: plain data that travels with the copy (tokens, a path). Above 16 bytes it is charged."""
        return None

    def sent(self, copy: Copy, peer: Peer, attached: Any, accepted: bool, now: float) -> None:
        """The transfer is over: accepted; or broken, late, a duplicate or refused (take tokens back)."""

    def received(self, copy: Copy, peer: Peer, attached: Any, now: float) -> None:
        """A new copy is here, before it is stored and delivered."""

    def evict(self, copies: Sequence[Copy], now: float) -> Copy | None:
        """The store is full: which of these leaves? None: the new one is refused. Else: `nodes.when_full`."""
        raise NotImplementedError

    def dropped(self, copy: Copy, reason: str, now: float) -> None:
        """A copy has left: "expired" or "evicted"."""

    def periodic(self, now: float) -> None:
        """If the class sets `every_s`: at each multiple of it, before turns."""

    # ---- provided

    def wants(self, copy: Copy) -> bool:
        """Whether the node itself has subscribed to the bundle."""
        return any(channel == copy.channel for channel, _ in self.subscriptions.values())

    def discard(self, id: int, may_return: bool = False) -> bool:
        """Let go of a copy; False while it is being sent, or if it is not there. `may_return`: as if it had never been
        seen, so that neighbours may bring it again."""
        return bool(self._discard(id, may_return))

    def random(self, now: float, *what: int) -> float:
        """A number in [0, 1) that depends on the run, the node, the time and `what`: ask again, get it again."""
        return drawn(self._key, self.node, now, what)
