"""Tables, figures and one HTML page: what a run or a sweep found, for people to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from serai.report.run import write_run_report
from serai.report.studies import read_reproduction, study_of, write_pages

if TYPE_CHECKING:
    from serai.sweeping.results import Sweep

__all__ = ["write_report", "write_run_report"]


def write_report(sweep: Sweep) -> Path:
    """Write the report of a finished sweep into its folder; the path of the page."""
    study = study_of(sweep.plan)
    if study is not None:
        return study.write(study.read(sweep), sweep.folder)
    return write_pages(read_reproduction(sweep), sweep.folder)
