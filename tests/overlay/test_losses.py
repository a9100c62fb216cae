"""Why events were not told in an overlay, whose algorithms lose some as they are printed."""

from typing import Any

import pytest

import serai
from serai.log.losses import LOST
from serai.overlay.losses import losses_of

SMALL: dict[str, Any] = {"nodes.count": 60, "field.width": "100 m", "field.height": "40 m", "events.count": 200}


@pytest.mark.parametrize(("routing", "complete"), [("as-printed", False), ("strict", True)])
def test_reasons_are_those_of_the_tables(routing: str, complete: bool) -> None:
    changes = SMALL | {"subscriptions.count": 30, "subscriptions.widest": 1.0, "protocol.routing": routing}
    run = serai.simulate(serai.load_scenario("tinymq", changes), seed=2, full_log=True)
    assert isinstance(run, serai.OverlayRun)
    rows = {name: table.to_pylist() for name, table in run.tables.items()}
    told = {(row["event"], row["subscription"]) for row in rows["notifications"]}
    expected = []
    for event in rows["events"]:
        places = [row["node"] for row in rows["arrivals"] if row["event"] == event["event"]]
        why = "never_met" if not places else "stranded" if -1 in places else "not_sent"
        for asked in rows["subscriptions"]:
            bounds = zip(asked["low"], event["values"], asked["high"], strict=True)
            if all(low <= v <= high for low, v, high in bounds):
                pair = event["event"], asked["subscription"]
                expected += [] if pair in told else [(*pair, why)]
    found = losses_of(run)
    assert found is not None
    assert [(e, q, LOST[w]) for e, q, w in zip(found.event, found.subscriber, found.why, strict=True)] == expected
    assert (not expected) == complete
    assert run.metrics.wanted_pairs - run.metrics.delivered_pairs == len(expected)
    assert run.metrics.lost_stranded == sum(why == "stranded" for _, _, why in expected)
    assert losses_of(serai.simulate(run.scenario, seed=2)) is None  # type: ignore[arg-type]
