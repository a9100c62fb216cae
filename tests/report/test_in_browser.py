"""Reports in real Chromium: they fit a phone and a sheet of paper, in both themes."""

from pathlib import Path
from typing import Any

import pytest

import serai
from serai.report import write_run_report
from serai.report.page import write_page
from serai.report.results import Point
from serai.report.sections import sections
from tests.report.hand_made import ALPHAS, results
from tests.report.test_pictures import run_of


@pytest.fixture(scope="module")
def browser() -> Any:
    from tests.replay.browser import start_chromium

    chromium = start_chromium()
    yield chromium
    chromium.quit()


OVERLAPS = """
const found = [];
for (const picture of document.querySelectorAll("svg")) {
  const frame = picture.getBoundingClientRect(), unit = frame.width / picture.viewBox.baseVal.width;
  const words = [...picture.querySelectorAll("text")], boxes = words.map((word) => word.getBoundingClientRect());
  words.forEach((word, i) => {
    const a = boxes[i], out = Math.max(frame.left - a.left, a.right - frame.right, a.bottom - frame.bottom);
    if (out > 3) found.push("cut: " + word.textContent);
    for (const b of boxes.slice(0, i)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > unit && high > 3 * unit) found.push(words[boxes.indexOf(b)].textContent + " and " + word.textContent);
    }
  });
}
return found;
"""


HIDDEN = """
const out = (cell) => cell.getBoundingClientRect().right > innerWidth || !cell.offsetHeight;
return [...document.querySelectorAll("#table-metrics td")].filter(out).map((cell) => cell.textContent);
"""


@pytest.mark.parametrize("name", ["run", "comparison", "sweep", "two settings"])
def test_a_page_fits_a_phone_and_a_sheet_of_paper(browser: Any, tmp_path: Path, name: str) -> None:
    """Nothing is wider than either, no words lie over others, and everything can be read in both themes."""
    from tests.replay.test_access import CONTRAST

    if name == "run":
        serai.write_run(run_of("cet"), tmp_path / "run")
        page = write_run_report(tmp_path / "run")
    else:
        two = tuple(
            Point("field", {"protocol.alpha": a, "sensors.queue": q}) for a in ("2", "10") for q in ("50", "200")
        )
        found = results({"sweep": ALPHAS, "two settings": two}.get(name, (Point("field", {}),)))
        page = write_page(tmp_path / "page", "By hand", "20 seeds", sections(found))
    for scheme in ("light", "dark"):
        emulated = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", emulated)
        shape = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
        browser.get(page.as_uri())
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert browser.execute_script(CONTRAST) == []
        assert browser.execute_script(OVERLAPS) == []
        assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
        assert browser.execute_script(HIDDEN) == []
    shape = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    newspaper = """
        const of = (cell) => getComputedStyle(cell).columnCount;
        return [...document.querySelectorAll("td")].filter((cell) => of(cell) !== "auto").length;
    """
    assert browser.execute_script(newspaper) == 0, "a cell is one column of words, however wide the window"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shape = {"width": 703, "height": 1000, "deviceScaleFactor": 1, "mobile": False}  # A4 less its margins
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
    cut = """
        const ends = (t) => t.getBoundingClientRect().right;
        return [...document.querySelectorAll("table")].filter((t) => ends(t) > innerWidth + 1).map((t) => t.id);
    """
    assert browser.execute_script(cut) == []
