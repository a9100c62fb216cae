"""Every table serai writes, once, as Arrow schemas; and the version of the log they make up.

Whoever writes or reads a table takes its schema from here. Units are in the names: `time_s`, `event_pj`.
Columns are non-null wherever a value always exists: they are smaller, and decode several times faster in a
browser. Each column of a run folder carries its meaning as metadata, so that a Parquet file explains itself.
"""

from __future__ import annotations

import pyarrow as pa

LOG_VERSION = 1
"""Goes up when a table or `run.json` changes in a way that an older reader would misread."""


def _column(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"meaning": meaning})


_INDEX = pa.int32()
_SECONDS = _METRES = pa.float64()
_COUNT = _PICOJOULES = pa.int64()
NUMBERS = pa.list_(pa.field("element", pa.float64(), nullable=False))
_WORD = pa.dictionary(pa.int8(), pa.string())

NODES = pa.schema(
    [
        _column("node", _INDEX, "sensors are nodes 0 .. N-1, subscriber p is node N + p"),
        _column("name", pa.string(), "name of the node; sensors read from a file keep theirs"),
        _column("kind", _WORD, "`sensor` or `subscriber`"),
        _column(
            "x_m",
            _METRES,
            "where it stands, from the left edge of the field; of a subscriber: where it starts",
        ),
        _column(
            "y_m",
            _METRES,
            "where it stands, from the lower edge of the field; of a subscriber: where it starts",
        ),
        _column("cell", _INDEX, "cell of that point: row * columns + column"),
        _column("community", _INDEX, "community of a sensor; -1 for a subscriber"),
    ]
)

TRACKS = pa.schema(
    [
        _column("subscriber", _INDEX, "number of the subscriber, 0 .. P-1"),
        _column("time_s", _SECONDS, "when it is at this turning point"),
        _column("x_m", _METRES, "where the turning point is"),
        _column("y_m", _METRES, "where the turning point is"),
    ]
)

CONTACTS = pa.schema(
    [
        _column("subscriber", _INDEX, "number of the subscriber"),
        _column("sensor", _INDEX, "number of the sensor that could hear it"),
        _column("start_s", _SECONDS, "first second of the contact"),
        _column("end_s", _SECONDS, "end of the contact (exclusive)"),
    ]
)

EVENTS = pa.schema(
    [
        _column("event", _INDEX, "number of the event, in order of birth"),
        _column("sensor", _INDEX, "where it was born"),
        _column("time_s", _SECONDS, "when it was born"),
        _column("values", NUMBERS, "value of each attribute, in the order of `attributes` in `run.json`"),
        _column("transmissions", _COUNT, "how often it was sent, by whomever to whomever, refused or not"),
    ]
)

SUBSCRIPTIONS = pa.schema(
    [
        _column("subscriber", _INDEX, "number of the subscriber"),
        _column("where", pa.string(), "the subscription as text"),
        _column("low", NUMBERS, "smallest value that matches, of each attribute; -inf: no bound"),
        _column("high", NUMBERS, "largest value that matches, of each attribute; inf: no bound"),
    ]
)

RECEPTIONS = pa.schema(
    [
        _column("event", _INDEX, "which event; each pair of event and subscriber occurs once"),
        _column("subscriber", _INDEX, "who received it"),
        _column("time_s", _SECONDS, "when; rows are in the order of happening"),
        _column("wanted", pa.bool_(), "whether the event matches the subscriber's subscription"),
    ]
)

TRANSFERS = pa.schema(
    [
        _column("time_s", _SECONDS, "when; rows are in the order of happening"),
        _column("event", _INDEX, "which event was sent"),
        _column("sender", _INDEX, "node that sent it"),
        _column("receiver", _INDEX, "node it was sent to"),
        _column("addressee", _INDEX, "subscriber (as a node) for which the copy is on its way; -1: none"),
        _column("kind", _WORD, "`source`, `relay`, `return` or `placement`: see below"),
        _column("outcome", _WORD, "`accepted`, or `refused`: the receiver's queue was full"),
    ]
)

DROPS = pa.schema(
    [
        _column("time_s", _SECONDS, "when; rows are in the order of happening"),
        _column("event", _INDEX, "of which event a copy was lost"),
        _column("node", _INDEX, "node at whose queue it was lost"),
        _column("reason", _WORD, "`expired`, `spent`, `full` or `stranded`: see below"),
    ]
)

