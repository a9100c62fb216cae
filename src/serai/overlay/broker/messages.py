"""What the nodes of an overlay say to each other, and the nouns they say it with."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

FAR = 2**31 - 1
"""The distance to a root that cannot be reached."""

LIFE_BITS = 32
"""How many bits of the numbers and labels that a node gives count within one life; those above are its incarnation."""


def incarnation_of(number: int) -> int:
    """In which life a node gave this number or label."""
    return number >> LIFE_BITS


class Key(NamedTuple):
    """A node's place in a tree; see serai.overlay.tinymq."""

    head: int
    length: int
    depth: int


class Prefix(NamedTuple):
    """All rendezvous keys that begin with the first `length` bits of `head`; the other bits of it are zero."""

    head: int
    length: int


Region = tuple[Prefix, ...]
"""The rendezvous keys that begin with one of these; none of the prefixes begins another."""

EVERYTHING: Region = (Prefix(0, 0),)


@dataclass(frozen=True, eq=False)
class Query:
    """What a subscriber asks for: a box of values, and the box of cells that it touches."""

    name: Hashable
    low: tuple[float, ...]
    high: tuple[float, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Event:
    """What a publisher has to say: a value for each attribute, and the rendezvous key that they make."""

    name: Hashable
    values: tuple[float, ...]
    rendezvous_key: int


# ---- messages


@dataclass(frozen=True)
class Info:
    """III.B, info(X): the sender's key in each tree (None: it does not stand in it), and its hops to each root.

    Beyond the paper: its parent in each tree, or whom it has asked to be that; whom it counts among its neighbours (a
    link is one that both ends count); and a number that grows with everything the sender says of itself.
    """

    keys: tuple[Key | None, ...]
    hops: tuple[int, ...]
    parents: tuple[int | None, ...]
    neighbors: frozenset[int]
    number: int

    def differs_from(self, earlier: "Info") -> bool:
        """Whether it says something that the earlier one did not."""
        return replace(earlier, number=self.number) != self


@dataclass(frozen=True)
class Join:
    """Let me be your child in this tree; this is what I stand for now."""

    tree: int
    info: Info


@dataclass(frozen=True)
class Assign:
    """You are my nth child in this tree, where this is my key; in answer to the `Join` of this number."""

    tree: int
    nth: int
    parent: Key
    number: int


@dataclass(frozen=True)
class Disown:
    """You are not the child of mine in this tree that you said to be, in the `Info` of this number."""

    tree: int
    number: int


@dataclass(frozen=True)
class Leave:
    """I am about to go."""

    number: int


@dataclass(frozen=True)
class Subscribe:
    """Algorithm 3.1: these rendezvous keys of a query, on their way to their rendezvous in a tree.

    From now on sender and receiver know this subquery by the sender's `label`. The `version` grows whenever the query
    is renewed. The sender itself remembers the subquery for another `lease_s`, and the receiver no longer. `path` are
    the nodes where these rendezvous keys have been: while trees change they might go round in circles.
    """

    query: Query
    version: int
    tree: int
    region: Region
    label: int
    lease_s: float
    path: tuple[int, ...]


@dataclass(frozen=True)
class Accept:
    """I have the subquery that you gave this label."""

    label: int


@dataclass(frozen=True)
class Broken:
    """A part of the subquery that you gave this label was lost: its query should be sent anew."""

    label: int


@dataclass(frozen=True)
class Unsubscribe:
    """Forget the subquery that I gave this label."""

    label: int


@dataclass(frozen=True)
class Publish:
    """Algorithm 3.2: an event on its way to its rendezvous in a tree, and the nodes where it has been."""

    event: Event
    tree: int
    path: tuple[int, ...]


@dataclass(frozen=True)
class Notify:
    """An event that matches, on its way back along the subquery that you gave this label."""

    event: Event
    label: int


Message = Info | Join | Assign | Disown | Leave | Subscribe | Accept | Broken | Unsubscribe | Publish | Notify


# ---- what a broker wants done


@dataclass(frozen=True)
class Send:
    """Send the message to a neighbour; to all of them at once if `to` is None."""

    to: int | None
    message: Message


@dataclass(frozen=True)
class Deliver:
    """Give the event to the local subscriber who asked this query; once, and never again."""

    event: Event
    query: Query


@dataclass(frozen=True)
class Drop:
    """The message ends here without having arrived."""

    message: Message
    reason: Literal["no-route", "loop", "broken-path", "duplicate", "unwanted"]


Effect = Send | Deliver | Drop
