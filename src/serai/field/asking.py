"""Who asks for what in a field: drawn from the scenario, or as a file of subscriptions says.

A protocol knows one box for each subscriber. Who asks for several boxes, or for some time only, gets a column of its
own beside the attributes: 1 for the events that it wants, and its box asks for that 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from serai.core.content import Attribute, Template, box, parse_template
from serai.core.errors import BadInput, BadSubscription
from serai.core.interested import who_wants
from serai.core.streams import INTERESTS, draw, stream
from serai.field.sections import FieldScenario
from serai.field.world import UNNAMED, People, Wanted
from serai.recorded.content import Content
from serai.recorded.wishes import Wishes, read_wishes
from serai.world.grid import Floats

_MOST_MARKS = 200_000_000


def draw_interests(
    scenario: FieldScenario, people: People, content: Content, seed: int
) -> tuple[tuple[str, ...], Floats, Floats]:
    """What each subscriber wants: its subscription as text and as a closed box over the attributes.

    The box of those who ask for nothing is empty.
    """
    named = {attribute.name: attribute for attribute in content.domains}
    shape = len(people.names), len(content.names)
    low, high, where = np.full(shape, np.inf), np.full(shape, -np.inf), [""] * len(people.names)
    for number, group in enumerate(scenario.groups):
        if group.only_carries:
            continue
        rng = stream(seed, INTERESTS, *(group.name or "").encode())
        texts = group.where or scenario.subscriptions.where
        templates = [_template(text, content.domains, scenario) for text in texts]
        members = np.flatnonzero(people.group == number)
        for nth, subscriber in enumerate(members.tolist()):
            template = templates[nth % len(templates)]
            subscription = template.fill([float(draw(named[name], 1, rng)[0]) for name in template.attributes])
            low[subscriber], high[subscriber] = box(subscription, content.names)
            where[subscriber] = subscription.text
    return tuple(where), low, high


def _template(text: str, attributes: Sequence[Attribute], scenario: FieldScenario) -> Template:
    try:
        return parse_template(text, attributes)
    except BadSubscription as error:  # a scenario without a file of events is checked when it is read
        raise BadInput(f"where: {error}\nthe attributes are those of {scenario.events.file}") from None


def ask_by_file(scenario: FieldScenario, people: People, content: Content, begin_s: float | None) -> Wishes:
    """What the scenario's file of subscriptions says; who only carries asks for nothing."""
    file = scenario.subscriptions.file
    assert file is not None
    wishes = read_wishes(file, called(people), content, begin_s)
    for number, group in enumerate(scenario.groups):
        if group.only_carries and (people.group[wishes.node] == number).any():
            name = group.name or "subscribers"
            raise BadInput(f"{file}: {name} ask for something, but only_carries says that they do not")
    return wishes


def called(people: People) -> dict[str, list[int]]:
    """Which subscribers go by a name: one by its own, all of a group by the group's."""
    who: dict[str, list[int]] = {}
    for number, group in enumerate(people.groups):
        who[group or f"{UNNAMED}s"] = np.flatnonzero(people.group == number).tolist()
    return who | {name: [number] for number, name in enumerate(people.names)}


def with_wishes(wishes: Wishes, people: People, values: Floats, born_s: Floats, lifetime_s: float) -> Wanted:
    """The events' values and the subscribers' boxes, with a column for each who asks for more than one box can say."""
    count, width = len(people.names), values.shape[1]
    rows = [np.flatnonzero(wishes.node == subscriber) for subscriber in range(count)]
    alike: dict[bytes, list[int]] = {}
    for subscriber, own in enumerate(rows):
        if len(own) and not _is_one_box(wishes, own):
            columns = (wishes.low[own], wishes.high[own], wishes.from_s[own], wishes.until_s[own])
            alike.setdefault(b"".join(column.tobytes() for column in columns), []).append(subscriber)
    if len(alike) * len(values) > _MOST_MARKS:
        raise BadInput(
            f"{len(alike):,} subscribers ask for several things or for some time, of {len(values):,} events: too many;"
            " thin the events (every, on_change), or let fewer ask so"
        )
    marks = np.empty((len(values), len(alike)))
    low, high = np.full((2, count, width + len(alike)), [[[np.inf]], [[-np.inf]]])
    for place, members in enumerate(alike.values()):
        marks[:, place] = wanted_by(wishes, rows[members[0]], values, born_s, lifetime_s)
        low[members], high[members] = -np.inf, np.inf
        low[members, width + place] = high[members, width + place] = 1.0
    for subscriber, own in enumerate(rows):
        if len(own) and _is_one_box(wishes, own):
            low[subscriber], high[subscriber] = -np.inf, np.inf
            low[subscriber, :width], high[subscriber, :width] = wishes.low[own[0]], wishes.high[own[0]]
    texts = [" or ".join(dict.fromkeys(wishes.where[row] for row in own.tolist())) for own in rows]
    carries = np.array([not len(own) for own in rows], np.uint8)
    return Wanted(np.hstack((values, marks)), low, high, tuple(texts), people._replace(carries=carries), wishes)


def _is_one_box(wishes: Wishes, own: NDArray[np.int64]) -> bool:
    return len(own) == 1 and wishes.from_s[own[0]] == -np.inf and wishes.until_s[own[0]] == np.inf


def wanted_by(
    wishes: Wishes, own: NDArray[np.int64], values: Floats, born_s: Floats, lifetime_s: float
) -> NDArray[np.bool_]:
    """Which events one of these subscriptions wants: content that it asks for, alive at some time while it holds."""
    content = who_wants(values, wishes.low[own], wishes.high[own])
    since_s = np.maximum(born_s[:, None], wishes.from_s[own])
    holds = since_s < np.minimum(born_s[:, None] + lifetime_s, wishes.until_s[own])
    return np.asarray((content & holds).any(axis=1), np.bool_)
