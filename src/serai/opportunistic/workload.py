"""What is published and who wants it: drawn from the scenario, or from files. Each concern has its own stream.

Zipf's law: the n-th channel has the weight n^-s. Sinks choose different channels, one after the other, each with
the chances that the weights give among those that are left (`serai.opportunistic.interests`).
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from serai.core.content import Attribute, box, parse_template
from serai.core.errors import BadInput
from serai.core.streams import draw, draw_values, stream
from serai.opportunistic.interests import choices, groups_of, subscriptions, zipf
from serai.opportunistic.recorded import Recorded, read_recorded, wanted_by_file
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.world import Bundles, Published, Subscriptions, Wanted
from serai.traces.messages import Messages, read_interests, read_messages
from serai.traces.names import NodeNames, natural_order
from serai.world.contacts import Contacts
from serai.world.grid import Floats, Numbers

ROLES, OWNERS, BIRTHS, TOPICS, SIZES, CONTENT, INTERESTS, PERIODS = range(16, 24)


def roles(scenario: OpportunisticScenario, count: int, seed: int) -> tuple[Numbers, Numbers]:
    """Sources and sinks, each in ascending order; nobody is both unless there are not enough nodes."""
    sources, sinks = (count if n is None else n for n in (scenario.nodes.sources, scenario.nodes.sinks))
    if max(sources, sinks) > count:
        raise BadInput(f"{sources} sources and {sinks} sinks: there are only {count} nodes")
    order = stream(seed, ROLES).permutation(count).astype(np.int32)
    return np.sort(order[:sources]), np.sort(order[count - sinks :])


# ---- bundles


def publications(scenario: OpportunisticScenario, nodes: NodeNames, seed: int) -> Published:
    """What is published in the time of the run."""
    if scenario.bundles.file is not None:
        return _from_file(scenario, nodes, read_messages(scenario.bundles.file))
    if scenario.events.file is not None:
        return _of_readings(scenario, read_recorded(scenario, nodes), seed)
    sources, _ = roles(scenario, len(nodes.names), seed)
    created_s = births(scenario, seed)
    count = created_s.size
    if scenario.subscriptions.where is None:
        chances = zipf(scenario.channels.count, scenario.channels.activity)
        channel = stream(seed, TOPICS).choice(chances.size, count, p=chances).astype(np.int32)
        owner = stream(seed, OWNERS).choice(sources, chances.size)  # a channel is served by a single source
        source, values = owner[channel], np.empty((count, 0))
        names = tuple(f"channel {number}" for number in range(chances.size))
    else:
        attributes = scenario.events.attributes
        values = draw_values(attributes, count, stream(seed, CONTENT))
        channel = _joined(cells_of(values, attributes, scenario.events.cells), scenario.events.cells)
        source = stream(seed, OWNERS).choice(sources, count)
        names = _cell_names(attributes, scenario.events.cells)
    lifetime_s = np.full(count, scenario.bundles.lifetime_s)
    bundles = Bundles(source.astype(np.int32), channel, created_s, sizes(scenario, count, seed), lifetime_s)
    return Published(bundles, names, sources, values, np.full(count, -1, np.int32))


def births(scenario: OpportunisticScenario, seed: int) -> Floats:
    """When something is published, in order."""
    rng, busy_s = stream(seed, BIRTHS), scenario.duration_s - scenario.bundles.quiet_s
    if scenario.bundles.schedule == "regular":
        return np.arange(0.0, busy_s, scenario.bundles.interval_s)
    count = rng.poisson(busy_s / scenario.bundles.interval_s)
    return np.sort(rng.uniform(0.0, busy_s, count))


def sizes(scenario: OpportunisticScenario, count: int, seed: int) -> NDArray[np.int64]:
    """The size of each bundle in bytes."""
    least, most = float(scenario.bundles.size_min_bytes), float(scenario.bundles.size_max_bytes)
    draws = stream(seed, SIZES).random(count)
    drawn = (
        least * (most / least) ** draws if scenario.bundles.sizes == "log-uniform" else least + (most - least) * draws
    )
    return np.rint(drawn).astype(np.int64)


def _from_file(scenario: OpportunisticScenario, nodes: NodeNames, found: Messages) -> Published:
    """The messages of a file that are published in the time of the run; one to a node is on a channel of its own."""
    file, begin_s = scenario.bundles.file, scenario.contacts.begin_s
    time_s = found.time_s - begin_s
    inside = np.flatnonzero((time_s >= 0) & (time_s <= scenario.duration_s)).tolist()
    if not inside:
        last_s = f"{found.time_s[0]:g} to {found.time_s[-1]:g} s"
        raise BadInput(f"{file}: its messages, from {last_s}, are all outside the run ({begin_s:g} s and on)")
    shared, _ = natural_order({found.channel[row] for row in inside if not found.target[row]})
    channel_of = dict(zip(shared, range(len(shared)), strict=True))
    own = itertools.count(len(shared))
    channel = [next(own) if found.target[row] else channel_of[found.channel[row]] for row in inside]
    names = _distinct([*shared, *(found.channel[row] for row in inside if found.target[row])])
    source = np.array([nodes.number(found.source[row], file) for row in inside], np.int32)
    targets = [nodes.number(found.target[row], file) if found.target[row] else -1 for row in inside]
    lifetime_s = found.lifetime_s[inside]
    lifetime_s = np.where(np.isnan(lifetime_s), scenario.bundles.lifetime_s, lifetime_s)
    size_bytes = found.size_bytes[inside].astype(np.int64)
    bundles = Bundles(source, np.array(channel, np.int32), time_s[inside], size_bytes, lifetime_s)
    return Published(bundles, names, np.unique(source), np.empty((len(inside), 0)), np.array(targets, np.int32))


def _of_readings(scenario: OpportunisticScenario, recorded: Recorded, seed: int) -> Published:
    """The readings of a file, each a bundle of its sensor; what they say is in their channel."""
    readings, count = recorded.readings, len(recorded.readings.time_s)
    size_bytes, lifetime_s = sizes(scenario, count, seed), np.full(count, scenario.bundles.lifetime_s)
    bundles = Bundles(readings.sensor, recorded.channel, readings.time_s, size_bytes, lifetime_s)
    names = _distinct(list(recorded.channels))
    return Published(bundles, names, np.unique(readings.sensor), np.empty((count, 0)), np.full(count, -1, np.int32))


def _distinct(names: list[str]) -> tuple[str, ...]:
    """The same names, but numbered from the second of each on: the log tells channels apart by their names."""
    taken: set[str] = set()
    for place, name in enumerate(names):
        alike = (f"{name} ({number})" for number in itertools.count(2))
        names[place] = next(new for new in itertools.chain([name], alike) if new not in taken)
        taken.add(names[place])
    return tuple(names)


# ---- subscriptions


def subscriptions_of(
    scenario: OpportunisticScenario, nodes: NodeNames, published: Published, seed: int, contacts: Contacts
) -> Wanted:
    """Who wants what: the target of a message wants it; besides, what a file says, or what is drawn."""
    directed = np.flatnonzero(published.targets >= 0)
    always = np.full(directed.size, np.inf)
    direct = Subscriptions(published.targets[directed], published.bundles.channel[directed], -always, always)
    shared = len(published.channels) - directed.size
    if scenario.events.file is not None:
        wanted = wanted_by_file(read_recorded(scenario, nodes))
    elif scenario.subscriptions.file is not None:
        wanted = _wanted_by_file(scenario, nodes, published)
    elif shared == 0:
        wanted = Wanted(_none(), np.unique(direct.node))
    else:
        _, sinks = roles(scenario, len(nodes.names), seed)
        if scenario.subscriptions.where:
            wanted = _ranges(scenario, sinks, seed)
        else:
            groups = groups_of(scenario, sinks, contacts, len(nodes.names))
            wanted = _channels(scenario, sinks, shared, groups, seed)
    drawn = wanted.subscriptions
    node, channel = np.append(direct.node, drawn.node), np.append(direct.channel, drawn.channel)
    from_s, to_s = np.append(direct.from_s, drawn.from_s), np.append(direct.to_s, drawn.to_s)
    order = np.lexsort((channel, node, from_s))
    return wanted._replace(subscriptions=Subscriptions(node[order], channel[order], from_s[order], to_s[order]))


def _none() -> Subscriptions:
    return Subscriptions(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0), np.empty(0))


def _wanted_by_file(scenario: OpportunisticScenario, nodes: NodeNames, published: Published) -> Wanted:
    """The subscriptions of a file; a channel on which nothing is published changes nothing and is left out."""
    file = scenario.subscriptions.file
    assert file is not None
    found = read_interests(file)
    number = {name: place for place, name in enumerate(published.channels)}
    kept = [row for row, channel in enumerate(found.channel) if channel in number]
    if not kept:
        raise BadInput(
            f"{file}: none of its channels is published on; there are {', '.join(published.channels[:5])} ..."
        )
    node = np.array([nodes.number(found.node[row], file) for row in kept], np.int32)
    channel = np.array([number[found.channel[row]] for row in kept], np.int32)
    begin_s = scenario.contacts.begin_s
    return Wanted(
        Subscriptions(node, channel, found.from_s[kept] - begin_s, found.to_s[kept] - begin_s), np.unique(node)
    )


def _channels(
    scenario: OpportunisticScenario, sinks: Numbers, channels: int, groups: Numbers | None, seed: int
) -> Wanted:
    """Each sink's choice among the channels, by their popularity."""
    taste = stream(seed, INTERESTS).gumbel(size=(sinks.size, channels))
    if scenario.subscriptions.change_s > 0:
        return Wanted(subscriptions(scenario, sinks, taste, groups, seed), sinks)
    chosen = choices(scenario, taste, groups, zipf(channels, scenario.channels.popularity), seed)
    from_s, to_s = _periods(scenario, chosen.size, seed)
    node = np.repeat(sinks, chosen.shape[1])
    return Wanted(Subscriptions(node, chosen.ravel().astype(np.int32), from_s, to_s), sinks)


