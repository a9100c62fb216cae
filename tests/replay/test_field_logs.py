"""What real nodes logged, played: a sensor, a ferry and a reader, as `tests.node.test_log` knows them."""

from __future__ import annotations

from pathlib import Path

from serai.node.log import write_recorded
from serai.replay import write_replay
from tests.node.test_log import stores
from tests.replay.browser import Page, start_chromium

__all__ = ["stores"]


def test_a_log_of_the_field_is_played(stores: list[Path], tmp_path: Path) -> None:
    write_recorded(stores[1:], tmp_path / "run")
    made = write_replay(tmp_path / "run")
    assert not made.simulated_again
    chromium = start_chromium()
    try:
        page = Page(chromium, made.page)
        said = page.js("return document.getElementById('kicker').textContent")
        assert "recorded by real nodes from 2000-01-01 00:16:40 UTC, sensor without a log" in said
        page.go(29.9)
        assert (page.number("delivered"), page.number("wanted"), page.number("waiting")) == (0, 1, 1)
        page.go(30)
        assert (page.number("delivered"), page.number("waiting")) == (1, 0)
        assert page.js("return replay.m.holds(replay.m.names.indexOf('ferry'), 20).size") == 2
        assert page.js("return replay.m.holds(replay.m.names.indexOf('ferry'), 29).size") == 1  # "hall" has expired
        assert page.js("return replay.m.contactsAt(12).length + replay.m.contactsAt(20).length") == 1
        assert not page.complaints()
    finally:
        chromium.quit()
