"""Pages for everybody: by keyboard alone, without motion, in both themes, on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.effort import THOROUGH
from tests.replay.browser import Page, start_chromium
from tests.replay.runs import NAMES, file_of, run_of

LOOKED_AT = NAMES if THOROUGH else ("cet", "dpsp", "trace", "tinymq")  # one of each kind of map


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = start_chromium()
    yield chromium
    chromium.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture(scope="module", params=LOOKED_AT)
def page(request: pytest.FixtureRequest, browser: Any, folder: Path) -> Page:
    return Page(browser, file_of(run_of(request.param), folder, request.param), "#t=30&n=3")


CARD = "return document.getElementById('card').textContent"


def test_by_keyboard_alone(page: Page) -> None:
    page.press("Escape Home")
    step = page.js("return +document.getElementById('scrub').step")
    page.press("ArrowRight ArrowRight ArrowLeft")
    assert page.js("return replay.t") == step
    if step == 1 and page.js("return replay.m.end") > 70:
        page.press("shift+ArrowRight")
        assert page.js("return replay.t") == 61
    page.press("space")
    assert page.js("return document.getElementById('play').getAttribute('aria-label')") == "Pause"
    page.press("space")
    assert page.js("return document.getElementById('said').textContent") == page.js(
        "return document.getElementById('story').textContent"
    )
    page.press("End")
    assert page.js("return replay.t") == page.js("return replay.m.end")
    page.press("Home n")
    assert page.js("return replay.m.nodeTitle(0)") in page.js(CARD)
    page.press("Escape d")
    assert page.js("return location.hash").startswith("#t=")
    assert page.js("return replay.map.pick.event") >= 0
    page.press("Escape /")
    name = page.js("return replay.m.names[17 % replay.m.count]")
    page.press(" ".join(name) + " Enter")
    assert name in page.js(CARD)
    page.press("Escape /")
    assert page.js("return document.activeElement.id") == "q"
    page.js("document.getElementById('q').value = ''")
    page.press("n o p e Enter")
    assert "Nothing is called “nope”" in page.js(CARD)
    before = page.js("return replay.map.view.z")
    page.js("document.activeElement.blur()")
    page.press("+")
    assert page.js("return replay.map.view.z") > before
    page.press("0 Escape")


def test_who_wants_no_motion_gets_none(page: Page) -> None:
    """The setting is heard of at once; what is said then is the sentence, when it is paused."""
    busy = (
        "const m = replay.m; replay.select(null); replay.speed = 600; replay.go(m.c.rowAt[m.c.rowAt.length >> 1] + .5)"
    )
    drawn = "return replay.map.dotsDrawn"
    for motion, moves in (("reduce", False), ("no-preference", True)):
        page.emulate(reduced_motion=motion)
        page.hear()
        page.js(busy)
        assert (page.js(drawn) > 0) == moves
    page.js("replay.toggle(true); replay.toggle(false)")
    assert page.js("return document.getElementById('said').textContent") == page.js(
        "return document.getElementById('story').textContent"
    )


CONTRAST = """
const part = (v) => v / 255 <= .03928 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4;
const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(part); return .2126 * r + .7152 * g + .0722 * b; };
const ground = (e) => {
  for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; }
  return "rgb(255, 255, 255)";
};
const seen = (e) => e.textContent.trim() && e.offsetParent !== null && !e.classList.contains("on-colour");
const all = "h1, h1 *, p, p *, button, label, legend, span, h2, text, td, figcaption";
return [...document.querySelectorAll(all)].filter(seen).map((e) => {
  const style = getComputedStyle(e), a = light(e.tagName === "text" ? style.fill : style.color), b = light(ground(e));
  return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.tagName + " " + e.textContent.slice(0, 30)];
}).filter(([ratio]) => ratio < 4.5);
"""
NAMELESS = """
return [...document.querySelectorAll("button, input, select, canvas[role]")].filter((e) =>
  !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).map((e) => e.outerHTML);
