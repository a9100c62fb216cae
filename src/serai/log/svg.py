"""Pictures as SVG text, made by hand: they follow the page's width and its light or dark, and text stays text.

A drawing has its own style inside, so that it looks the same in a page, in a notebook and as a file. Colours have
names; the dark ones are chosen for a dark ground, and all of them can be told apart by colour-blind readers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Final

INKS: Final = {
    "ink": ("#1d2129", "#ece9e2"),
    "soft": ("#565d6a", "#a8aeb9"),
    "line": ("#d5d2ca", "#363c44"),
    "ground": ("#f5f3ec", "#1b2027"),
    "paper": ("#ffffff", "#16191d"),
    "p0": ("#0064a6", "#5fb4f0"),
    "p1": ("#b84700", "#ff9b5c"),
    "p2": ("#00785a", "#4fd1a5"),
    "p3": ("#a3447f", "#ee9fcf"),
    "p4": ("#8a6100", "#f2b544"),
    "p5": ("#3d6f8f", "#8ecbe8"),
    "p6": ("#44474f", "#d0d3d9"),
    "g0": ("#332288", "#bbcc33"),
    "g1": ("#999933", "#ffaabb"),
    "g2": ("#882255", "#44bb99"),
    "g3": ("#44aa99", "#ee8866"),
    "g4": ("#ddcc77", "#99ddff"),
    "g5": ("#aa4499", "#eedd88"),
    "g6": ("#88ccee", "#77aadd"),
    "g7": ("#cc6677", "#aaaa00"),
    "alone": ("#7b808a", "#8b919c"),
    "lost": ("#b86e00", "#f2b544"),
    "a0": ("#cbba69", "#465d96"),
    "a1": ("#a69d75", "#5b6688"),
    "a2": ("#848279", "#707380"),
    "a3": ("#666970", "#848279"),
    "a4": ("#48526d", "#a69d75"),
    "a5": ("#1f3a6d", "#cbba69"),
    "a6": ("#00224e", "#fee838"),
    "t0": ("#000000", "#ffffff"),
    "t1": ("#000000", "#ffffff"),
    "t2": ("#000000", "#ffffff"),
    "t3": ("#ffffff", "#000000"),
    "t4": ("#ffffff", "#000000"),
    "t5": ("#ffffff", "#000000"),
    "t6": ("#ffffff", "#000000"),
    "c0": ("#4477aa", "#77aadd"),
    "c1": ("#ccbb44", "#eedd88"),
    "c2": ("#228833", "#44bb99"),
    "c3": ("#aa3377", "#ffaabb"),
    "c4": ("#66ccee", "#99ddff"),
    "c5": ("#ee6677", "#ee8866"),
    "c6": ("#997700", "#bbcc33"),
    "c7": ("#888888", "#aaaaaa"),
}
"""Each colour on a light and on a dark page: ground of maps, paper of the page itself, p of protocols, g of groups
(P. Tol), a of amounts (cividis, on a dark ground without its darkest end), t of text on them, c of causes (P. Tol)."""
GROUPS: Final = 8
AMOUNTS: Final = 7
CAUSES: Final = tuple(name for name in INKS if name.startswith("c"))

_FONT: Final = "font:11px system-ui,sans-serif;font-variant-numeric:tabular-nums"
_WORDS: Final = (
    "svg.serai text{fill:var(--s-soft)}"
    "svg.serai .strong{font-weight:650;fill:var(--s-ink)}"
    "svg.serai .strong,svg.serai .halo{stroke:var(--s-ground);stroke-width:3px;paint-order:stroke}"
    "svg.serai .halo{stroke:var(--s-paper)}"
)


def _style(drawn: str) -> str:
    """The style of a picture: the colours that it uses, on a light and on a dark page, and its words."""
    used = sorted(set(re.findall(r"var\(--s-(\w+)\)", drawn + _WORDS)))
    light, dark = ("".join(f"--s-{name}:{INKS[name][place]};" for name in used) for place in (0, 1))
    return f"svg.serai{{{light}{_FONT}}}@media screen and (prefers-color-scheme:dark){{svg.serai{{{dark}}}}}{_WORDS}"


def ink(name: str) -> str:
    """A colour by its name."""
    assert name in INKS, name
    return f"var(--s-{name})"


def amount(share: float) -> str:
    """The colour of an amount, by the square root of its share of the most."""
    return ink(f"a{min(AMOUNTS - 1, int(max(share, 0.0) ** 0.5 * AMOUNTS))}")


def draw_amounts(drawing: Drawing, left: float, base: float, ends: tuple[str, str], wide: float = 14) -> None:
    """The colours of amounts in a row, from the least to the most, with what these are."""
    begin = left + width_of(ends[0]) + 5
    drawing.text(left, base, ends[0])
    for step in range(AMOUNTS):
        drawing.add("rect", x=begin + wide * step, y=base - 9, width=wide, height=9, fill=ink(f"a{step}"))
    drawing.text(begin + wide * AMOUNTS + 5, base, ends[1])


def on_paper(svg: str) -> str:
    """The picture on white paper, its colours written out: programs other than browsers know no variables."""
    plain = re.sub("<style>.*?</style>", f"<style>svg.serai{{{_FONT}}}{_WORDS}</style>", svg)
    return re.sub(r"var\(--s-(\w+)\)", lambda found: INKS[found[1]][0], plain)


def width_of(words: str) -> float:
    """About how wide a text is; fonts differ by a tenth or so."""
    return 6.3 * len(words)


class Drawing:
    """A picture that grows element by element; `text` is escaped, coordinates have two decimals at most."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def add(self, element: str, content: str = "", **attributes: Any) -> None:
        """Any element with a text in it; underscores in names of attributes stand for hyphens."""
        self._put(element, escape(content), attributes)

    def _put(self, element: str, inside: str, attributes: dict[str, Any]) -> None:
        said = "".join(f' {name.rstrip("_").replace("_", "-")}="{_said(value)}"' for name, value in attributes.items())
        self._parts.append(f"<{element}{said}>{inside}</{element}>" if inside else f"<{element}{said}/>")

    def text(self, x: float, y: float, words: str, **attributes: Any) -> None:
        """Words that begin, or end (`text_anchor`), at a point."""
        self.add("text", words, x=x, y=y, **attributes)

    def line(self, points: Iterable[tuple[float, float]], **attributes: Any) -> None:
        """A line through points."""
        way = " ".join(f"{_said(x)},{_said(y)}" for x, y in points)
        self.add("polyline", points=way, fill="none", **attributes)

    def circle(self, x: float, y: float, r: float, title: str = "", **attributes: Any) -> None:
        """A disc, which says its title to a pointer that rests on it."""
        self._titled("circle", title, {"cx": x, "cy": y, "r": r} | attributes)

    def shape(self, d: str, x: float, y: float, title: str = "", **attributes: Any) -> None:
        """An outline around a point; it says its title, too."""
        self._titled("path", title, {"d": d, "transform": f"translate({_said(x)} {_said(y)})"} | attributes)

    def bar(self, x: float, y: float, width: float, height: float, title: str = "", **attributes: Any) -> None:
        """A rectangle; it says its title, too."""
        self._titled("rect", title, {"x": x, "y": y, "width": width, "height": height} | attributes)

    def _titled(self, element: str, title: str, attributes: dict[str, Any]) -> None:
        self._put(element, f"<title>{escape(title)}</title>" if title else "", attributes)

    def svg(self, label: str) -> str:
        """The whole picture; `label` is what it shows, for who cannot see it."""
        size = f'viewBox="0 0 {_said(self.width)} {_said(self.height)}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="serai" {size} role="img" aria-label="{escape(label)}">'
        drawn = "".join(self._parts)
        return f"{head}<style>{_style(drawn)}</style>{drawn}</svg>"


def _said(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return escape(str(value))


def ticks(low: float, high: float, most: int = 6) -> Sequence[float]:
    """Round numbers from `low` to `high`, at most so many."""
    span = max(high - low, 1e-12)
    unit = 10.0 ** int(f"{span / most:e}".partition("e")[2])
    step = next(factor * unit for factor in (1, 2, 5, 10, 20) if span / (factor * unit) <= most)
    first = int(low / step) + (1 if int(low / step) * step < low - 1e-9 * span else 0)
    return [n * step for n in range(first, int(high / step + 1e-9) + 1)]
