"""What the reports say of a small field, worked out by hand."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from serai.core.errors import BadInput
from serai.pipeline.config import load_pipeline
from serai.pipeline.nodes import read_places
from serai.pipeline.page import in_one_sentence, in_time, spread
from serai.pipeline.reports import Hole
from serai.pipeline.run import run_once
from tests.pipeline.field import BEGIN, CONFIG, NOW, event, make_field, put
from tests.pipeline.test_pipeline import once


@pytest.fixture
def field(tmp_path: Path) -> Path:
    """n1 lacks 3 and 4, a ferry brought n2, n3's clock is a year ahead, n4's was never set, n5 was never heard."""
    config = CONFIG.replace("quarantined = 1", "quarantined = 1, clocks = true").replace(
        "deliver", 'nodes = "nodes.csv"\ndeliver'
    )
    place = make_field(tmp_path, config)
    (tmp_path / "nodes.csv").write_text("node,x,y\nn1,0,0\nn2,100,0\nn5,0,50\n")
    inbox = tmp_path / "inbox"
    put(inbox, "n1.csv", [event(1, seq) for seq in (1, 2, 5, 6)])
    put(inbox, "n2.jsonl", [event(2, seq, carrier="ferry") for seq in (1, 2)])
    put(inbox, "n3.csv", [event(3, 1) | {"seen": (BEGIN + timedelta(days=375)).isoformat()}])
    put(inbox, "n4.csv", [event(4, 1) | {"seen": "1970-01-01T00:10:00Z"}])
    put(inbox, "torn.parquet", [event(1, 9)])
    (inbox / "torn.parquet").write_bytes(b"PAR1 torn")
    return place


def test_nodes_carriers_subscriptions_and_clocks(field: Path) -> None:
    status = once(field)
    nodes = {node.node: node for node in status.nodes}
    assert (nodes["n1"].arrived, nodes["n1"].missing, nodes["n1"].gaps, nodes["n1"].completeness) == (
        4,
        2,
        ("1:3-4",),
        4 / 6,
    )
    # It came 10 days after BEGIN; n1 made its events 1, 2, 5 and 6 h and 1 min after it.
    assert nodes["n1"].median_delay_s == pytest.approx(10 * 86_400 - 3.5 * 3600 - 60, abs=2 * 3600)
    assert (nodes["n2"].clock, nodes["n4"].clock) == ("good", "never set")
    assert nodes["n3"].clock == f"{365 * 86_400:,} s ahead"
    assert (nodes["n5"].arrived, nodes["n5"].missing, nodes["n5"].silent_s) == (0, None, None)
    assert [(each.carrier, each.events, each.nodes) for each in status.carriers] == [("ferry", 2, 1)]
    assert {each.subscription: each.events for each in status.served} == dict(status.subscriptions)
    assert set(status.alerts) >= {
        "n5 has never been heard",
        "n1 lacks 33% of its events: 1:3-4",
        "the clock of n4: never set",
        "1 file in quarantine",
    }
    assert in_one_sentence(status).startswith(
        "Of 10 events that 4 nodes made, 8 came home and 2 are missing, all at n1."
    )
    assert in_one_sentence(replace(status, nodes=())).startswith("8 events came home and made ")


def test_the_page_of_the_day(field: Path) -> None:
    once(field)
    home = field.parent / "home"
    page = (home / "report.html").read_text()
    assert page == (home / "reports" / "2026-11-11.html").read_text()
    assert "Today 5 files arrived with 8 new events; 1 could not be read." in page
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org/2000/svg)", page)  # nothing from elsewhere
    assert page.count("<figure>") == 2
    assert page.count("<circle") == 3  # only three nodes have a place
    assert "n1: 4 arrived, 2 missing" in page
    put(field.parent / "inbox", "bad.csv", [event(6, 1) | {"node": "<script>alert(1)</script>"}])
    run_once(load_pipeline(field), now=lambda: NOW + 86_400)
    later = (home / "reports" / "2026-11-12.html").read_text()
    assert "Today 1 file arrived with 1 new event." in later
    assert "<script>" not in later
    assert (home / "reports" / "2026-11-11.html").read_text() == page


def test_what_is_missing_is_spread_between_its_neighbours() -> None:
    edges = np.array([0.0, 10.0, 20.0, 30.0])
    assert spread([Hole(4, 5.0, 25.0)], edges).tolist() == pytest.approx([1.0, 2.0, 1.0])
    assert spread([], edges).tolist() == [0, 0, 0]
    assert [in_time(value) for value in (None, 5, 200, 7200, 200_000)] == ["–", "5 s", "3.3 min", "2.0 h", "2.3 d"]


def test_places_in_degrees_and_bad_ones(tmp_path: Path) -> None:
    file = tmp_path / "nodes.csv"
    file.write_text("node,lat,lon\na,60,10\nb,60,11\nc,,\n")
    places = read_places(file)
    assert set(places) == {"a", "b"}
    assert places["b"][0] - places["a"][0] == pytest.approx(111_195 / 2, rel=1e-3)  # half as far apart at 60 degrees
    for text, words in (
        ("node,x\na,1\n", "no columns x and y"),
        ("node,x,y\na,1,north\n", 'y: "north" is not a number'),
    ):
        file.write_text(text)
        with pytest.raises(BadInput, match=words):
            read_places(file)
    with pytest.raises(BadInput, match="no such file"):
        read_places(tmp_path / "none.csv")