"""


def test_everybody_can_read_it(page: Page) -> None:
    """Contrast in both themes, of every card; names of controls; nothing wider than a phone, and room for fingers."""
    for scheme in ("light", "dark"):
        page.emulate(color_scheme=scheme)
        for pick in ("null", "{node: 3}", "{event: 5}", "{node: replay.m.count - 1}"):
            page.js(f"replay.go(replay.m.end / 2); replay.select({pick})")
            assert page.js(CONTRAST) == []
    assert page.js(NAMELESS) == []
    page.size(390, 800)
    for pick in ("null", "{node: 3}", "{event: 5}"):
        page.js(f"replay.select({pick})")
        assert page.js("return document.documentElement.scrollWidth") <= 390
    heights = "return [...document.querySelectorAll('.transport button')].map((e) => e.offsetHeight)"
    assert min(page.js(heights)) >= 40
    page.size(1280, 800)


ON_PAPER = """
const box = document.getElementById("mapbox").getBoundingClientRect(), map = document.getElementById("map");
const style = (e) => getComputedStyle(e), footer = document.querySelector("footer");
const shape = map.width / map.height - box.width / box.height, below = footer.getBoundingClientRect().top >= box.bottom;
const transport = style(document.querySelector(".transport")).display;
return [style(document.body).backgroundColor, replay.map.inks.bg, Math.round(box.width), shape, below,
  style(footer).position, transport];
"""


def test_paper_is_light_and_shows_the_moment_undistorted(page: Page) -> None:
    page.emulate(color_scheme="dark")
    page.size(390, 800)
    page.js("replay.select({event: 5}); replay.go(replay.m.end / 2)")
    before = page.js(ON_PAPER)
    page.js("dispatchEvent(new Event('beforeprint'))")
    ground, ink, wide, distorted, below, position, transport = page.js(ON_PAPER)
    assert (ground, ink, wide) == ("rgb(255, 255, 255)", "#fff", 700)
    assert abs(distorted) < 0.01
    assert (below, position, transport) == (True, "static", "none")
    assert page.js("return replay.t") == page.js("return replay.m.end / 2")
    page.js("replay.select(null); replay.go(replay.m.end)")
    assert page.js("return [...document.querySelectorAll('.feed button')].map((e) => e.offsetHeight > 0)") == [True] * 9
    page.js("replay.select({event: 5}); replay.go(replay.m.end / 2)")
    page.js("dispatchEvent(new Event('afterprint'))")
    assert page.js(ON_PAPER) == before
    page.emulate()
    page.size(1280, 800)


def test_the_map_keeps_its_size(page: Page) -> None:
    """The sentence has room for its longest, so that nothing jumps while playing."""
    sizes = set()
    for part in (0, 0.2, 0.5, 0.8, 1):
        page.js("replay.go(arguments[0] * replay.m.end)", part)
        sizes.add(page.js("return document.getElementById('mapbox').offsetHeight"))
    assert len(sizes) == 1


WRITTEN = """
const words = [], proto = CanvasRenderingContext2D.prototype, fillText = proto.fillText;
proto.fillText = function (text, x, y) {
  if (this.canvas.id === "strip") {
    const wide = this.measureText(text).width, shift = { left: 0, center: wide / 2, right: wide }[this.textAlign];
    const left = x - shift;
    words.push([text, left, left + wide, y]);
  }
  return fillText.apply(this, arguments);
};
replay.go(replay.m.end / 3);
proto.fillText = fillText;
const meet = ([a, l, r, y], [b, m, s, z]) => y === z && l < s && m < r;
return [words.length, words.filter((w, i) => words.slice(0, i).some((v) => meet(v, w))).map(([text]) => text)];
"""


def test_no_words_of_the_strip_lie_over_others(page: Page) -> None:
    for width in (320, 390, 1280):
        page.size(width, 800)
        written, over = page.js(WRITTEN)
        assert written > 2
        assert over == []


def test_a_window_of_any_size_is_drawn(page: Page) -> None:
    """In a low window the map stays large enough to see, and the page is scrolled; without any room nothing fails."""
    page.complaints()
    page.size(900, 300)
    assert page.js("return replay.map.h") >= 240
    page.size(1, 1)
    page.js("replay.go(replay.m.end / 2)")
    page.size(1280, 60)
    page.js("replay.go(replay.m.end)")
    page.size(1280, 800)
    assert page.complaints() == []