def _periods(scenario: OpportunisticScenario, count: int, seed: int) -> tuple[Floats, Floats]:
    """From when to when each subscription lasts."""
    from_s = stream(seed, PERIODS).random(count) * scenario.subscriptions.spread_s
    length_s = scenario.subscriptions.length_s or np.inf
    return from_s, from_s + length_s


def _ranges(scenario: OpportunisticScenario, sinks: Numbers, seed: int) -> Wanted:
    """Each sink's range, and the channels (cells) that it touches."""
    attributes, cells, rng = scenario.events.attributes, scenario.events.cells, stream(seed, INTERESTS)
    by_name = {attribute.name: attribute for attribute in attributes}
    templates = [parse_template(text, attributes) for text in scenario.subscriptions.where or ()]
    low, high = np.empty((2, sinks.size, len(attributes)))
    where, touched = [], []
    for place in range(sinks.size):
        template = templates[place % len(templates)]
        subscription = template.fill([float(draw(by_name[name], 1, rng)[0]) for name in template.attributes])
        low[place], high[place] = box(subscription, tuple(by_name))
        where.append(subscription.text)
        touched.append(cells_touched(low[place], high[place], attributes, cells))
    begins, ends = _periods(scenario, sinks.size, seed)
    counts = [cell.size for cell in touched]
    channel = np.concatenate(touched).astype(np.int32) if touched else np.empty(0, np.int32)
    rows = Subscriptions(np.repeat(sinks, counts), channel, np.repeat(begins, counts), np.repeat(ends, counts))
    return Wanted(rows, sinks, tuple(where), low, high)


