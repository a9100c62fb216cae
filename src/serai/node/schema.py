"""The tables of a node's store, and every statement that changes them.

The core names a statement and gives its values (`serai.node.words.Row`); only `serai.node.store` runs them.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 2

_BUNDLE: Final = """(
    id INTEGER PRIMARY KEY,             -- place in the journal; never used again
    mark INTEGER NOT NULL,              -- the same on all nodes; the core knows it once, an index costs half a commit
    source TEXT, created_ms INTEGER, sequence INTEGER, offset INTEGER,
    channel TEXT, arrived_ms INTEGER, begins_ms INTEGER, lifetime_ms INTEGER, size INTEGER,
    hops INTEGER, copies INTEGER, qos INTEGER, retain INTEGER,
    pinned INTEGER,                     -- neighbours that still have to take it before it may be evicted
    held INTEGER                        -- whether it is carried for others
);"""

TABLES: Final = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE bundle{_BUNDLE}
CREATE TABLE data(id INTEGER PRIMARY KEY, bytes BLOB);
CREATE TABLE part(id INTEGER PRIMARY KEY, first INTEGER, place INTEGER, parts INTEGER);
CREATE TABLE interest(
    id INTEGER PRIMARY KEY, session TEXT, filter TEXT, interest TEXT, share TEXT, options INTEGER, identifier INTEGER,
    since_ms INTEGER, UNIQUE(session, filter)
);
CREATE TABLE entry(
    subscriber TEXT, n INTEGER, interest TEXT, created_ms INTEGER, lifetime_ms INTEGER, renewal_ms INTEGER,
    renewed INTEGER, hops INTEGER, PRIMARY KEY(subscriber, n)
) WITHOUT ROWID;
CREATE TABLE session(
    client TEXT PRIMARY KEY, version INTEGER,
    expires_ms INTEGER,                 -- while it is connected: minus the time that it lives on without a connection
    will BLOB
) WITHOUT ROWID;
CREATE TABLE outbox(
    session TEXT, bundle INTEGER, qos INTEGER, flags INTEGER, packet INTEGER, state INTEGER,
    PRIMARY KEY(session, bundle)
) WITHOUT ROWID;
CREATE TABLE inbound(
    client TEXT, packet INTEGER, digest BLOB, done_ms INTEGER, PRIMARY KEY(client, packet)
) WITHOUT ROWID;
CREATE TABLE retained(topic TEXT PRIMARY KEY, bundle INTEGER) WITHOUT ROWID;
CREATE TABLE log(
    id INTEGER PRIMARY KEY, time_s REAL, kind INTEGER, peer TEXT, mark INTEGER, bytes INTEGER, what INTEGER,
    began_s REAL, text TEXT
);
"""

CHANGES: Final = {
    1: f"""
        CREATE TABLE part(id INTEGER PRIMARY KEY, first INTEGER, place INTEGER, parts INTEGER);
        CREATE TABLE fresh{_BUNDLE}
        INSERT INTO fresh SELECT * FROM bundle;
        DROP TABLE bundle;
        ALTER TABLE fresh RENAME TO bundle;
    """,
}
"""What makes a store of an older version one of the next."""

STATEMENTS: Final = {
    "meta": "INSERT INTO meta VALUES(?, ?) ON CONFLICT(key) DO UPDATE SET value = excluded.value",
    "bundle": "INSERT INTO bundle VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "bundle.pinned": "UPDATE bundle SET pinned = ? WHERE id = ?",
    "bundle.held": "UPDATE bundle SET held = ? WHERE id = ?",
    "bundle.forget": "DELETE FROM bundle WHERE id = ?",
    "data": "INSERT INTO data VALUES(?, ?)",
    "data.forget": "DELETE FROM data WHERE id = ?",
    "part": "INSERT INTO part VALUES(?, ?, ?, ?)",
    "part.forget": "DELETE FROM part WHERE id = ?",
    "interest": "INSERT INTO interest VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
    "interest.options": "UPDATE interest SET options = ?, identifier = ? WHERE id = ?",
    "interest.forget": "DELETE FROM interest WHERE id = ?",
    "entry": "INSERT OR REPLACE INTO entry VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
    "entry.forget": "DELETE FROM entry WHERE subscriber = ? AND n = ?",
    "session": "INSERT OR REPLACE INTO session VALUES(?, ?, ?, ?)",
    "session.will": "UPDATE session SET will = ? WHERE client = ?",
    "session.forget": "DELETE FROM session WHERE client = ?",
    "outbox": "INSERT OR REPLACE INTO outbox VALUES(?, ?, ?, ?, ?, ?)",
    "outbox.state": "UPDATE outbox SET packet = ?, state = ? WHERE session = ? AND bundle = ?",
    "outbox.forget": "DELETE FROM outbox WHERE session = ? AND bundle = ?",
    "inbound": "INSERT OR REPLACE INTO inbound VALUES(?, ?, ?, ?)",
    "inbound.forget": "DELETE FROM inbound WHERE client = ? AND packet = ?",
    "inbound.forget_all": "DELETE FROM inbound WHERE client = ?",
    "retained": "INSERT OR REPLACE INTO retained VALUES(?, ?)",
    "retained.forget": "DELETE FROM retained WHERE topic = ?",
    "log": "INSERT INTO log(time_s, kind, peer, mark, bytes, what, began_s, text) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
    "log.forget": "DELETE FROM log WHERE id <= (SELECT max(id) FROM log) - ?",
}

TABLE_OF: Final = {name: name.partition(".")[0] for name in STATEMENTS}


def _many(statement: str, rows: int) -> str:
    into, values = statement.split(" VALUES")
    return f"{into} VALUES{', '.join([values] * rows)}"


MANY: Final = {
    name: tuple((rows, _many(STATEMENTS[name], rows)) for rows in (16, 4, 1))
    for name in ("bundle", "data", "log", "outbox", "inbound")
}
"""What adds several rows to a table at once: how many, and the statement; large ones first."""

# What a row of the log tells. Times are those of the node, in seconds since 2000.
CONTACT, TRANSFER, LIST, BORN, DELIVERED, STORED, DROPPED, SUBSCRIBED, UNSUBSCRIBED, STARTED = range(10)
"""
CONTACT       peer; began_s: when it began; written when it is over
TRANSFER      to `peer`; mark, bytes sent, began_s; what: its outcome, an index of TRANSFERS
LIST          to `peer`; bytes sent, began_s; mark: entries in it; what: its outcome, an index of TRANSFERS
BORN          mark, bytes; what: lifetime in ms; text: channel
DELIVERED     mark; what: hops; peer: from whom ("" if it was already here)
STORED        mark, bytes: the store holds it from now on; peer: from whom
DROPPED       mark, bytes (0: it was never stored); what: why, an index of DROPS
SUBSCRIBED    text: interest; what: n of the entry
UNSUBSCRIBED  text: interest; what: n of the entry
STARTED       text: the node's name; what: 1 if it carries for others; bytes: what its store holds at most
"""
TRANSFERS: Final = ("relayed", "duplicate", "refused", "late", "broken", "unfinished")
DROPS: Final = ("expired", "evicted", "full")
