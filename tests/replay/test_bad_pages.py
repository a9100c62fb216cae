"""Pages that cannot be shown say why, in their own first line."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serai.replay.run import page_of
from tests.replay.browser import start_chromium
from tests.replay.runs import run_of


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = start_chromium()
    yield chromium
    chromium.quit()


def said(browser: Any, file: Path, text: str) -> str:
    file.write_text(text)
    browser.get(file.as_uri())
    begun = time.monotonic()
    while (line := browser.execute_script("return document.getElementById('story').textContent")).startswith("Unpack"):
        assert time.monotonic() - begun < 20
        time.sleep(0.05)
    return str(line)


def test_files_that_were_cut_or_damaged(browser: Any, tmp_path: Path) -> None:
    page = page_of(run_of("tinymq"))[0]
    assert "hops" in said(browser, tmp_path / "whole.html", page)
    assert said(browser, tmp_path / "cut.html", page[: page.index('id="data"') + 500]).startswith(
        "This file is cut short"
    )
    at = page.index('id="data"') + 2000
    for wrong in ("!!", "AB" if page[at : at + 2] != "AB" else "BA"):  # no digits, and digits: the checksum knows
        damaged = said(browser, tmp_path / "damaged.html", page[:at] + wrong + page[at + 2 :])
        assert damaged.startswith("This page cannot be shown (")


def test_a_browser_that_cannot_unpack(browser: Any, tmp_path: Path) -> None:
    without = {"source": "delete window.DecompressionStream"}
    made = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", without)
    line = said(browser, tmp_path / "old.html", page_of(run_of("tinymq"))[0])
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", made)
    assert line.startswith("This browser cannot unpack the run (it has no DecompressionStream): use Chromium 103")