ENERGY = pa.schema(
    [
        _column("sensor", _INDEX, "number of the sensor"),
        _column("sent", _COUNT, "event messages it sent"),
        _column("received", _COUNT, "event messages it accepted"),
        _column("event_pj", _PICOJOULES, "energy it spent on events"),
        _column(
            "control_pj",
            _PICOJOULES,
            "energy that its control messages take, whether or not the battery feels it",
        ),
    ]
)

RUN_TABLES = {
    "nodes": NODES,
    "tracks": TRACKS,
    "contacts": CONTACTS,
    "events": EVENTS,
    "subscriptions": SUBSCRIPTIONS,
    "receptions": RECEPTIONS,
    "energy": ENERGY,
}
"""The tables of every run folder, by the name of their file."""

FULL_LOG_TABLES = {"transfers": TRANSFERS, "drops": DROPS}
"""The tables of a run folder that only the full log has."""


OVERLAY_NODES = pa.schema(
    [
        _column("node", _INDEX, "number of the node"),
        _column("name", pa.string(), "name of the node; nodes read from a file keep theirs"),
        _column(
            "x_m", _METRES, "where it stands, from the left edge of the field; NaN if a file of links says no places"
        ),
        _column("y_m", _METRES, "where it stands, from the lower edge of the field; NaN likewise"),
        _column("root_of", _INDEX, "the tree whose root it is; -1: of none"),
        _column("fails", pa.bool_(), "whether it fails after the events were published"),
    ]
)

LINKS = pa.schema(
    [
        _column("node", _INDEX, "one end of the link, the lower number"),
        _column("neighbor", _INDEX, "the other end"),
    ]
)

MEMBERSHIPS = pa.schema(
    [
        _column("node", _INDEX, "number of the node"),
        _column("tree", _INDEX, "a tree in which it stands"),
        _column("parent", _INDEX, "its parent there; -1: it is the root"),
        _column("depth", _INDEX, "hops to the root along the tree"),
        _column("key_length", _INDEX, "bits of its key there"),
    ]
)

OVERLAY_EVENTS = pa.schema(
    [
        _column("event", _INDEX, "number of the event"),
        _column("node", _INDEX, "where it was published"),
        _column("values", NUMBERS, "value of each attribute, in the order of `attributes` in `run.json`"),
    ]
)

OVERLAY_SUBSCRIPTIONS = pa.schema(
    [
        _column("query", _INDEX, "number of the subscription (query)"),
        _column("node", _INDEX, "the node that asks"),
        _column("where", pa.string(), "the subscription as text"),
        _column("low", NUMBERS, "smallest value that matches, of each attribute; -inf: no bound"),
        _column("high", NUMBERS, "largest value that matches, of each attribute; inf: no bound"),
    ]
)

QUERY_MESSAGES = pa.schema(
    [
        _column("query", _INDEX, "number of the subscription"),
        _column("tree", _INDEX, "the tree that this message is for"),
        _column("node", _INDEX, "where it arrived"),
        _column("back", _COUNT, "row of the message that brought it to the sender; -1: not sent, the subscriber's own"),
        _column("hops", _INDEX, "hops from the subscriber"),
        _column("stays", pa.bool_(), "whether the node stores the query: it is a rendezvous of it"),
    ]
)

ARRIVALS = pa.schema(
    [
        _column("event", _INDEX, "number of the event"),
        _column("tree", _INDEX, "the tree that it was sent to"),
        _column("node", _INDEX, "its rendezvous there; -1: it was lost"),
        _column("hops", _INDEX, "hops from the publisher"),
    ]
)

NOTIFICATIONS = pa.schema(
    [
        _column("event", _INDEX, "number of the event"),
        _column("query", _INDEX, "the subscription that it matches, and whose node was told"),
        _column("tree", _INDEX, "the tree in which they met"),
        _column("hops", _INDEX, "hops from the publisher over the rendezvous to the subscriber"),
        _column("shortest", _INDEX, "hops from the publisher to the subscriber on the shortest path"),
        _column("again", pa.bool_(), "whether the subscriber had been told of this event before, by another tree"),
    ]
)

LOAD = pa.schema(
    [
        _column("node", _INDEX, "number of the node"),
        _column("kind", _WORD, "`event`, `query`, `notification` or `info` (an advertisement)"),
        _column("sent", _COUNT, "messages of this kind it sent"),
        _column("received", _COUNT, "messages of this kind it received"),
    ]
)

