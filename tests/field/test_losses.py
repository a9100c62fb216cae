"""Why pairs were lost == the same told row by row from the tables."""

from typing import Any

import numpy as np
import pytest

import serai
from serai.core.content import matches
from serai.core.interested import who_wants
from serai.field.losses import losses_of
from serai.log.losses import LOST, loss_metrics

SMALL = {
    "sensors.count": 30,
    "subscribers.count": 5,
    "duration": "12 min",
    "events.interval": "20 s",
    "events.lifetime": "100 s",
    "events.quiet": "0 s",
    "field.width": "150 m",
    "field.height": "150 m",
    "field.cells": 12,
}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"sensors.battery": "2 mJ"},
    {"sensors.battery": "2 mJ", "sensors.harvest": "5 uW"},
    {"sensors.queue": 3},
    {"protocol.stranded": "kept"},
    {"protocol.relays": "open", "protocol.alpha": 1},
    {"protocol.resend": "each-contact", "protocol.match": "sensor"},
]
CASES = [("dg", {}), ("dg", {"sensors.queue": 2, "radio.rate": 2}), *(("ced", one) for one in SETTINGS),
         *(("cet", one) for one in SETTINGS)]  # fmt: skip


def slow_losses(run: serai.FieldRun) -> list[tuple[int, int, str]]:
    """Event, subscriber and reason, asked of the tables pair by pair."""
    rows = {name: table.to_pylist() for name, table in run.tables.items()}
    community = {row["node"]: row["community"] if run.protocol != "dg" else row["node"] for row in rows["sensors"]}
    delivered = {(row["event"], row["node"]) for row in rows["deliveries"]}
    found = []
    for event in rows["events"]:
        expiry = int(np.floor(event["time_s"] + event["lifetime_s"])) + 1
        died_s = rows["sensors"][event["node"]]["died_s"]
        if expiry >= run.scenario.duration_s or (died_s is not None and np.ceil(event["time_s"]) > died_s):
            continue
        naps = [nap for nap in rows.get("naps", []) if nap["node"] == event["node"]]
        if any(nap["since_s"] < np.ceil(event["time_s"]) <= nap["until_s"] for nap in naps):
            continue
        lay = [(np.ceil(event["time_s"]), event["node"])]
        lay += [
            (row["end_s"], row["receiver"])
            for row in rows["transfers"]
            if row["event"] == event["event"] and row["stored"] and row["kind"] in ("return", "placement")
        ]
        for asked in rows["subscriptions"]:
            node = asked["node"]
            wanted = matches(np.array(event["values"]), np.array(asked["low"]), np.array(asked["high"]))
            if not wanted or (event["event"], node) in delivered:
                continue
            fates = [
                row["reason"] for row in rows["drops"] if row["event"] == event["event"] and row["addressee"] == node
            ]
            sent = [row for row in rows["transfers"] if row["event"] == event["event"] and row["addressee"] == node]
            met = any(
                contact["b"] == node
                and community[contact["a"]] == community[place]
                and contact["start_s"] < expiry
                and contact["end_s"] > since
                for since, place in lay
                for contact in rows["contacts"]
            )
            own = [
                row["reason"]
                for row in rows["drops"]
                if row["event"] == event["event"] and row["addressee"] < 0 and row["node"] == event["node"]
            ]
            if fates or sent:
                reason = fates[-1] if fates else "stranded"
            elif not met:
                reason = "never_met"
            else:
                reason = own[0] if own and own[0] in ("full", "dead") else "not_sent"
            found.append((event["event"], node - len(rows["sensors"]), reason))
    return found


@pytest.mark.parametrize(("protocol", "changes"), CASES)
def test_reasons_are_those_of_the_slow_version(protocol: str, changes: dict[str, Any]) -> None:
    run = serai.simulate(serai.load_scenario("field", SMALL | changes, protocol=protocol), seed=5, full_log=True)
    assert isinstance(run, serai.FieldRun)
    found = losses_of(run)
    assert found is not None
    rows = zip(found.event.tolist(), found.subscriber.tolist(), (LOST[why] for why in found.why), strict=True)
    assert list(rows) == slow_losses(run)
    assert len(found.event) > 10


def test_without_a_full_log_nobody_knows() -> None:
    run = serai.simulate(serai.load_scenario("field", SMALL, protocol="dg"), seed=5)
    assert isinstance(run, serai.FieldRun)
    assert losses_of(run) is None
    assert all(np.isnan(count) for count in loss_metrics(losses_of(run)).values())


def test_who_wants_is_what_matches_says() -> None:
    rng = np.random.default_rng(1)
    values = rng.choice([0.0, 1.0, 2.0, np.nan], (40, 2))
    low, high = rng.choice([-np.inf, 0.0, 1.0], (30, 2)), rng.choice([1.0, 2.0, np.inf], (30, 2))
    expected = [[matches(value, *box) for box in zip(low, high, strict=True)] for value in values]
    assert who_wants(values, low, high).tolist() == expected
