"""Runs made by hand: three sensors in two communities, two subscribers, and a ledger as the test says.

    cell      0      1      2      3
           [ s0 ] [ s1 ] [    ] [ s2 ]      10 m each

s0 and s1 touch: community 0. s2 is a loner: community 1. Subscriber 0 walks from s0 to s2 in 30 s and stays;
subscriber 1 stands with s2.
"""

from typing import Any

import numpy as np

from serai.field.engine.state import FULL
from serai.field.log import Drops, FieldRun, FullLog, Ledger, Transfers
from serai.field.sections import FieldScenario
from serai.field.world import People, World, who_hears_whom
from serai.world.grid import Grid
from serai.world.mobility import Tracks

GRID = Grid(40.0, 10.0, 4, 1)
VERSIONS = {"serai": "0.1.0", "python": "3.11.0"}

Reception = tuple[int, int, int, bool]
"""(event, subscriber, time, wanted)"""


def scenario(protocol: str = "ced", settings: dict[str, Any] = {}, **sections: Any) -> FieldScenario:  # noqa: B006
    """A minute in the field of the drawing; `settings` of the protocol and `sections` are TOML values."""
    said: dict[str, Any] = {
        "duration": "60 s",
        "field": {"width": "40 m", "height": "10 m", "cells": [4, 1]},
        "sensors": {"count": 3, "battery": "10 J"},
        "subscribers": {"count": 2},
        "events": {
            "quiet": "0 s",
            "lifetime": "60 s",
            "attributes": {"A1": {"kind": "real", "low": 0.0, "high": 10.0}},
        },
        "subscriptions": {"where": ["A1 < 5", "A1 < 100"]},
        "protocol": {"name": protocol, **settings},
    }
    return FieldScenario.model_validate(said | sections)


def world(
    events: list[tuple[int, float, float]],
    boxes: list[tuple[float, float]],
    sensors: list[tuple[float, float]] | None = None,
    duration_s: int = 60,
) -> World:
    """The field of the drawing with these events (sensor, time, A1) and subscriptions (low, high) of A1."""
    sensors = [(5.0, 5.0), (15.0, 5.0), (35.0, 5.0)] if sensors is None else sensors
    x, y = np.array(sensors, float).reshape(-1, 2).T.copy()
    walks = [[(0.0, 5.0, 5.0), (30.0, 35.0, 5.0)]] + [[(0.0, 35.0, 5.0)]] * (len(boxes) - 1)
    walks = walks[: len(boxes)]
    points = np.array([point for walk in walks for point in walk], float).reshape(-1, 3)
    start = np.concatenate([[0], np.cumsum([len(walk) for walk in walks])]).astype(np.int64)
    tracks = Tracks(start, *points.T.copy())
    born = np.array(events, float).reshape(-1, 3)
    bounds = np.array(boxes, float).reshape(-1, 2)
    return World(
        grid=GRID,
        sensor_names=tuple(f"s{number}" for number in range(len(sensors))),
        sensor_x=x,
        sensor_y=y,
        battery_j=np.full(len(sensors), 10.0),
        tracks=tracks,
        event_sensor=born[:, 0].astype(np.int32),
        event_time_s=born[:, 1].copy(),
        event_values=born[:, 2:].copy(),
        attribute_names=("A1",),
        low=bounds[:, :1].copy(),
        high=bounds[:, 1:].copy(),
        where=tuple(f"{low} <= A1 <= {high}" for low, high in boxes),
        people=People.alike(len(boxes)),
        **who_hears_whom(GRID, (x, y), None, tracks, duration_s),
    )


def ledger(of: World, receptions: list[Reception] = [], **changes: Any) -> Ledger:  # noqa: B006
    """A ledger in which nothing happened but these receptions and what `changes` says."""
    event, subscriber, time_s, wanted = np.array(receptions, dtype=np.int32).reshape(-1, 4).T.copy()
    sensors = len(of.sensor_x)
    arrays = {name: np.array(value, np.int64) for name, value in changes.items() if isinstance(value, list)}
    blank = Ledger(
        reception_event=event,
        reception_subscriber=subscriber,
        reception_s=time_s,
        reception_wanted=wanted.astype(bool),
        transmissions=np.zeros(len(of.event_sensor), np.int64),
        sent=np.zeros(sensors, np.int64),
        received=np.zeros(sensors, np.int64),
        event_pj=np.zeros(sensors, np.int64),
        control_pj=np.zeros(sensors, np.int64),
        steady_event_pj=np.zeros((2, sensors), np.int64),
        steady_control_pj=np.zeros((2, sensors), np.int64),
        died=np.full(sensors, -1, np.int32),
        drops=dict.fromkeys(("expired", "spent", "full", "stranded", "dead"), 0),
        control_messages={},
        control_bits={},
    )
    return blank._replace(**(changes | arrays))


def run(of: World, entries: Ledger, settings: FieldScenario | None = None, full: FullLog | None = None) -> FieldRun:
    """A run with seed 7."""
    settings = settings or scenario()
    return FieldRun(settings, settings.protocol.name, 7, of, entries, full, versions=dict(VERSIONS))


def full_log(transfers: list[tuple[int, ...]], drops: list[tuple[int, ...]]) -> FullLog:
    """(time, event, sender, receiver, addressee, kind, outcome) and (time, event, node, reason); nothing is stored."""
    sent = np.array(transfers, np.int32).reshape(-1, 7).T
    lost = np.array(drops, np.int32).reshape(-1, 4).T
    codes, none = [column.astype(np.int8) for column in (*sent[5:], lost[3])], np.zeros(len(transfers), np.bool_)
    nobody, held = np.full(len(drops), -1, np.int32), lost[3] != FULL
    return FullLog(
        Transfers(*(column.copy() for column in sent[:5]), *codes[:2], none, none),
        Drops(*(column.copy() for column in lost[:3]), nobody, codes[2], held, np.zeros(len(drops), np.int64)),
    )


def lively() -> FieldRun:
    """A run with something in every table and every count."""
    there = world(
        events=[(0, 0.5, 1.0), (1, 2.25, 9.0), (2, 10.0, 4.5)],
        boxes=[(-np.inf, np.nextafter(5.0, 0.0)), (-np.inf, np.inf)],
    )
    entries = ledger(
        there,
        receptions=[(0, 0, 3, True), (1, 0, 4, False), (2, 1, 10, True), (2, 0, 28, True)],
        transmissions=[2, 1, 2],
        sent=[2, 1, 2],
        received=[0, 1, 0],
        event_pj=[30_000_000, 20_000_000, 26_000_000],
        control_pj=[1, 2, 3],
        drops={"expired": 1, "spent": 0, "full": 1, "stranded": 0, "dead": 0},
        control_messages={"hello": 9, "reply": 12},
        control_bits={"hello": 576, "reply": 1152},
    )
    log = full_log(
        transfers=[
            (3, 0, 0, 3, 3, 0, 0),
            (3, 0, 0, 1, 3, 0, 1),
            (4, 1, 1, 3, 3, 0, 0),
            (10, 2, 2, 4, 4, 0, 0),
            (28, 2, 2, 3, 3, 0, 0),
        ],
        drops=[(3, 0, 1, 2), (60, 0, 0, 0)],
    )
    return run(there, entries, full=log)
