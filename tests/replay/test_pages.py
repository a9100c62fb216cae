"""Pages in real Chromium: their numbers are the metrics', their states the tables', however one comes to a time."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serai
from serai.field.metrics import aggregate_full_log
from serai.lab import parse_scenario
from serai.log.run import SimulatedRun
from serai.replay.run import page_of
from tests.replay.browser import Page, start_chromium
from tests.replay.tables import Told, rows_of

THOROUGH = os.environ.get("SERAI_THOROUGH") == "1"
TIMES = 20 if THOROUGH else 3
SHORT: dict[str, Any] = {} if THOROUGH else {"duration": "10 min", "events.lifetime": "3 min", "events.quiet": "0 s"}
FEW: dict[str, Any] = {} if THOROUGH else {"duration": "1 h", "bundles.lifetime": "20 min", "bundles.quiet": "0 s"}
SMALL: dict[str, Any] = {} if THOROUGH else {"nodes.count": 300, "events.count": 500, "field.width": "100 m"}
TRACE = """
duration = "1 h"
[contacts]
source = "trace"
file = "{file}"
[nodes]
store = "100 kB"
when_full = "oldest"
[channels]
count = 2
each = 1
[bundles]
interval = "60 s"
size_min = "10 kB"
size_max = "30 kB"
lifetime = "10 min"
[protocol]
name = "flooding"
"""
MEETINGS = "\n".join(
    f"{30 * k} CONN n{k % 5} n{(k * 3 + 1) % 7 + 5} up\n{30 * k + 20} CONN n{k % 5} n{(k * 3 + 1) % 7 + 5} down"
    for k in range(121)
)


@cache
def run_of(name: str) -> SimulatedRun:
    """A run under each protocol of the built-in scenarios, with its full log."""
    changes = SHORT if name in ("ced", "cet", "dg") else FEW if name in ("dpsp", "flooding") else SMALL
    source = "field" if name in ("ced", "cet", "dg") else name
    scenario = serai.load_scenario(source, changes, protocol=name)
    return serai.simulate(scenario, seed=3, full_log=True)


NAMES = ("ced", "cet", "dg", "dpsp", "flooding", "tinymq")
STORES = ("ced", "cet", "dg", "dpsp", "flooding")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = start_chromium()
    yield chromium
    chromium.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def file_of(run: SimulatedRun, folder: Path, name: str) -> Path:
    file = folder / f"{name}.html"
    if not file.exists():
        file.write_text(page_of(run)[0], encoding="utf-8")
    return file


@pytest.fixture
def page(request: pytest.FixtureRequest, browser: Any, folder: Path) -> Page:
    return Page(browser, file_of(run_of(request.param), folder, request.param))


def drawn_times(end: float) -> list[float]:
    return [round(random.Random(7).uniform(0, end), 3) for _ in range(TIMES)]


@pytest.mark.parametrize(("page", "name"), [(name, name) for name in NAMES], indirect=["page"])
def test_the_end_is_what_the_metrics_say(page: Page, name: str) -> None:
    run = run_of(name)
    page.go(1e9)
    assert (page.number("delivered"), page.number("wanted")) == (run.metrics.delivered_pairs, run.metrics.wanted_pairs)
    assert page.number("waiting") + page.number("lost") == run.metrics.wanted_pairs - run.metrics.delivered_pairs
    assert not page.complaints()
    assert page.js("return performance.getEntriesByType('resource').length") == 0
    if name in STORES:
        told = page.js("const d = replay.m.deliveries; return [[...d.event], [...d.node], [...d.time]]")
        table = [row for row in rows_of(run, "deliveries") if isinstance(run, serai.FieldRun) or row["wanted"]]
        assert told[:2] == [[row["event"] for row in table], [row["node"] for row in table]]
        assert told[2] == pytest.approx([row["time_s"] for row in table], abs=0.0006)


@pytest.mark.parametrize(("page", "name"), [(name, name) for name in STORES], indirect=["page"])
def test_states_are_those_of_the_tables(page: Page, name: str) -> None:
    run, told = run_of(name), Told(run_of(name))
    for t in drawn_times(run.scenario.duration_s):
        assert page.state(t)["level"] == told.levels(t)
        for node in random.Random(t).sample(range(told.nodes), 5):
            assert dict(page.js("return [...replay.m.holds(arguments[0], replay.t)]", node)) == told.held_at(node, t)
    page.go(1e9)
    assert page.state()["level"] == told.levels(np.inf)


@pytest.mark.parametrize(("page", "name"), [(name, name) for name in ("ced", "cet", "dg")], indirect=["page"])
def test_energy_is_that_of_the_engine_to_the_picojoule(page: Page, name: str) -> None:
    run = run_of(name)
    assert isinstance(run, serai.FieldRun)
    assert run.full is not None
    sensors = len(run.world.sensor_x)
    t = drawn_times(run.scenario.duration_s)[0]
    begun = run.full.transfers.time_s <= t
    so_far = run.full._replace(transfers=type(run.full.transfers)(*(column[begun] for column in run.full.transfers)))
    assert page.state(t)["spent"][:sensors] == aggregate_full_log(so_far, run).event_pj.tolist()
    assert page.state(1e9)["spent"][:sensors] == run.ledger.event_pj.tolist()


@pytest.mark.parametrize(("page", "name"), [(name, name) for name in ("dpsp", "flooding")], indirect=["page"])
def test_the_fullest_that_stores_were(page: Page, name: str) -> None:
    """Every change, one after the other: the peaks are the engine's."""
    peaks = page.js("""
        const m = replay.m, most = new Float64Array(m.count), out = m.blank();
        const times = [...new Set([...m.c.bornAt, ...m.c.rowAt])].sort((a, b) => a - b);
        for (const t of times) { m.advance(out, t); out.level.forEach((v, n) => { most[n] = Math.max(most[n], v); }); }
        return [...most];
    """)
    engine = run_of(name).tables["stores"]["peak_bytes"].to_pylist()
    assert all(told <= peak for told, peak in zip(peaks, engine, strict=True))
    assert sum(told == peak for told, peak in zip(peaks, engine, strict=True)) >= 0.9 * len(engine)


