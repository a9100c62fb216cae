"""Pages in real Chromium: their numbers are the metrics', their states the tables', however one comes to a time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import serai
from serai.field.losses import losses_of
from serai.log.losses import LOST
from serai.log.run import SimulatedRun
from tests.effort import THOROUGH
from tests.replay.browser import Page, start_chromium
from tests.replay.runs import CONTACTS, FIELDS, NAMES, SHORT, file_of, run_of
from tests.replay.tables import Told, ToldOverlay, rows_of

TIMES = 20 if THOROUGH else 3
WALKING = (*FIELDS, *CONTACTS)  # all with a clock


class Opened(NamedTuple):
    """A page that is open, and the run that it shows."""

    name: str
    run: SimulatedRun
    page: Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = start_chromium()
    yield chromium
    chromium.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module", params=NAMES)
def loaded(request: pytest.FixtureRequest, browser: Any, folder: Path) -> Opened:
    """Each page once, for all tests that look at it."""
    run = run_of(request.param)
    return Opened(request.param, run, Page(browser, file_of(run, folder, request.param)))


@pytest.fixture
def opened(loaded: Opened) -> Opened:
    loaded.page.js("replay.toggle(false); replay.select(null); replay.go(0)")
    return loaded


def test_attributes_that_are_texts_are_told_as_texts(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "readings.csv").write_text("time,sensor,level,site\n10,0,1.5,north\n20,1,,<São>\n30,2,2,\n")
    (tmp_path / "mine.toml").write_text('[events]\nfile = "readings.csv"\n[subscriptions]\nwhere = ["level > 1"]\n')
    run = serai.simulate(serai.load_scenario(tmp_path / "mine.toml", protocol="ced"), seed=1, full_log=True)
    page = Page(browser, file_of(run, tmp_path, "texts"))
    assert page.js("return [0, 1, 2].map((e) => replay.m.valuesOf(e))") == [
        *("level 1.500, site north", "level unknown, site &lt;São>", "level 2.000, site unknown"),
    ]


def told_of(run: SimulatedRun) -> Told | ToldOverlay:
    return ToldOverlay(run) if isinstance(run, serai.OverlayRun) else Told(run)


def drawn_times(page: Page) -> list[float]:
    end, draw = page.js("return replay.m.end"), random.Random(7)
    # Between two milliseconds: the page rounds times to them, the tables do not.
    return [round(draw.uniform(0, end), 3) + 0.0005 for _ in range(TIMES)]


# --- 1: at the end


def test_the_end_is_what_the_metrics_say(opened: Opened) -> None:
    page, run = opened.page, opened.run
    page.go(1e9)
    metrics = run.metrics
    assert (page.number("delivered"), page.number("wanted")) == (metrics.delivered_pairs, metrics.wanted_pairs)
    assert page.number("waiting") + page.number("lost") == metrics.wanted_pairs - metrics.delivered_pairs
    assert page.number("lost") == sum(getattr(metrics, f"lost_{name}") for name in LOST)


def test_first_receptions_are_those_of_the_table(opened: Opened) -> None:
    page, run = opened.page, opened.run
    told = page.js("const d = replay.m.deliveries; return [[...d.event], [...d.node], [...d.time]]")
    if isinstance(run, serai.OverlayRun):
        published = ToldOverlay(run).published
        rows = [row for row in rows_of(run, "notifications") if not row["again"]]
        expected = sorted((row["event"], row["subscription"], published + row["hops"]) for row in rows)
        assert sorted(zip(*told, strict=True)) == expected
        return
    rows = [row for row in rows_of(run, "deliveries") if opened.name in FIELDS or row["wanted"]]
    assert told[:2] == [[row[name] for row in rows] for name in ("event", "node")]
    assert told[2] == pytest.approx([row["time_s"] for row in rows], abs=0.0006)


# --- 2: at any time


def test_states_are_those_of_the_tables(opened: Opened) -> None:
    """Queues, stores and queries; energy to the picojoule, transfers and messages; the contents of five nodes."""
    page, told = opened.page, told_of(opened.run)
    for t in (*drawn_times(page), 1e9):
        state = page.state(t)
        assert state["level"] == told.levels(t)
        assert state["spent"] == told.spent(t)
        for node in random.Random(t).sample(range(told.nodes), 5) if isinstance(told, Told) else ():
            assert dict(page.js("return [...replay.m.holds(arguments[0], replay.t)]", node)) == told.held_at(node, t)


def test_the_end_is_what_the_engine_says(opened: Opened) -> None:
    """Energy to the picojoule; the peaks of stores after every change; the load of an overlay."""
    page, run = opened.page, opened.run
    page.go(1e9)
    if isinstance(run, serai.FieldRun):
        assert page.state()["spent"][: len(run.world.sensor_x)] == run.ledger.event_pj.tolist()
    elif isinstance(run, serai.OpportunisticRun):
        peaks = page.js("""
            const m = replay.m, most = new Float64Array(m.count), out = m.blank();
            const times = [...new Set([...m.c.bornAt, ...m.c.rowAt])].sort((a, b) => a - b);
            for (const t of times) {
              m.advance(out, t);
              out.level.forEach((v, n) => { most[n] = Math.max(most[n], v); });
            }
            return [...most];
        """)
        engine = run.tables["stores"]["peak_bytes"].to_pylist()
        assert all(told <= peak for told, peak in zip(peaks, engine, strict=True))
        same = sum(told == peak for told, peak in zip(peaks, engine, strict=True))  # times are rounded to milliseconds
        assert same >= 0.9 * len(engine)
    else:
        load = run.tables["load"].to_pandas().query("kind != 'info'").groupby("node").sent.sum()
        assert page.state()["spent"] == load.tolist()


def test_events_go_the_ways_of_the_tables(opened: Opened) -> None:
    page, run = opened.page, opened.run
    events = random.Random(3).sample(range(len(run.tables["events"])), 12)
    told = page.js("return arguments[0].map((e) => replay.m.life(e).hops.map((h) => h.slice(0, 3)))", events)
    if isinstance(run, serai.OverlayRun):
        ways = ToldOverlay(run).ways
        expected = [[list(hop) for hop in sorted(ways.get(event, []))] for event in events]
        assert [sorted(way) for way in told] == expected
        return
    rows = run.tables["transfers"].to_pandas()
    for event, way in zip(events, told, strict=True):
        own = rows[rows.event == event]
        assert [hop[1:] for hop in way] == own[["sender", "receiver"]].to_numpy().tolist()
        assert [hop[0] for hop in way] == pytest.approx(own.end_s.tolist(), abs=0.0006)


# --- 3: however one comes there


def test_however_one_comes_there(opened: Opened) -> None:
    """From before, from behind, by playing and by single steps: the same state; stepping back undoes stepping on."""
    page = opened.page
    end, step = page.js("return replay.m.end"), page.js("return +document.getElementById('scrub').step")
    t = float(int(end * 0.37))
    straight = page.state(t)
    page.go(end)
    assert page.state(t) == straight
    page.go(t - 3)
    for _ in range(3):
        page.js("document.getElementById('next').click()")
    assert page.state() == page.state(page.js("return replay.t"))
    page.go(t)
    page.js("document.getElementById('next').click(); document.getElementById('back').click()")
    assert page.js("return replay.t") == pytest.approx(t - t % step if step > 1 else t)
    assert page.state(t) == straight
    for _ in range(40):  # as playing does: many small ways
        page.js("replay.go(replay.t + arguments[0])", end / 4000)
    assert page.state() == page.state(page.js("return replay.t"))


# --- 4: one request


def test_nothing_is_asked_for_and_nothing_complained_of(opened: Opened) -> None:
    page = opened.page
    assert page.js("return location.protocol") == "file:"
    assert page.js("return performance.getEntriesByType('resource').length") == 0
    policy = page.js("return document.querySelector('meta[http-equiv=Content-Security-Policy]').content")
    assert policy.startswith("default-src 'none'")
    assert not page.complaints()
    ask = "const [done] = arguments; fetch('data:,x').then(() => done('sent'), () => done('refused'))"
    assert page.browser.execute_async_script(ask) == "refused"  # no script of the page could ask, either
    page.complaints()  # of that


# --- Why things were lost


def test_every_lost_pair_has_its_reason(opened: Opened) -> None:
    """The card says of each lost pair why; of others that they wait, or when they were served."""
    page, run = opened.page, opened.run
    told = page.js("""
        const m = replay.m, all = {};
        for (const pair of m.lostWhy.keys()) {
          const why = m.why(Math.floor(pair / m.wanters), pair % m.wanters).split(" ").slice(0, 3).join(" ");
          all[why] = (all[why] || 0) + 1;
        }
        return all;
    """)
    words = {"not_sent": "never: met, but", "never_met": "never: never within", "stranded": "never: stranded at",
             "expired": "never: grew too", "full": "never: met a", "dead": "never: the battery"}  # fmt: skip
    if opened.name in CONTACTS:
        words = {"never_met": "never: met nobody", "not_sent": "never: last met", "stranded": "never: the contact",
                 "expired": "never: too late", "full": "never: met a"}  # fmt: skip
    for reason, start in words.items():
        assert told.pop(start, 0) == getattr(run.metrics, f"lost_{reason}"), reason
    assert told == {}


def test_an_events_life_says_why_it_was_lost(browser: Any, folder: Path) -> None:
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


# --- 7: one wrong row


def wrong(run: SimulatedRun) -> SimulatedRun:
    """The run with another receiver in one row of its full log."""
    if isinstance(run, serai.OpportunisticRun):
        log = run.outcome.transfer_log.copy()
        row = int(np.flatnonzero(log.stored)[7])
        log.receiver[row] = (log.receiver[row] + 1) % run.world.nodes
        return replace(run, outcome=run.outcome._replace(transfer_log=log))
    full = run.full if isinstance(run, serai.FieldRun) else run.outcome.full
    rows = full.transfers if isinstance(run, serai.FieldRun) else full.hops
    receiver = rows.receiver.copy()
    row = int(np.flatnonzero(rows.stored if isinstance(run, serai.FieldRun) else rows.kind == 0)[7])
    receiver[row] = (receiver[row] + 1) % 100
    rows = rows._replace(receiver=receiver)
    if isinstance(run, serai.FieldRun):
        return replace(run, full=full._replace(transfers=rows))
    return replace(run, outcome=run.outcome._replace(full=full._replace(hops=rows)))


@pytest.mark.parametrize("name", [one for one in NAMES if one != "dg"] if THOROUGH else ("cet", "dpsp", "tinymq"))
def test_one_row_that_is_wrong_is_noticed(browser: Any, folder: Path, name: str) -> None:
    """The page works its numbers out of the rows: with one receiver changed they are no longer the run's."""
    run, made = run_of(name), wrong(run_of(name))
    page = Page(browser, file_of(made, folder, f"wrong-{name}"))
    if isinstance(run, serai.OverlayRun):
        ways = ToldOverlay(run).ways
        told = page.js("return arguments[0].map((e) => replay.m.life(e).hops.map((h) => h.slice(0, 3)))", list(ways))
        assert [sorted(way) for way in told] != [[list(hop) for hop in sorted(way)] for way in ways.values()]
    else:
        state = page.state(1e9)
        assert state["level"] != Told(run).levels(np.inf)
        assert isinstance(run, serai.OpportunisticRun) or state["spent"] != Told(run).spent(np.inf)


