"""Pages of runs that are too large to be shown whole: what they count is exact, and what they lack they say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import serai
from serai.cli import execute
from serai.core.errors import BadInput
from serai.field.metrics import aggregate_full_log
from serai.log.run import SimulatedRun
from serai.replay import run as replays
from serai.replay.contacts import contacts_streams
from serai.replay.field import field_streams
from serai.replay.thin import Cut, Wish, cut_to_fit, kept_events, keyframes
from tests.effort import THOROUGH
from tests.replay.browser import Page, start_chromium
from tests.replay.runs import run_of
from tests.replay.tables import Told

NAMES = ("cet", "dpsp")


def streams_of(run: SimulatedRun) -> Any:
    return field_streams(run) if isinstance(run, serai.FieldRun) else contacts_streams(run)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_keyframes_are_what_the_tables_tell(name: str) -> None:
    run, moments = run_of(name), np.array([0.0, 61.0, 240.0, 1e6])
    level, spent = keyframes(streams_of(run), moments)
    told = Told(run)
    for moment, row in zip(moments, level, strict=True):
        assert row.tolist() == told.levels(moment)
    if isinstance(run, serai.FieldRun):
        assert run.full is not None
        begun = run.full.transfers.time_s <= 240
        part = run.full._replace(transfers=type(run.full.transfers)(*(rows[begun] for rows in run.full.transfers)))
        assert spent[2, :100].tolist() == aggregate_full_log(part, run).event_pj.tolist()
        assert spent[3, :100].tolist() == run.ledger.event_pj.tolist()
    else:
        senders = run.tables["transfers"]["sender"].to_numpy()
        assert spent[3].tolist() == np.bincount(senders, minlength=told.nodes).tolist()


def test_events_are_chosen_by_their_number_alone() -> None:
    chosen = kept_events(4096, Cut(0, 60, 16, (5, 7)))
    assert chosen[[5, 7]].all()
    assert 4096 / 16 * 0.8 < chosen.sum() < 4096 / 16 * 1.2
    assert np.array_equal(chosen[:100], kept_events(100, Cut(60, 120, 16, (5, 7))))
    fewer = kept_events(4096, Cut(0, 60, 32))
    assert not (fewer & ~chosen).any()


def test_spans_are_whole_minutes_within_the_run() -> None:
    streams, end = streams_of(run_of("cet")), 7200 if THOROUGH else 600
    assert cut_to_fit(streams, Wish(100, 130), 10_000)[:2] == (60, 180)
    assert cut_to_fit(streams, Wish(begin_s=end - 100), 10_000)[:2] == (end - 120, end)
    assert cut_to_fit(streams, Wish(end_s=61), 10_000)[:2] == (0, 120)
    assert cut_to_fit(streams, Wish(), 10_000)[:2] == (end / 2, end / 2 + 60)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = start_chromium()
    yield chromium
    chromium.quit()


def rows_in(page: Page) -> list[list[int]]:
    """Event, sender and receiver of each row of a page."""
    found: list[list[int]] = page.js(
        "const { m } = replay; return [...m.c.event].map((e, r) => [e, m.from(r), m.to(r)])"
    )
    return found


def kept_rows(run: SimulatedRun, events: list[int]) -> list[list[int]]:
    """Those of the table from 120 s to 180 s, and all of these events."""
    rows = run.tables["transfers"].to_pandas()
    at = rows.end_s.round(3)
    kept = ((at > 120) & (at <= 180)) | rows.event.isin(events)
    found: list[list[int]] = rows[kept][["event", "sender", "receiver"]].to_numpy().tolist()
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_thinned_page_counts_everything(
    browser: Any, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same sentences, queues and energy as the whole page; in its span, and of kept events, the same rows."""
    run, file = run_of(name), tmp_path / "thin.html"
    whole = tmp_path / "whole.html"
    whole.write_text(replays.page_of(run)[0])
    monkeypatch.setattr(replays, "MOST_BYTES", int(0.8 * whole.stat().st_size))
    page_text, told = replays._fitting(run, Wish(120, 180, (3,)))
    file.write_text(page_text)
    if name == "cet":  # of the other, contacts and tracks alone are more
        assert len(page_text) <= replays.MOST_BYTES
    assert "from 120 s to 180 s" in told
    end = run.scenario.duration_s
    moments = [0, 60, 125.5, 133, 180, 240, end / 60 // 2 * 60, end]
    sentences = "return document.getElementById('story').textContent"
    page = Page(browser, whole)
    expected = [(page.state(t), page.js(sentences)) for t in moments]
    life = page.js("const l = replay.m.life(3); return [l.hops.map((h) => h.slice(0, 3)), l.steps, l.held]")
    glow = page.js("const c = replay.m.c; return [...c.link].filter((_, r) => c.rowAt[r] > 240 && c.rowAt[r] <= 300)")
    page = Page(browser, file)
    assert [(page.state(t), page.js(sentences)) for t in reversed(moments)][::-1] == expected
    assert page.js("const l = replay.m.life(3); return [l.hops.map((h) => h.slice(0, 3)), l.steps, l.held]") == life
    page.go(290)
    assert rows_in(page) == kept_rows(run, page.js("return [...replay.m.c.keptEvent]"))
    links = page.js("return replay.m.c.linkFrom.length")
    assert page.js("return [...replay.map.uses(0, 0)]") == np.bincount(glow, minlength=links).tolist()
    gone = page.js("let e = 0; while (replay.m.isKept(e)) e++; replay.select({event: e}); return e")
    card = page.js("return document.getElementById('card').textContent")
    assert f"Event {gone} is not among the 1 in" in card
    assert f"serai replay --events {gone}" in card
    assert "transfers are in this page" in page.js("return document.getElementById('thin').textContent")
    assert not page.complaints()


def test_what_cannot_be_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = serai.load_scenario("field", {"sensors.count": 10, "duration": "3 min", "events.quiet": "0 s"})
    folder = serai.write_run(serai.simulate(small, seed=1, full_log=True), tmp_path / "run")
    for asked, problem in (
        (["--from", "4 min"], "the run lasts from 0 to 180 s; choose --from and --to within"),
        (["--from", "2 min", "--to", "0:01:00"], "--from 120 s is not before --to 60 s"),
        (["--to", "soon"], '--to: "soon" is not a time'),
        (["--events", "100000"], "no event 100000; its events are 0 to "),
    ):
        assert execute(["replay", str(folder), *asked]) == 2
        assert problem in capsys.readouterr().err
    assert not (folder / "replay.html").exists()
    made = replays.write_replay(folder, begin_s=60, events=[2])
    assert '"opening":60,"chosen":2' in made.page.read_text().replace("60.0", "60")
    assert made.left_out == ""
    tiny = serai.load_scenario("tinymq", {"nodes.count": 20, "field.width": "30 m"})
    overlay = serai.write_run(serai.simulate(tiny, seed=1, full_log=True), tmp_path / "overlay")
    with pytest.raises(BadInput, match="an overlay has no clock"):
        replays.write_replay(overlay, begin_s=1)
