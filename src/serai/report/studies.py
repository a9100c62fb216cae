"""How the papers are reproduced: the one table from a paper's name to its runs, its pages and its words.

Each kind of network says in its `paper.py` what was published; here stands how that is run and shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from serai.core.errors import BadInput, did_you_mean
from serai.field.paper import PAPERS as FIELD_PAPERS
from serai.field.study import NAME as SERAI
from serai.kinds import protocol_label
from serai.overlay.paper import PAPER as TINYMQ
from serai.report import dpsp, markdown, reproduction, serai, serai_pages, terminal, tinymq
from serai.report.page import write_page
from serai.report.paper import finder, paper_plan
from serai.report.reproduction import Reproduction
from serai.report.section import Section
from serai.report.sections import sections
from serai.report.wording import in_words
from serai.sweeping.plan import Plan

if TYPE_CHECKING:
    from serai.sweeping.results import Sweep

Found = TypeVar("Found")


@dataclass(frozen=True)
class Study(Generic[Found]):
    """The reproduction of the papers on one kind of network."""

    papers: tuple[str, ...]
    plan: Callable[[tuple[str, ...], int, bool], Plan]
    """All runs that these papers take, with so many seeds, and if asked for with other readings of open points."""
    read: Callable[[Sweep], Found]
    write: Callable[[Found, Path], Path]
    """The page of a finished reproduction, into a folder."""
    as_dict: Callable[[Found], dict[str, Any]]
    as_text: Callable[[Found], str]
    as_markdown: Callable[[Found], str] | None = None
    refuses: Mapping[str, str] = field(default_factory=dict)
    """Options of `serai paper` that make no sense here, and why."""

    def check(self, name: str, options: Mapping[str, bool]) -> None:
        """Refuse options that make no sense for this paper."""
        for option, given in options.items():
            if given and option in self.refuses:
                raise BadInput(f"{option}: not for {name}: {self.refuses[option]}")


# --- Those that compare with printed numbers


def read_reproduction(sweep: Sweep) -> Reproduction:
    """The summary of a finished sweep, and where the papers' set-ups stand in it."""
    from serai.report.gather import gather

    return Reproduction(gather(sweep, _title(sweep.plan)), finder(sweep.plan))


def write_pages(found: Reproduction, folder: Path) -> Path:
    """The page, tables and figures of a summary, in a folder."""
    results = found.results
    seeds, points = in_words(results.seeds, "seed"), len(results.points)
    world = [results.setting] if results.setting else []
    subtitle = " · ".join([*world, *([in_words(points, "point")] if points > 1 else []), f"{seeds} each"])
    return write_page(folder, results.title, subtitle, sections(results.main(), _caveats(found), _chapter(found)))


def _title(plan: Plan) -> str:
    if not plan.name.startswith(_PREFIX):
        return f"{', '.join(protocol_label(name) for name in plan.protocols)}: {plan.name}"
    papers = [protocol_label(name) for study in STUDIES for name in study.papers if name in plan.protocols]
    return f"The {' and '.join(papers)} paper{'s' if len(papers) > 1 else ''} reproduced"


def _chapter(found: Reproduction) -> Section | None:
    """The chapter on whichever papers the sweep has runs of."""
    return reproduction.chapter(found) or tinymq.chapter(found)


def _caveats(found: Reproduction) -> tuple[str, ...]:
    return reproduction.caveats(found) or tinymq.caveats(found)


# --- All of them

_PREFIX: Final = "paper "
_ALL: Final = "all"

STUDIES: Final[tuple[Study[Any], ...]] = (
    Study(
        tuple(FIELD_PAPERS),
        paper_plan,
        read_reproduction,
        write_pages,
        reproduction.as_dict,
        terminal.as_text,
        markdown.as_markdown,
    ),
    Study(
        (TINYMQ.name,),
        lambda papers, seeds, ablate: tinymq.tinymq_plan(seeds),
        read_reproduction,
        write_pages,
        tinymq.as_dict,
        tinymq.as_text,
        tinymq.as_markdown,
        {"--ablate": "its readings are always run"},
    ),
    Study(
        ("dpsp",),
        lambda papers, seeds, ablate: dpsp.study_plan(seeds),
        dpsp.read_study,
        dpsp.write_study,
        dpsp.as_dict,
        dpsp.as_text,
        refuses=dict.fromkeys(("--ablate", "--markdown"), "its text prints no numbers"),
    ),
    Study(
        (SERAI,),
        lambda papers, seeds, ablate: serai.study_plan(seeds),
        serai.read_study,
        serai_pages.write_study,
        serai_pages.as_dict,
        serai_pages.as_text,
        serai_pages.as_markdown,
        {"--ablate": "its rules are always taken away, one by one"},
    ),
)


def find_study(name: str) -> tuple[Study[Any], tuple[str, ...]]:
    """The study of a paper, and which of its papers are meant: `all` means those that share their runs."""
    if name == _ALL:
        return STUDIES[0], STUDIES[0].papers
    for study in STUDIES:
        if name in study.papers:
            return study, (name,)
    known = [name for study in STUDIES for name in study.papers]
    raise BadInput(f'no paper "{name}"; {did_you_mean(name, [*known, _ALL])}')


def study_of(plan: Plan) -> Study[Any] | None:
    """The study that a plan was made for, if any."""
    return find_study(plan.name.split()[1])[0] if plan.name.startswith(_PREFIX) else None