@pytest.mark.parametrize("page", ["cet", "dpsp", "tinymq"], indirect=True)
def test_however_one_comes_there(page: Page) -> None:
    """From before, from behind, by playing and by single steps: the same state; stepping back undoes stepping on."""
    end = page.js("return replay.m.end")
    t = float(int(end * 0.37))
    straight = page.state(t)
    page.go(end)
    assert page.state(t) == straight
    page.go(t - 3)
    for _ in range(3):
        page.js("document.getElementById('next').click()")
    step = page.js("return +document.getElementById('scrub').step")
    assert page.state() == page.state(page.js("return replay.t"))
    page.go(t)
    page.js("document.getElementById('next').click(); document.getElementById('back').click()")
    assert page.js("return replay.t") == pytest.approx(t - t % step if step > 1 else t)
    assert page.state(t) == straight
    for _ in range(40):  # as playing does: many small ways
        page.js("replay.go(replay.t + arguments[0])", end / 4000)
    assert page.state() == page.state(page.js("return replay.t"))


def test_an_events_life_says_why_it_was_lost(browser: Any, folder: Path) -> None:
    from serai.field.losses import LOST, losses_of

    run = run_of("cet")
    found = losses_of(run)
    assert found is not None
    row = int(np.flatnonzero(found.why == LOST.index("stranded"))[0])
    event, subscriber = int(found.event[row]), int(found.subscriber[row])
    page = Page(browser, file_of(run, folder, "cet"), f"#t=100&e={event}")
    text = page.js("return document.getElementById('card').textContent")
    assert f"Event {event}" in text
    drop = [
        drop
        for drop in rows_of(run, "drops")
        if drop["event"] == event and drop["addressee"] == len(run.world.sensor_x) + subscriber
    ][-1]
    minutes, seconds = divmod(int(drop["time_s"]), 60)
    name = run.tables["nodes"]["name"][drop["node"]].as_py()
    assert f"never: stranded at {name}, 0:{minutes:02}:{seconds:02}" in text
    page.go(run.scenario.duration_s)
    assert page.number("held") == Told(run).held(np.inf)[:, event].sum()


