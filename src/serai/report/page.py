"""One HTML file that needs nothing else, and beside it the same tables as CSV and LaTeX and the figures as SVG."""

from __future__ import annotations

import base64
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from serai import __version__
from serai.core.errors import CannotRun
from serai.core.stopping import removed_if_stopped
from serai.log.svg import INKS, on_paper
from serai.papers.claims import FAILS, HOLDS, OPEN
from serai.papers.verdicts import HIT, MISSED
from serai.report.figures import Picture
from serai.report.section import Section
from serai.report.tables import Table, to_csv, to_latex

if TYPE_CHECKING:
    from markupsafe import Markup

PAGE: Final = "report.html"
REPLAY: Final = "replay.html"
"""A page that plays a run, if there is one beside the report: `serai.replay`."""
TABLES: Final = "tables"
FIGURES: Final = "figures"
_LONGEST_TITLE: Final = 40
_TONES: Final = {HOLDS: "good", FAILS: "bad", OPEN: "open", HIT: "good", MISSED: "bad"}


def render(title: str, subtitle: str, sections: Sequence[Section], replay: bool = False) -> str:
    """The page as text: no script, no reference to anything outside of it, but for a replay that lies beside it.

    It opens with the first chapter that has a lead, and with its pictures; the contents come after that.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    template = environment.from_string((resources.files("serai.report") / "page.html").read_text("utf-8"))
    present = [section for section in sections if not section.absent]
    return template.render(
        title=title,
        inks={name: colours for name, colours in INKS.items() if name.startswith("p")},
        coloured=_coloured,
        captioned=_captioned,
        replay=REPLAY if replay else "",
        subtitle=subtitle,
        sections=present,
        absent=[section for section in sections if section.absent],
        pictures={picture.name: data_uri(on_paper(picture.svg), "image/svg+xml") for picture in all_pictures(present)},
        files={
            f"{table.name}{ending}": data_uri(text, kind)
            for table in all_tables(present)
            for ending, kind, text in ((".csv", "text/csv", to_csv(table)), (".tex", "text/x-tex", to_latex(table)))
        },
        tones=_TONES,
        version=__version__,
    )


def _coloured(section: Section) -> Markup:
    """The lead of a chapter, every protocol in it in its colour."""
    from markupsafe import Markup

    lead = str(escape(section.lead)).replace(" %", "\u00a0%")
    names = "|".join(re.escape(name) for name in sorted(section.colours, key=len, reverse=True))
    if not names:
        return Markup(lead)
    told = re.sub(rf"(?<!\w)({names})(?!\w)", lambda n: f'<b class="{section.colours[n[1]]}">{n[1]}</b>', lead)
    return Markup(re.sub(r"\d[\d,.]*\u00a0%", r"<b>\g<0></b>", told))


def _captioned(caption: str) -> Markup:
    """The caption of a figure: what it is called stands out, where it begins with that."""
    from markupsafe import Markup

    first, *rest = re.split(r"(?<!Fig)\. ", caption, maxsplit=1)
    title = rest and len(first) <= _LONGEST_TITLE and ":" not in first
    return Markup(f"<b>{escape(first)}.</b> {escape(rest[0])}" if title else escape(caption))


def write_page(folder: Path, title: str, subtitle: str, sections: Sequence[Section]) -> Path:
    """Write the page and what goes beside it into `folder`, whole or not at all; the path of the page."""
    page = render(title, subtitle, sections, (folder / REPLAY).exists())
    try:
        folder.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".report-", dir=folder))
    except OSError as error:
        raise CannotRun(f"{folder}: the report cannot be written there: {error.strerror}") from None
    try:
        with removed_if_stopped(aside):
            _fill(aside, page, sections)
            for name in (TABLES, FIGURES):
                shutil.rmtree(folder / name, ignore_errors=True)
                (aside / name).rename(folder / name)
            (aside / PAGE).rename(folder / PAGE)
    except OSError as error:
        raise CannotRun(f"{folder}: the report cannot be written there: {error.strerror}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder / PAGE


def _fill(folder: Path, page: str, sections: Sequence[Section]) -> None:
    for name in (TABLES, FIGURES):
        (folder / name).mkdir()
    for table in all_tables(sections):
        (folder / TABLES / f"{table.name}.csv").write_text(to_csv(table), encoding="utf-8")
        (folder / TABLES / f"{table.name}.tex").write_text(to_latex(table), encoding="utf-8")
    for picture in all_pictures(sections):
        (folder / FIGURES / f"{picture.name}.svg").write_text(on_paper(picture.svg), encoding="utf-8")
    (folder / PAGE).write_text(page, encoding="utf-8")


def all_tables(sections: Sequence[Section]) -> Iterator[Table]:
    """Every table of these chapters and their parts."""
    for section in sections:
        yield from (*section.tables, *section.files)
        yield from all_tables(section.parts)


def all_pictures(sections: Sequence[Section]) -> Iterator[Picture]:
    """Every picture of these chapters and their parts."""
    for section in sections:
        yield from (*section.pictures, *section.beside)
        yield from all_pictures(section.parts)


def data_uri(text: str, kind: str) -> str:
    """A file inside the page: it can be saved from it, wherever the page was sent."""
    return f"data:{kind};base64,{base64.b64encode(text.encode()).decode()}"
