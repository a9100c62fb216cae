"""Pictures of runs in other networks than fields: every number in them is one of the tables."""

import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import serai
from serai.log.svg import AMOUNTS
from serai.report import write_run_report
from serai.report.maps import typical_life
from serai.report.networks import event_way, load_map, most_load, query_way, spread, store_levels, store_map
from tests.replay.tables import Told

SVG = "{http://www.w3.org/2000/svg}"


@cache
def dpsp() -> serai.OpportunisticRun:
    changes = {"duration": "1 h", "bundles.lifetime": "20 min", "bundles.quiet": "0 s"}
    run = serai.simulate(serai.load_scenario("dpsp", changes), seed=3, full_log=True)
    assert isinstance(run, serai.OpportunisticRun)
    return run


@cache
def tinymq(full_log: bool = True) -> serai.OverlayRun:
    changes = {"nodes.count": 150, "events.count": 100, "field.width": "100 m"}
    run = serai.simulate(serai.load_scenario("tinymq", changes), seed=3, full_log=full_log)
    assert isinstance(run, serai.OverlayRun)
    return run


def elements(svg: str, name: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(f"{SVG}{name}"))


def test_stores_are_as_full_as_the_tables_tell() -> None:
    run = dpsp()
    told, levels = Told(run), store_levels(run)
    for place in (0, 17, 59):
        assert levels[:, place].tolist() == told.levels(3600 * (place + 1) / 60)
    picture = store_map(run)
    assert picture is not None
    assert len(elements(picture.svg, "rect")) == AMOUNTS + 60 * min(50, run.world.nodes)
    scale = [rect.get("fill") for rect in elements(picture.svg, "rect")[:AMOUNTS]]
    assert scale == [f"var(--s-a{step})" for step in range(AMOUNTS)], "what is full is dark on paper, bright at night"
    assert store_map(serai.simulate(run.scenario, seed=3)) is None


def test_a_typical_bundle_is_one_that_several_want() -> None:
    run = dpsp()
    life = typical_life(run)
    assert life is not None
    rows = [row for row in run.tables["deliveries"].to_pylist() if row["event"] == life.event and row["wanted"]]
    born = run.tables["events"]["time_s"][life.event].as_py()
    assert [wait for wait in life.waits_s if wait == wait] == pytest.approx(
        sorted(row["time_s"] - born for row in rows)
    )


def test_the_busiest_node_is_that_of_the_table() -> None:
    run = tinymq()
    picture = load_map(run, "p0", most_load([run]))
    assert picture is not None
    load = run.tables["load"].to_pandas().groupby("node")[["sent", "received"]].sum().sum(axis=1)
    assert f"{load.max():,}" in [element.text for element in elements(picture.svg, "text")]
    assert run.network.names[int(load.idxmax())] in picture.caption
    assert len(elements(picture.svg, "title")) == 150


def test_a_query_and_an_event_go_where_the_tables_say() -> None:
    run = tinymq()
    query, event = query_way(run), event_way(run)
    assert query is not None
    assert event is not None
    messages = run.tables["query_messages"].to_pandas()
    sent = (
        messages[messages.back >= 0].groupby("subscription").size().reindex(range(len(run.network.low)), fill_value=0)
    )
    number = int(re.search(r"number (\d+)", query.caption)[1])  # type: ignore[index]
    assert abs(sent[number] - sent.mean()) == abs(sent - sent.mean()).min()
    assert len(elements(query.svg, "polyline")) == sent[number]
    stored = messages[(messages.subscription == number) & messages.stays].node.nunique()
    assert len(elements(query.svg, "rect")) == 1 + stored
    number = int(re.search(r"number (\d+)", event.caption)[1])  # type: ignore[index]
    hops = run.tables["transfers"].to_pandas().query("event == @number")
    assert len(elements(event.svg, "polyline")) == len(hops)
    told = np.unique(hops.addressee[hops.kind == "notification"])
    assert len(elements(event.svg, "circle")) == 1 + len(told)
    assert event_way(tinymq(full_log=False)) is None


def test_the_pages_open_with_them(tmp_path: Path) -> None:
    opening = {
        "dpsp": ("run", "stores-dpsp", "spread", "fates", "lives", "delay"),
        "tinymq": ("load-tinymq", "query-tinymq", "event-tinymq"),
    }
    for run in (dpsp(), tinymq()):
        serai.write_run(run, tmp_path / run.protocol)
        page = write_run_report(tmp_path / run.protocol).read_text()
        drawn = re.findall('id="figure-([^"]+)"', page)
        assert tuple(drawn) == opening[run.protocol]
        assert page.index(f'id="figure-{drawn[-1]}"') < page.index('id="main"')
        assert '<h1 class="lead"><b class="p0">' in page


def test_a_typical_bundle_lies_where_the_tables_say() -> None:
    run = dpsp()
    life, picture = typical_life(run), spread(run, "p0")
    assert life is not None
    assert picture is not None
    told, born_s = Told(run), run.tables["events"]["time_s"][life.event].as_py()
    times = sorted({born_s + 60 * k for k in range(21)} | {row["end_s"] for row in run.tables["transfers"].to_pylist()
                   if row["event"] == life.event and row["stored"]})  # fmt: skip
    most = max(int(told.held(time_s)[:, life.event].sum()) for time_s in times)
    assert f"it lies in up to {most} of 100 stores" in picture.caption
