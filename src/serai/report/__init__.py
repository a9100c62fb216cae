"""Tables, figures and one HTML page: what a sweep found, for people to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from serai.report import tinymq
from serai.report.page import write_page
from serai.report.reproduction import Reproduction, caveats, chapter
from serai.report.sections import Section, sections
from serai.report.wording import in_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["read_reproduction", "write_pages", "write_report"]


def write_report(folder: str | Path, spark: SparkSession) -> Path:
    """Write the report of a finished sweep into its folder; the path of the page."""
    return write_pages(read_reproduction(folder, spark), Path(folder))


def read_reproduction(folder: str | Path, spark: SparkSession) -> Reproduction:
    """The summary of a finished sweep, and where the papers' set-ups stand in it."""
    from serai.report.gather import gather
    from serai.report.paper import finder
    from serai.sweep.results import open_sweep

    sweep = open_sweep(folder, spark)
    return Reproduction(gather(sweep), finder(sweep.plan))


def write_pages(found: Reproduction, folder: Path) -> Path:
    """The page, tables and figures of a summary, in a folder."""
    results = found.results
    main = results.main()
    seeds, points = in_words(results.seeds, "seed"), in_words(len(results.points), "point")
    subtitle = f"{points} · {', '.join(name.upper() for name in results.protocols)} · {seeds} each"
    return write_page(folder, results.title, subtitle, sections(main, _caveats(found), _chapter(found)))


def _chapter(found: Reproduction) -> Section | None:
    """The chapter on whichever papers the sweep has runs of."""
    return chapter(found) or tinymq.chapter(found)


def _caveats(found: Reproduction) -> tuple[str, ...]:
    return caveats(found) or tinymq.caveats(found)