# --- 8: size


@pytest.mark.parametrize("name", FIELDS)
def test_a_page_is_no_larger_than_its_log_allows(folder: Path, name: str) -> None:
    size = file_of(run_of(name), folder, name).stat().st_size
    assert size <= 3.6 * len(run_of(name).tables["transfers"]) + 150_000


# --- What only some pages have


def test_sensors_that_die(browser: Any, folder: Path) -> None:
    """With a battery that most outlive and the busiest do not: what the dead held is gone, and they publish no more."""
    scenario = serai.load_scenario("field", SHORT | {"sensors.battery": "0.01 J"}, protocol="cet")
    run = serai.simulate(scenario, seed=3, full_log=True)
    assert isinstance(run, serai.FieldRun)
    assert 0 < run.metrics.sensors_alive < 100
    page, told = Page(browser, file_of(run, folder, "dying")), Told(run)
    page.go(1e9)
    assert (page.number("delivered"), page.number("wanted")) == (run.metrics.delivered_pairs, run.metrics.wanted_pairs)
    for t in (*drawn_times(page), np.inf):
        assert page.state(min(t, 1e9))["level"] == told.levels(t)
    assert page.state(1e9)["spent"][:100] == run.ledger.event_pj.tolist()


def test_sensors_that_wake(browser: Any, folder: Path) -> None:
    """What the dead held is gone, and who has woken publishes again; the card tells of what the whole run brought."""
    sun = {"sensors.battery": "0.01 J", "sensors.idle": "80 uW", "sensors.harvest": "60 uW", "sensors.wake": 0.2}
    run = serai.simulate(serai.load_scenario("field", SHORT | sun, protocol="cet"), seed=3, full_log=True)
    assert isinstance(run, serai.FieldRun)
    assert run.metrics.wakings > 10
    page, told = Page(browser, file_of(run, folder, "waking")), Told(run)
    page.go(1e9)
    assert (page.number("delivered"), page.number("wanted")) == (run.metrics.delivered_pairs, run.metrics.wanted_pairs)
    for t in (*drawn_times(page), np.inf):
        assert page.state(min(t, 1e9))["level"] == told.levels(t)
    nap, counted = rows_of(run, "naps")[0], rows_of(run, "equipment")
    for t, dead in ((nap["since_s"], False), (nap["since_s"] + 1, True), (nap["until_s"], True)):
        page.go(t)
        page.js("replay.select({ node: arguments[0] })", nap["node"])
        assert page.js("return document.getElementById('dead') !== null") == dead
    for name, count in (("harvested", "harvested_pj"), ("wasted", "wasted_pj"), ("listened", "idle_pj")):
        shown = page.js("return document.getElementById(arguments[0]).textContent", name)
        assert float(shown) == pytest.approx(counted[nap["node"]][count] / 1e12, abs=1e-4)