OVERLAY_TABLES = {
    "nodes": OVERLAY_NODES,
    "links": LINKS,
    "memberships": MEMBERSHIPS,
    "events": OVERLAY_EVENTS,
    "subscriptions": OVERLAY_SUBSCRIPTIONS,
    "query_messages": QUERY_MESSAGES,
    "arrivals": ARRIVALS,
    "notifications": NOTIFICATIONS,
    "load": LOAD,
}
"""The tables of the run folder of an overlay, by the name of their file."""


MOVING_NODES = pa.schema(
    [
        _column("node", _INDEX, "number of the node"),
        _column("name", pa.string(), "name of the node; nodes of a trace keep theirs"),
        _column("is_source", pa.bool_(), "whether it may publish"),
        _column("is_sink", pa.bool_(), "whether it may subscribe"),
        _column("carries", pa.bool_(), "whether it takes bundles that it has not subscribed to"),
        _column("stored_byte_s", pa.float64(), "integral of what its store held over the run"),
        _column("peak_bytes", _COUNT, "the most that its store held"),
    ]
)

MEETINGS = pa.schema(
    [
        _column("a", _INDEX, "one of the two nodes, the lower number"),
        _column("b", _INDEX, "the other one"),
        _column("up_s", _SECONDS, "when the contact begins"),
        _column("down_s", _SECONDS, "when it ends (exclusive)"),
    ]
)

CHANNELS = pa.schema(
    [
        _column("channel", _INDEX, "number of the channel"),
        _column("name", pa.string(), "its name (URI)"),
    ]
)

BUNDLES = pa.schema(
    [
        _column("bundle", _INDEX, "number of the bundle, in order of creation"),
        _column("source", _INDEX, "the node that published it"),
        _column("channel", _INDEX, "the channel it was published on"),
        _column("created_s", _SECONDS, "when"),
        _column("size_bytes", _COUNT, "how large it is"),
        _column("lifetime_s", _SECONDS, "it expires so long after its creation"),
        _column("target", _INDEX, "the one node it is for; -1: for all subscribers"),
        _column("values", NUMBERS, "value of each attribute, if subscriptions are ranges"),
        _column("relays", _COUNT, "copies of it that arrived somewhere"),
    ]
)

CHANNEL_SUBSCRIPTIONS = pa.schema(
    [
        _column("node", _INDEX, "who has subscribed"),
        _column("channel", _INDEX, "to which channel"),
        _column("from_s", _SECONDS, "from when; -inf: before the run"),
        _column("to_s", _SECONDS, "until when (exclusive); inf: beyond the run"),
    ]
)

RANGES = pa.schema(
    [
        _column("node", _INDEX, "who has subscribed to a range"),
        _column("where", pa.string(), "the subscription as text"),
        _column("low", NUMBERS, "smallest value that matches, of each attribute; -inf: no bound"),
        _column("high", NUMBERS, "largest value that matches, of each attribute; inf: no bound"),
    ]
)

DELIVERIES = pa.schema(
    [
        _column("bundle", _INDEX, "number of the bundle"),
        _column("node", _INDEX, "the subscriber that got it"),
        _column("time_s", _SECONDS, "when"),
        _column("hops", _INDEX, "transfers from the source"),
    ]
)

BUNDLE_TRANSFERS = pa.schema(
    [
        _column("start_s", _SECONDS, "when it began"),
        _column("end_s", _SECONDS, "when it ended, or broke"),
        _column("bytes", _COUNT, "bytes sent"),
        _column("bundle", _INDEX, "number of the bundle"),
        _column("sender", _INDEX, "from which node"),
        _column("receiver", _INDEX, "to which node"),
        _column("outcome", _WORD, "`relayed`, `duplicate`, `refused`, `late`, `broken` or `unfinished`"),
    ]
)

BUNDLE_DROPS = pa.schema(
    [
        _column("time_s", _SECONDS, "when"),
        _column("bundle", _INDEX, "number of the bundle"),
        _column("node", _INDEX, "whose store it left, or had no room for it"),
        _column("reason", _WORD, "`expired`, `evicted` or `full`"),
    ]
)

CONTACTS_TABLES = {
    "nodes": MOVING_NODES,
    "contacts": MEETINGS,
    "channels": CHANNELS,
    "bundles": BUNDLES,
    "subscriptions": CHANNEL_SUBSCRIPTIONS,
    "ranges": RANGES,
    "deliveries": DELIVERIES,
}
"""The tables of the run folder of an opportunistic network, by the name of their file."""

CONTACTS_FULL_LOG_TABLES = {"transfers": BUNDLE_TRANSFERS, "drops": BUNDLE_DROPS}
"""Those that only its full log has."""
