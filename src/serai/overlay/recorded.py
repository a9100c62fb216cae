"""Readings and subscriptions of files in an overlay: its own attributes, of which keys are made, and no time."""

from __future__ import annotations

import math

import numpy as np

from serai.core.errors import BadInput, did_you_mean
from serai.overlay.engine.graph import Floats, Numbers
from serai.overlay.sections import OverlayScenario
from serai.recorded.content import Content
from serai.recorded.readings import read_readings
from serai.recorded.wishes import Wishes, read_wishes
from serai.world.files import bad_file


def published_by_file(scenario: OverlayScenario, names: tuple[str, ...]) -> tuple[Numbers, Floats]:
    """Who publishes what, in the order of the readings' times."""
    file, attributes = scenario.events.file, scenario.events.attributes
    assert file is not None
    found = read_readings(scenario.events, names, None, math.inf, set())
    for attribute in attributes:
        if attribute.name not in found.content.names:
            meant = did_you_mean(attribute.name, found.content.names)
            raise BadInput(f"{file}: no column {attribute.name}, which events.attributes has; {meant}")
        if found.content.kinds[attribute.name] == "text":
            raise BadInput(
                f"{file}: {attribute.name} holds texts; keys of an overlay are made of numbers, so leave it out"
            )
    values = found.values[:, [found.content.names.index(attribute.name) for attribute in attributes]]
    low, high = ([getattr(attribute, end) for attribute in attributes] for end in ("low", "high"))
    wrong = ~((values >= low) & (values <= high))
    if wrong.any():
        problems = [
            f"{found.lines[event]}: {attributes[k].name} is {_told(values[event, k])}; events.attributes says"
            f" {attributes[k].low:g} to {attributes[k].high:g}"
            for event, k in np.argwhere(wrong).tolist()
        ]
        raise bad_file(file, problems)
    return found.sensor, values


def _told(value: float) -> str:
    return "missing" if math.isnan(value) else f"{value:g}"


def asked_by_file(scenario: OverlayScenario, names: tuple[str, ...]) -> Wishes:
    """Who asks for what: one box a row, and always."""
    file, content = scenario.subscriptions.file, Content.of(scenario.events.attributes)
    assert file is not None
    wishes = read_wishes(file, {name: [node] for node, name in enumerate(names)}, content, 0.0)
    if np.isfinite(wishes.from_s).any() or np.isfinite(wishes.until_s).any():
        raise BadInput(f"{file}: an overlay has no time; leave out from and until")
    for text in dict.fromkeys(wishes.where):
        if len(content.boxes(text)) > 1:
            raise BadInput(
                f"{file}: {text}: a query is one range per attribute; write a row for each of the alternatives"
            )
    return wishes