def cells_of(values: Floats, attributes: tuple[Attribute, ...], cells: int) -> NDArray[np.int64]:
    """Which part of each attribute's domain, from 0, each value lies in; the ends count as inside."""
    low = np.array([attribute.low for attribute in attributes])
    span = np.array([a.high - a.low + (a.kind == "integer") for a in attributes])
    places: NDArray[np.int64] = np.clip(np.floor((values - low) / span * cells), 0, cells - 1).astype(np.int64)
    return places


def cells_touched(low: Floats, high: Floats, attributes: tuple[Attribute, ...], cells: int) -> NDArray[np.int64]:
    """The channels whose cells a box touches; none if it lies outside the attributes' domain."""
    lowest, highest = np.array([a.low for a in attributes]), np.array([a.high for a in attributes])
    if np.any(low > high) or np.any(high < lowest) or np.any(low > highest):
        return np.empty(0, np.int64)
    first, last = (cells_of(np.clip(end, lowest, highest), attributes, cells) for end in (low, high))
    ranges = (range(begin, end + 1) for begin, end in zip(first.tolist(), last.tolist(), strict=True))
    return _joined(np.array(list(itertools.product(*ranges)), np.int64), cells).astype(np.int64)


def _joined(parts: NDArray[np.int64], cells: int) -> Numbers:
    """The number of a cell from its place in each attribute's domain."""
    number = np.zeros(len(parts), np.int64)
    for column in parts.T:
        number = number * cells + column
    return number.astype(np.int32)


def _cell_names(attributes: tuple[Attribute, ...], cells: int) -> tuple[str, ...]:
    places = itertools.product(range(cells), repeat=len(attributes))
    return tuple(" ".join(f"{a.name}:{part}" for a, part in zip(attributes, place, strict=True)) for place in places)