def test_sensors_that_die(browser: Any, folder: Path) -> None:
    """With a battery that most outlive and the busiest do not: what the dead held is gone, and they publish no more."""
    scenario = serai.load_scenario("field", SHORT | {"sensors.battery": "0.01 J"}, protocol="cet")
    run = serai.simulate(scenario, seed=3, full_log=True)
    assert isinstance(run, serai.FieldRun)
    assert 0 < run.metrics.sensors_alive < 100
    page, told = Page(browser, file_of(run, folder, "dying")), Told(run)
    page.go(1e9)
    assert (page.number("delivered"), page.number("wanted")) == (run.metrics.delivered_pairs, run.metrics.wanted_pairs)
    for t in (*drawn_times(run.scenario.duration_s), np.inf):
        assert page.state(min(t, 1e9))["level"] == told.levels(t)
    assert page.state(1e9)["spent"][:100] == run.ledger.event_pj.tolist()


def test_one_row_that_is_wrong_is_noticed(browser: Any, folder: Path) -> None:
    """The page works its numbers out of the rows: with one receiver changed they are no longer the engine's."""
    run = run_of("cet")
    assert isinstance(run, serai.FieldRun)
    assert run.full is not None
    receiver = run.full.transfers.receiver.copy()
    row = int(np.flatnonzero(run.full.transfers.stored)[7])
    receiver[row] = (receiver[row] + 1) % 100
    wrong = replace(run, full=run.full._replace(transfers=run.full.transfers._replace(receiver=receiver)))
    page = Page(browser, file_of(wrong, folder, "wrong"))
    assert page.state(1e9)["level"] != Told(run).levels(np.inf)
    assert page.state()["spent"][:100] != run.ledger.event_pj.tolist()


def test_a_trace_without_places(browser: Any, folder: Path) -> None:
    trace = folder / "meetings.txt"
    trace.write_text(MEETINGS + "\n")
    run = serai.simulate(parse_scenario(TRACE.format(file=trace)), seed=1, full_log=True)
    page = Page(browser, file_of(run, folder, "trace"))
    page.go(1e9)
    assert (page.number("delivered"), page.number("wanted")) == (run.metrics.delivered_pairs, run.metrics.wanted_pairs)
    assert "stand near each other" in page.js("return document.getElementById('note').textContent")
    told = Told(run)
    for t in drawn_times(3600.0):
        assert page.state(t)["level"] == told.levels(t)


def test_queries_and_events_of_an_overlay(browser: Any, folder: Path) -> None:
    run = run_of("tinymq")
    assert isinstance(run, serai.OverlayRun)
    page = Page(browser, file_of(run, folder, "tinymq"))
    page.go(1e9)
    stored = [row for row in rows_of(run, "query_messages") if row["stays"]]
    at = np.bincount([row["node"] for row in stored], minlength=300)
    assert page.state()["level"] == at.tolist()
    load = rows_of(run, "load")
    sent = np.zeros(300)
    for row in load:
        sent[row["node"]] += row["sent"] if row["kind"] != "info" else 0
    assert page.state()["spent"] == sent.tolist()
    told = {
        (row["event"], row["subscription"]): row["hops"] for row in rows_of(run, "notifications") if not row["again"]
    }
    assert told
    published = page.js("return replay.m.published")
    last = page.js("""
        const m = replay.m, out = {};
        for (let r = 0; r < m.c.link.length; r++) {
          if ((m.c.flags[r] & 3) === 1) (out[m.c.event[r]] ||= []).push([m.c.rowAt[r], m.to(r)]);
        }
        return out;
    """)
    for (event, subscription), hops in told.items():
        node = run.network.subscriber[subscription]
        way = [row for row in rows_of(run, "arrivals") if row["event"] == event]
        if all(hops != row["hops"] for row in way):  # else it is told where it meets the query
            assert [published + hops, node] in last[str(event)]


