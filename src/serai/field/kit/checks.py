"""What `serai protocols check` tries a field protocol with: small random fields in which much happens."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np

from serai.core.streams import order_key
from serai.field.kit.family import SENSORS
from serai.field.kit.sensor import Sensor, Visitor
from serai.field.log import FullLog, Ledger
from serai.field.sections import FieldScenario
from serai.field.simulation import build_world, limits_of
from serai.field.world import World
from serai.own.alone import Part
from serai.own.checking import Trial
from serai.scenario.protocol import Protocol

Played = tuple[World, FieldScenario, Ledger, FullLog]


def random_field(seed: int) -> FieldScenario:
    """A few sensors in reach of each other and a few who pass: queues fill, events expire, batteries run out."""
    rng = np.random.default_rng(seed)
    return _field(
        cells=[6, 4],
        sensors=int(rng.integers(1, 8)),
        queue=int(rng.choice([2, 5, 200])),
        battery=str(rng.choice(["10 J", "10 J", "0.1 mJ"])),
        subscribers=int(rng.integers(1, 4)),
        lifetime=str(rng.choice(["15 s", "60 s", "500 s"])),
        where="A < ?",
        rate=int(rng.choice([1, 3, 20])),
    )


def _field(**chosen: Any) -> FieldScenario:
    """Two minutes in 60 m by 40 m."""
    walk = {"speed_min": "2 m/s", "speed_max": "9 m/s", "pause_max": "10 s"}
    attributes = {"A": {"kind": "real", "low": 0, "high": 10}}
    lifetime = chosen["lifetime"]
    return FieldScenario.model_validate(
        {
            "title": "a small field",
            "duration": "120 s",
            "field": {"width": "60 m", "height": "40 m", "cells": chosen["cells"]},
            "sensors": {"count": chosen["sensors"], "queue": chosen["queue"], "battery": chosen["battery"]},
            "subscribers": {"count": chosen["subscribers"], **walk},
            "events": {"interval": "10 s", "lifetime": lifetime, "quiet": "0 s", "attributes": attributes},
            "subscriptions": {"where": chosen["where"]},
            "radio": {"rate": chosen["rate"]},
        }
    )


def play(protocol: Protocol, seed: int) -> Played:
    """Run a protocol in the random field of a seed."""
    return _play(protocol, random_field(seed), seed)


def _play(protocol: Protocol, scenario: FieldScenario, seed: int) -> Played:
    world = build_world(scenario, seed)
    limits = limits_of(world, scenario, order_key(seed), full_log=True, until_death=False)
    ledger, full = protocol.simulate(world, limits, protocol.settings())
    return world, scenario, ledger, full


def broken_rule(played: Played) -> str:
    """What cannot have happened in a run; empty: all is well."""
    world, scenario, ledger, full = played
    held = _copies(world, full)
    for (event, node), copies in held.items():
        if copies < 0:
            return f"sensor {node} let go of event {event} more often than it had it"
    pairs = list(zip(ledger.reception_event.tolist(), ledger.reception_subscriber.tolist(), strict=True))
    if len(set(pairs)) < len(pairs):
        return "a subscriber received an event for the first time twice"
    age_s = ledger.reception_s - world.event_time_s[ledger.reception_event]
    if len(age_s) and (age_s.min() < 0 or age_s.max() > scenario.events.lifetime_s):
        return "an event was received outside of its life"
    if (ledger.event_pj > np.round(world.battery_j * 1e12)).any():
        return "a sensor has spent more than its battery holds"
    return ""


def _copies(world: World, full: FullLog) -> dict[tuple[int, int], int]:
    """How many copies of an event can lie where at the end, worked out from the log."""
    held: Counter[tuple[int, int]] = Counter()
    for event, sensor in enumerate(world.event_sensor.tolist()):
        held[event, sensor] = 1  # or none, if it met a full queue: no matter, it could only be less
    columns = (full.transfers.event, full.transfers.sender, full.transfers.receiver)
    flags = (full.transfers.stored, full.transfers.moved)
    for event, sender, receiver, stored, moved in zip(*(one.tolist() for one in (*columns, *flags)), strict=True):
        held[event, sender] -= moved
        held[event, receiver] += stored
    for event, node, was_held in zip(full.drops.event, full.drops.node, full.drops.held, strict=True):
        held[int(event), int(node)] -= int(was_held)
    return held


def rows(played: Played) -> list[Any]:
    """What happened, as plain data."""
    _, _, ledger, full = played
    columns = (*full.transfers, *full.drops, ledger.reception_event, ledger.reception_s, ledger.event_pj)
    return [column.tolist() for column in columns]


def known_answers(protocol: Protocol) -> str:
    """What comes out wrong where one sensor and one who passes are always in reach of each other; empty: nothing."""
    scenario = _field(
        cells=[1, 1], sensors=1, queue=200, battery="10 J", subscribers=1, lifetime="60 s", where="A < 11", rate=20
    )
    world, _, ledger, _ = _play(protocol, scenario, 0)
    if not len(ledger.reception_event):
        return (
            f"a subscriber was beside a sensor all the time and received none of its {len(world.event_sensor)} events"
        )
    if ledger.reception_wanted.sum() < len(ledger.reception_event):
        return "a subscriber that asked for everything did not want what it received"
    return ""


TRIAL: Final = Trial(
    family=SENSORS,
    parts=(
        Part(Sensor, "", ("queue", "sessions", "neighbors", "community", "capacity"), ("_discard", "_left_j")),
        Part(Visitor, "visitor", ("bag", "_wanted"), ()),
    ),
    module=__name__,
    holds="no copy from nowhere, nothing late, no battery overdrawn",
    play=play,
    broken_rule=broken_rule,
    rows=rows,
    known_answers=known_answers,
)
