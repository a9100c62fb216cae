"""One run of an overlay: scenario and seed -> network -> protocol -> outcome."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serai.core.content import Attribute, box, parse_template
from serai.core.errors import BadInput, did_you_mean
from serai.core.streams import draw, draw_values, stream
from serai.overlay.engine.graph import (
    Graph,
    check_connected,
    is_connected,
    largest_component,
    radio_graph,
    read_links,
    subgraph,
)
from serai.overlay.engine.network import Network
from serai.overlay.engine.roots import k_centre_roots, random_roots, roots_along_edge
from serai.overlay.log import OverlayRun
from serai.overlay.protocols import PROTOCOLS
from serai.overlay.recorded import asked_by_file, published_by_file
from serai.overlay.sections import OverlayScenario
from serai.world.grid import Grid, place_grid, place_uniform
from serai.world.positions import read_positions

# One stream of random numbers per concern, so that two tree counts under one seed see the same network and content.
PLACEMENT, ROOTS, PUBLISHERS, CONTENT, SUBSCRIBERS, INTERESTS, FAILURES = range(100, 107)

_STEPS = 100  # of the widths of random boxes
Floats = NDArray[np.float64]
Numbers = NDArray[np.int32]
_Placed = tuple[tuple[str, ...], Floats, Floats, Graph]


def simulate_overlay(scenario: OverlayScenario, seed: int, *, full_log: bool = False) -> OverlayRun:
    """Run a scenario once."""
    network = build_network(scenario, seed)
    outcome = PROTOCOLS[scenario.protocol.name].simulate(network, scenario.protocol, full_log)
    return OverlayRun(scenario, scenario.protocol.name, seed, network, outcome)


def build_network(scenario: OverlayScenario, seed: int) -> Network:
    """The network of a scenario under a seed: who hears whom, what is published and asked where, who will fail."""
    names, x, y, graph = place_nodes(scenario, seed)
    roots = choose_roots(scenario, names, x, y, graph, seed)
    publisher, values = draw_events(scenario, names, seed)
    subscriber, where, low, high = draw_queries(scenario, names, seed)
    return Network(
        names=names,
        x_m=x,
        y_m=y,
        graph=graph,
        roots=roots,
        attributes=scenario.events.attributes,
        publisher=publisher,
        values=values,
        subscriber=subscriber,
        low=low,
        high=high,
        where=where,
        fails=draw_failures(scenario.failures.fraction, len(names), roots, seed),
    )


# ---- nodes


def place_nodes(scenario: OverlayScenario, seed: int) -> _Placed:
    """Names and positions of the nodes, and who hears whom; every node can reach every other."""
    nodes, reach = scenario.nodes, scenario.radio.range_m
    if nodes.placement == "uniform" and not nodes.largest:
        return _draw_connected(scenario, seed)
    names, x, y, graph = _placed_once(scenario, seed)
    if nodes.largest:
        kept = largest_component(graph)
        return tuple(names[node] for node in kept), x[kept], y[kept], subgraph(graph, kept)
    source = str(nodes.file) if nodes.file is not None else f"{nodes.count} nodes with a radio range of {reach:g} m"
    check_connected(graph, names, source)
    return names, x, y, graph


def check_files_overlay(scenario: OverlayScenario) -> None:
    """Read the files of nodes or links (which have to be connected), of events and subscriptions, as a run would."""
    asked, happens = scenario.subscriptions.file, scenario.events.file
    if scenario.nodes.file is None and asked is None and happens is None:
        return
    names, x, y, graph = place_nodes(scenario, 0)
    choose_roots(scenario, names, x, y, graph, 0)
    if happens is not None:
        published_by_file(scenario, names)
    if asked is not None:
        asked_by_file(scenario, names)


def _grid(scenario: OverlayScenario) -> Grid:
    return Grid(scenario.field.width_m, scenario.field.height_m, 1, 1)


def _placed_once(scenario: OverlayScenario, seed: int) -> _Placed:
    nodes, grid = scenario.nodes, _grid(scenario)
    if nodes.file is not None and nodes.placement == "links":
        names, graph = read_links(nodes.file)
        nowhere = np.full(len(names), np.nan)
        return names, nowhere, nowhere.copy(), graph
    if nodes.file is not None:
        listed, x, y = read_positions(nodes.file, grid)
        return tuple(listed), x, y, radio_graph(x, y, scenario.radio.range_m)
    if nodes.placement == "grid":
        x, y = place_grid(grid, nodes.count)
    else:
        x, y = place_uniform(grid, nodes.count, stream(seed, PLACEMENT))
    return _numbered(nodes.count), x, y, radio_graph(x, y, scenario.radio.range_m)


def _draw_connected(scenario: OverlayScenario, seed: int) -> _Placed:
    """Positions drawn at random until every node can reach every other."""
    nodes, rng = scenario.nodes, stream(seed, PLACEMENT)
    for _ in range(nodes.draws):
        x, y = place_uniform(_grid(scenario), nodes.count, rng)
        graph = radio_graph(x, y, scenario.radio.range_m)
        if is_connected(graph):
            return _numbered(nodes.count), x, y, graph
    draws = "1 draw" if nodes.draws == 1 else f"the last of {nodes.draws} draws"
    source = f"{nodes.count} nodes with a radio range of {scenario.radio.range_m:g} m, {draws}"
    check_connected(graph, _numbered(nodes.count), source)
    raise AssertionError("a connected draw would have been taken")


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"s{number}" for number in range(count))


def choose_roots(
    scenario: OverlayScenario, names: tuple[str, ...], x: Floats, y: Floats, graph: Graph, seed: int
) -> Numbers:
    """The nodes that are roots, one for each tree."""
    roots = scenario.roots
    if roots.count > len(names):
        raise BadInput(f"roots.count: {roots.count} roots, but there are only {len(names)} nodes")
    if roots.placement == "given":
        number = {name: node for node, name in enumerate(names)}
        if unknown := [name for name in roots.nodes if name not in number]:
            told = "; ".join(f'no node "{name}", {did_you_mean(name, names)}' for name in unknown[:5])
            raise BadInput(f"roots.nodes: {told}")
        return np.array([number[name] for name in roots.nodes[: roots.count]], np.int32)
    if roots.placement == "edge":
        return roots_along_edge(x, y, scenario.field.width_m, roots.count, roots.spacing_m)
    if roots.placement == "k-centre":
        return k_centre_roots(graph, roots.count, stream(seed, ROOTS))
    return random_roots(len(names), roots.count, stream(seed, ROOTS))


def draw_failures(fraction: float, nodes: int, roots: Numbers, seed: int) -> NDArray[np.bool_]:
    """Which nodes fail: that fraction of all, as far as they are no roots."""
    order = stream(seed, FAILURES).permutation(nodes)
    candidates = order[~np.isin(order, roots)]
    fails = np.zeros(nodes, np.bool_)
    fails[candidates[: round(fraction * nodes)]] = True
    return fails


# ---- events and subscriptions


def draw_events(scenario: OverlayScenario, names: tuple[str, ...], seed: int) -> tuple[Numbers, Floats]:
    """Who publishes what, as a file says or drawn."""
    events = scenario.events
    if events.file is not None:
        return published_by_file(scenario, names)
    publisher = stream(seed, PUBLISHERS).integers(len(names), size=events.count, dtype=np.int32)
    return publisher, draw_values(events.attributes, events.count, stream(seed, CONTENT))


def draw_queries(
    scenario: OverlayScenario, names: tuple[str, ...], seed: int
) -> tuple[Numbers, tuple[str, ...], Floats, Floats]:
    """Who asks for what, as text and as a closed box, as a file says or drawn."""
    if scenario.subscriptions.file is not None:
        wishes = asked_by_file(scenario, names)
        return wishes.node, wishes.where, wishes.low, wishes.high
    subscriber = stream(seed, SUBSCRIBERS).integers(len(names), size=scenario.subscriptions.count, dtype=np.int32)
    return subscriber, *draw_interests(scenario, seed)


def draw_interests(scenario: OverlayScenario, seed: int) -> tuple[tuple[str, ...], Floats, Floats]:
    """What each subscriber wants: its subscription as text and as a closed box over the attributes."""
    asked, attributes = scenario.subscriptions, scenario.events.attributes
    rng = stream(seed, INTERESTS)
    if asked.where is None:
        low, high = draw_boxes(attributes, asked.count, asked.widest, rng)
        return tuple(_in_words(attributes, *ends) for ends in zip(low, high, strict=True)), low, high
    names = {attribute.name: attribute for attribute in attributes}
    templates = [parse_template(text, attributes) for text in asked.where]
    low, high, where = np.empty((asked.count, len(names))), np.empty((asked.count, len(names))), []
    for number in range(asked.count):
        template = templates[number % len(templates)]
        subscription = template.fill([float(draw(names[name], 1, rng)[0]) for name in template.attributes])
        low[number], high[number] = box(subscription, tuple(names))
        where.append(subscription.text)
    return tuple(where), low, high


def draw_boxes(
    attributes: tuple[Attribute, ...], count: int, widest: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Boxes anywhere in the domain; the lengths of their sides follow Zipf's distribution (section IV)."""
    steps = np.arange(1, _STEPS + 1)
    chance = 1 / steps / (1 / steps).sum()
    shape = (count, len(attributes))
    side = widest * rng.choice(steps, shape, p=chance) / _STEPS
    start = rng.random(shape) * (1 - side)
    least = np.array([attribute.low for attribute in attributes], np.float64)
    width = np.array([attribute.high for attribute in attributes], np.float64) - least
    return least + start * width, least + (start + side) * width


def _in_words(attributes: tuple[Attribute, ...], low: Floats, high: Floats) -> str:
    ranges = zip(low.tolist(), attributes, high.tolist(), strict=True)
    return " and ".join(f"{least!r} <= {attribute.name} <= {most!r}" for least, attribute, most in ranges)
