"""Why pairs were lost in an opportunistic network == the same told row by row from the tables."""

from typing import Any

import numpy as np
import pytest

import serai
from serai.log.losses import LOST
from serai.opportunistic.losses import losses_of, stays_of

SMALL: dict[str, Any] = {
    "nodes.count": 14,
    "movement.width": "300 m",
    "movement.height": "300 m",
    "duration": "20 min",
    "bundles.interval": "12 s",
    "bundles.lifetime": "4 min",
    "bundles.quiet": "0 s",
    "channels.count": 3,
    "channels.each": 1,
}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("flooding", {}),
    ("flooding", {"nodes.store": "60 kB", "nodes.when_full": "oldest"}),
    ("flooding", {"nodes.store": "50 kB", "nodes.when_full": "refuse", "radio.rate": "20 kbit/s"}),
    ("dpsp", {"nodes.store": "80 kB", "radio.rate": "40 kbit/s"}),
    ("direct", {"radio.rate": "10 kbit/s"}),
    ("spray", {"nodes.store": "60 kB"}),
    ("first-contact", {"protocol.consume": True}),
]


def slow_losses(run: serai.OpportunisticRun) -> list[tuple[int, int, str]]:
    """Bundle, node and reason, asked of the tables pair by pair."""
    rows = {name: table.to_pylist() for name, table in run.tables.items()}
    delivered = {(row["event"], row["node"]) for row in rows["deliveries"]}
    found = []
    for event in rows["events"]:
        number, born, over = event["event"], event["time_s"], event["time_s"] + event["lifetime_s"]
        sent = [row for row in rows["transfers"] if row["event"] == number]
        gone = [row for row in rows["drops"] if row["event"] == number]
        asking = sorted({
            row["node"] for row in rows["subscriptions"]
            if row["channel"] == event["channel"] and max(row["from_s"], born) < min(row["to_s"], over)
        } - {event["node"]})  # fmt: skip
        for node in asking:
            if over > run.scenario.duration_s or (number, node) in delivered:
                continue
            failed = [row["outcome"] for row in sent if row["receiver"] == node and row["outcome"] in FAILED]
            if failed:
                found.append((number, node, FAILED[failed[-1]]))
                continue
            meetings = [row for row in rows["contacts"] if node in (row["a"], row["b"])]
            seen = {"never_met"}
            for contact in meetings:
                other = contact["a"] + contact["b"] - node
                for begin, end, until in _stays(event, other, sent, gone, run.scenario.duration_s):
                    if max(begin, contact["start_s"]) < min(until, contact["end_s"]):
                        seen.add("full")
                    if max(begin, contact["start_s"]) < min(end, contact["end_s"]):
                        seen.add("not_sent")
            found.append((number, node, next(why for why in ("not_sent", "full", "never_met") if why in seen)))
    return found


FAILED = {"broken": "stranded", "unfinished": "stranded", "late": "expired", "refused": "full"}


def _stays(
    event: dict[str, Any], node: int, sent: list[dict[str, Any]], gone: list[dict[str, Any]], end_s: float
) -> list[tuple[float, float, float]]:
    """When the bundle lay at the node: from, to, and to when if it had not been driven out."""
    over = event["time_s"] + event["lifetime_s"]
    acts = [(row["end_s"], "came", "") for row in sent if row["receiver"] == node and row["stored"]]
    acts += [(row["end_s"], "left", "moved") for row in sent if row["sender"] == node and row["moved"]]
    acts += [(row["time_s"], "left", row["reason"]) for row in gone if row["node"] == node and row["held"]]
    stays = []
    if event["node"] == node:
        born = event["time_s"]
        if any(row["node"] == node and not row["held"] and row["time_s"] == born for row in gone):
            stays.append((born, born, over))
        else:
            acts.append((born, "came", ""))
    lies: float | None = None
    for time_s, what, why in sorted(acts, key=lambda act: act[0]):
        if what == "came":
            assert lies is None
            lies = time_s
        else:
            assert lies is not None
            stays.append((lies, time_s, over if why == "evicted" else time_s))
            lies = None
    return stays if lies is None else [*stays, (lies, end_s, end_s)]


def test_reasons_are_those_of_the_slow_version() -> None:
    """In the cases together every reason occurs; dead nodes there are none."""
    seen = set()
    for protocol, changes in CASES:
        run = serai.simulate(serai.load_scenario("dpsp", SMALL | changes, protocol=protocol), seed=5, full_log=True)
        assert isinstance(run, serai.OpportunisticRun)
        found = losses_of(run)
        assert found is not None
        rows = zip(found.event.tolist(), found.subscriber.tolist(), (LOST[why] for why in found.why), strict=True)
        expected = slow_losses(run)
        assert list(rows) == expected, (protocol, changes)
        assert len(expected) > 10
        assert sum(getattr(run.metrics, f"lost_{name}") for name in LOST) == len(expected)
        seen |= {why for _, _, why in expected}
    assert seen == {"never_met", "not_sent", "stranded", "expired", "full"} & seen
    assert {"never_met", "not_sent", "stranded", "full"} <= seen


def test_without_a_full_log_nobody_knows() -> None:
    run = serai.simulate(serai.load_scenario("dpsp", SMALL), seed=5)
    assert isinstance(run, serai.OpportunisticRun)
    assert losses_of(run) is None
    assert np.isnan(run.metrics.lost_never_met)


@pytest.mark.parametrize("when_full", ["oldest", "refuse"])
def test_what_lies_in_stores_adds_up(when_full: str) -> None:
    """The bytes that stays account for over time are those that the engine counted."""
    changes = SMALL | {"nodes.store": "60 kB", "nodes.when_full": when_full}
    run = serai.simulate(serai.load_scenario("dpsp", changes, protocol="flooding"), seed=5, full_log=True)
    assert isinstance(run, serai.OpportunisticRun)
    stays = stays_of(run)
    byte_s = run.world.bundles.size_bytes[stays.bundle] * (stays.end_s - stays.begin_s)
    assert np.bincount(stays.node, byte_s, run.world.nodes) == pytest.approx(run.outcome.stored_byte_s, rel=1e-9)