def test_by_keyboard_alone(browser: Any, folder: Path) -> None:
    page = Page(browser, file_of(run_of("cet"), folder, "cet"))
    page.press("ArrowRight ArrowRight shift+ArrowRight ArrowLeft")
    assert page.js("return replay.t") == 61
    page.press("space")
    assert page.js("return document.getElementById('play').getAttribute('aria-label')") == "Pause"
    page.press("space")
    assert page.js("return document.getElementById('said').textContent").startswith("After ")
    page.press("End")
    assert page.js("return replay.t") == page.js("return replay.m.end")
    page.press("Home n")
    assert "Sensor s0" in page.js("return document.getElementById('card').textContent")
    page.press("Escape d")
    assert page.js("return location.hash").startswith("#t=")
    assert "Event" in page.js("return document.getElementById('card').textContent")
    page.press("Escape /")
    page.press("s 1 7 Enter")
    assert "Sensor s17" in page.js("return document.getElementById('card').textContent")
    page.press("Escape /")
    assert page.js("return document.activeElement.id") == "q"
    page.js("document.getElementById('q').value = ''")
    page.press("n o p e Enter")
    assert "Nothing is called “nope”" in page.js("return document.getElementById('card').textContent")
    before = page.js("return replay.map.view.z")
    page.js("document.activeElement.blur()")
    page.press("+")
    assert page.js("return replay.map.view.z") > before


def test_who_wants_no_motion_gets_none(browser: Any, folder: Path) -> None:
    file = file_of(run_of("cet"), folder, "cet")
    page = Page(browser, file, "#t=300", reduced_motion="reduce")
    page.js("replay.toggle(true)")
    assert page.js("return replay.map.dotsDrawn") == 0
    page.js("replay.toggle(false)")
    assert page.js("return document.getElementById('said').textContent").startswith("After ")
    assert Page(browser, file, "#t=300", reduced_motion="no-preference").js("return replay.map.dotsDrawn") > 0


CONTRAST = """
const part = (v) => v / 255 <= .03928 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4;
const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(part); return .2126 * r + .7152 * g + .0722 * b; };
const ground = (e) => {
  for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; }
  return "rgb(255, 255, 255)";
};
const seen = (e) => e.textContent.trim() && e.offsetParent !== null;
const all = "h1, h1 *, p, p *, button, label, legend, span, h2, text";
return [...document.querySelectorAll(all)].filter(seen).map((e) => {
  const style = getComputedStyle(e), a = light(e.tagName === "text" ? style.fill : style.color), b = light(ground(e));
  return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.tagName + " " + e.textContent.slice(0, 30)];
}).filter(([ratio]) => ratio < 4.5);
"""
NAMELESS = """
return [...document.querySelectorAll("button, input, select, canvas[role]")].filter((e) =>
  !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML);
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["cet", "dpsp", "tinymq"])
def test_everybody_can_read_it(browser: Any, folder: Path, name: str, scheme: str) -> None:
    """Contrast, names of controls, and nothing wider than a phone."""
    page = Page(browser, file_of(run_of(name), folder, name), "#t=300&n=3", color_scheme=scheme)
    assert page.js(CONTRAST) == []
    assert page.js(NAMELESS) == []
    page.size(390, 800)
    assert page.js("return document.documentElement.scrollWidth") <= 390
    assert (
        page.js("return Math.min(...[...document.querySelectorAll('.transport button')].map((e) => e.offsetHeight))")
        >= 40
    )


def test_a_page_is_no_larger_than_its_log_allows(folder: Path) -> None:
    for name in ("ced", "cet", "dg"):
        run = run_of(name)
        size = file_of(run, folder, name).stat().st_size
        assert size <= 3.6 * len(run.tables["transfers"]) + 150_000