def test_heads_sessions_and_control_messages_are_those_of_the_tables(browser: Any, folder: Path) -> None:
    run = run_of("cet")
    page = Page(browser, file_of(run, folder, "cet"))
    t = run.scenario.duration_s // 120 * 60 - 1.0
    page.go(t)
    heads = {row["member"]: row["node"] for row in rows_of(run, "heads") if row["time_s"] <= t}
    assert set(page.js("return [...replay.m.headsAt(replay.t)]")) == set(heads.values())
    for node in (100, 103, 107):
        rows = [row for row in rows_of(run, "sessions") if row["subscriber"] == node]
        now = {row["member"] for row in rows if row["start_s"] <= t < row["end_s"]}
        assert set(page.js("return replay.m.sessionsOf(arguments[0], replay.t)", node)) == now
    for node in (0, 17, 99):
        rows = [row for row in rows_of(run, "control_energy") if row["node"] == node and row["time_s"] <= t]
        spent_j = sum(row["control_pj"] for row in rows) / 1e12
        assert page.js("return replay.m.controlOf(arguments[0], replay.t)", node) == pytest.approx(spent_j, abs=1e-5)


def test_keys_are_those_of_the_table(browser: Any, folder: Path) -> None:
    run = run_of("tinymq")
    page = Page(browser, file_of(run, folder, "tinymq"), "#t=5&n=7")
    text = page.js("return document.getElementById('card').textContent")
    for row in rows_of(run, "keys"):
        if row["node"] == 7 and not row["mended"]:
            assert f"tree {row['tree']}: key {row['key']}" in text


