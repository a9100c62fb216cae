"""A chapter of a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from serai.report.figures import Picture
from serai.report.tables import Table


@dataclass(frozen=True)
class Block:
    """Something to fold out: a title and a text as it stands."""

    title: str
    text: str


@dataclass(frozen=True)
class Section:
    """A chapter; `absent` says why there is nothing in it."""

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    beside: tuple[Picture, ...] = ()
    """Pictures beside the text and the tables, where the window is wide enough."""
    blocks: tuple[Block, ...] = ()
    files: tuple[Table, ...] = ()
    """Tables that are too long to be shown, and only offered as files."""
    absent: str = ""
    parts: tuple[Section, ...] = field(default=())
    lead: str = ""
    """The sentence that a page opens with; the pictures of its chapter follow at once."""
    colours: Mapping[str, str] = field(default_factory=dict)
    """The colours of names in the lead, as `serai.log.svg` calls them."""
