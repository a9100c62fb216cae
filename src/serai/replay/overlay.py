"""A run of an overlay, as its page gets it. It has no clock: time is counted in hops.

First all queries go out together, from hop 0 on. When the last one has come to rest all events are published, and each
goes to its rendezvous and back as notifications.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from serai.core.interested import who_wants
from serai.log.layout import SIDE_M, lay_out
from serai.log.losses import LOST
from serai.overlay.engine.keys import domains_of, rendezvous_keys_of
from serai.overlay.engine.state import NONE
from serai.overlay.log import OverlayRun
from serai.overlay.losses import losses_of
from serai.overlay.tinymq import MAPPINGS
from serai.replay.sheet import EVERYTHING, Numbers, Sheet, in_bits, in_steps, links_of, of_losses

EVENT, NOTIFICATION, QUERY, STORED = 0, 1, 2, 4


class _Rows(NamedTuple):
    """Messages, one row for each hop: when it comes, over what, of which event (or, behind those, which query)."""

    at: Numbers
    sender: Numbers
    receiver: Numbers
    subject: Numbers
    flags: Numbers


def overlay_sheet(run: OverlayRun) -> Sheet:
    """The head and the columns of a run with a full log."""
    network, told = run.network, run.outcome.notifications
    published = int(run.outcome.queries.hops.max(initial=0)) + 1
    rows = _in_order(_queries(run), _events(run, published))
    links = links_of(rows.sender, rows.receiver, len(network.names))
    first = np.flatnonzero(~told.again)
    first = first[np.argsort(told.hops[first], kind="stable")]
    end = int(max(rows.at.max(initial=0), (published + told.hops[first]).max(initial=0), published))
    places, head = _places(run)
    values, steps = in_steps(network.values)
    columns = places | {
        "rowAt": rows.at,
        "event": rows.subject,
        "flags": rows.flags,
        "linkFrom": links.source,
        "linkTo": links.target,
        "link": links.of_row,
        "birthNode": network.publisher,
        "values": values,
        "asker": network.subscriber,
        "wants": in_bits(who_wants(network.values, network.low, network.high)),
        "gotAt": published + told.hops[first],
        "gotEvent": told.event[first],
        "gotBy": told.query[first],
        "gotShortest": told.shortest[first],
        "parent": _parents(run),
        **dict(zip(("graphA", "graphB"), _graph(run), strict=True)),
        "dropNode": run.outcome.full.losses.node if run.outcome.full else np.empty(0, np.int32),
        "dropEvent": run.outcome.full.losses.event if run.outcome.full else np.empty(0, np.int32),
        **of_losses(losses_of(run), EVERYTHING),
        **_keys(run),
    }
    return Sheet(
        _head(run, published, end) | head | {"steps": steps},
        columns,
        ("rowAt", "event", "gotEvent", "link", "lostEvent"),
    )


def _keys(run: OverlayRun) -> dict[str, Numbers]:
    """The keys of nodes in their trees, before anybody fails; and those that events are sent by."""
    keys = run.outcome.full.keys if run.outcome.full else None
    if keys is None:
        return {}
    settings, network = run.scenario.protocol, run.network
    first = ~keys.mended
    mapping, bits = MAPPINGS.index(settings.mapping), settings.attribute_bits
    return {
        "keyNode": keys.node[first],
        "keyTree": keys.tree[first],
        "keyDepth": keys.depth[first],
        "keyHead": keys.head[first].astype(np.float64),
        "keyLength": keys.length[first],
        "eventKey": rendezvous_keys_of(network.values, domains_of(network.attributes), mapping, bits).astype(
            np.float64
        ),
    }


def _head(run: OverlayRun, published: int, end: int) -> dict[str, Any]:
    return {
        "hops": True,
        "end": end,
        "published": published,
        "names": list(run.network.names),
        "roots": run.network.roots.tolist(),
        "where": list(run.network.where),
        "lost": list(LOST),
        "bits": run.scenario.protocol.attribute_bits * len(run.network.attributes),
    }


def _places(run: OverlayRun) -> tuple[dict[str, Numbers], dict[str, Any]]:
    network, place = run.network, run.scenario.field
    if np.isfinite(network.x_m).all():
        head = {"width": place.width_m, "height": place.height_m, "laidOut": False}
        return {"x": network.x_m.astype(np.float32), "y": network.y_m.astype(np.float32)}, head
    x, y = lay_out(len(network.names), *_graph(run))
    return {"x": x.astype(np.float32), "y": y.astype(np.float32)}, {"width": SIDE_M, "height": SIDE_M, "laidOut": True}


def _graph(run: OverlayRun) -> tuple[Numbers, Numbers]:
    graph = run.network.graph
    owner = np.repeat(np.arange(graph.nodes), np.diff(graph.start))
    once = owner < graph.neighbors
    return owner[once], graph.neighbors[once]


def _parents(run: OverlayRun) -> Numbers:
    """The parent of each node in each tree, [tree, node], counted from 1; 0: none."""
    places, nodes = run.outcome.tree_places, len(run.network.names)
    parents = np.zeros((len(run.network.roots), nodes), np.int64)
    parents[places.tree, places.node] = places.parent + 1
    return parents.ravel()


def _queries(run: OverlayRun) -> _Rows:
    """Every message with a query; where it is stored at its subscriber's own node, one that goes nowhere."""
    messages, events = run.outcome.queries, len(run.network.publisher)
    kept = (messages.back != NONE) | messages.stays
    before = np.where(messages.back == NONE, np.arange(len(messages.back)), messages.back)[kept]
    return _Rows(
        messages.hops[kept],
        messages.node[before],
        messages.node[kept],
        events + messages.query[kept],
        QUERY + STORED * messages.stays[kept],
    )


def _events(run: OverlayRun, published: int) -> _Rows:
    """Every hop of events and notifications, with the hop at which it comes."""
    assert run.outcome.full is not None  # the caller sees to it
    hops, arrivals, told = run.outcome.full.hops, run.outcome.arrivals, run.outcome.notifications
    trees = len(run.network.roots)
    key = arrivals.event.astype(np.int64) * trees + arrivals.tree  # ascending
    of = np.searchsorted(key, told.event.astype(np.int64) * trees + told.tree)
    back = np.bincount(of, weights=told.hops - arrivals.hops[of], minlength=len(key)).astype(np.int64)
    arrival = np.repeat(np.arange(len(key)), arrivals.hops + back)
    nth = np.arange(len(arrival)) - np.repeat(
        np.cumsum(arrivals.hops + back) - (arrivals.hops + back), arrivals.hops + back
    )
    # Notifications follow each other, and each begins at the rendezvous.
    begins = (hops.kind == NOTIFICATION) & (hops.sender == arrivals.node[arrival])
    begun = np.maximum.accumulate(np.where(begins, np.arange(len(arrival)), 0)) if len(arrival) else nth
    step = np.where(hops.kind == EVENT, nth, arrivals.hops[arrival] + np.arange(len(arrival)) - begun)
    return _Rows(published + step + 1, hops.sender, hops.receiver, hops.event, hops.kind.astype(np.int64))


def _in_order(*parts: _Rows) -> _Rows:
    whole = _Rows(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    order = np.argsort(whole.at, kind="stable")
    return _Rows(*(column[order] for column in whole))