def test_a_trace_has_no_places(browser: Any, folder: Path) -> None:
    page = Page(browser, file_of(run_of("trace"), folder, "trace"))
    assert "stand near each other" in page.js("return document.getElementById('note').textContent")


def test_without_places_a_bundle_is_drawn_from_hand_to_hand(browser: Any, folder: Path) -> None:
    """Only what brought it to those who wanted it: a line for each transfer of these chains, and for no other."""
    run = run_of("trace")
    page = Page(browser, file_of(run, folder, "trace"))
    rows, asked = run.tables["transfers"].to_pandas(), run.tables["deliveries"].to_pandas()
    event = int(rows.groupby("event").size().idxmax())
    came: dict[int, int] = {}
    for row in rows[(rows.event == event) & (rows.outcome == "accepted")].itertuples():
        came.setdefault(row.receiver, row.sender)
    expected = set()
    for node in asked[(asked.event == event) & asked.wanted].node:
        while node in came:
            expected.add((came[node], node))
            node = came[node]
    drawn = page.js(
        """
        const { map, m } = replay, lines = [], [event] = arguments;
        replay.go(m.end);
        replay.select({ event });
        map.line = (g, a, b) => lines.push([a, b]);
        map.held = () => {};
        map.way({ beginPath() {}, stroke() {} }, m.life(event));
        return lines;
        """,
        event,
    )
    assert sorted(map(tuple, drawn)) == sorted(expected)
    assert 1 < len(expected) < (rows.event == event).sum()


def test_groups_are_the_same_made_in_slices_or_at_once(browser: Any, folder: Path) -> None:
    """Rows by a number, asked for before, amid and after their making: what a choice finds while the page is idle."""
    page = Page(browser, file_of(run_of("trace"), folder, "trace"))
    told = page.js("""
        const Groups = replay.m.rowsOfLink.constructor;
        const keys = Uint8Array.from({ length: 70000 }, (_, i) => i * i % 97);
        return [0, 1, 3, 9].map((slices) => {
          const groups = new Groups(keys, 97);
          for (let i = 0; i < slices; i++) groups.go();
          return [...Array(97).keys()].map((k) => [...groups.of(k)]);
        });
    """)
    expected = [[i for i in range(70_000) if i * i % 97 == k] for k in range(97)]
    assert told == [expected] * 4
    assert page.js("while (!replay.m.prepareChoices()); return replay.m.rowsOfEvent.made && replay.m.dropsOfNode.made")
