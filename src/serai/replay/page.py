"""One HTML file that plays a run in a browser: the template, its style and scripts, and the run as a text."""

from __future__ import annotations

import json
import re
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any, Final

from serai import __version__
from serai.core.errors import BadInput
from serai.core.placing import check_can_hold
from serai.core.stopping import removed_if_stopped
from serai.replay.pack import pack
from serai.replay.sheet import Sheet

_SCRIPTS: Final = {
    "field": ("data", "turns", "model", "field.model", "charts", "map", "field.map", "app"),
    "opportunistic": ("data", "turns", "model", "contacts.model", "charts", "map", "contacts.map", "app"),
    "overlay": ("data", "model", "overlay.model", "charts", "map", "overlay.map", "app"),
}
"""The modules of each kind's page, in the order in which they need each other."""

_IMPORT: Final = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)
_COMMENT: Final = re.compile(r"^ */\*(?:[^*]|\*(?!/))*\*/\n", re.MULTILINE)  # with lines of its own
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)


def render(kind: str, sheet: Sheet) -> str:
    """The page as text; it asks for nothing outside of itself, and a policy in it forbids that it could."""
    packed = pack(sheet.columns, sheet.rising)
    head = {"kind": kind, "version": __version__, "columns": packed.columns, "bytes": packed.bytes} | sheet.head
    parts = {
        "title": _escaped(f"{head['protocol']}, {_which(head)}: replay"),
        "style": _file("style.css"),
        "head": _in_script(json.dumps(head, ensure_ascii=False, separators=(",", ":"), allow_nan=False)),
        "data": packed.text,
        "script": "".join(_as_script(_file(f"{name}.js")) for name in _SCRIPTS[kind]),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _file("page.html"))


def _which(head: dict[str, Any]) -> str:
    return f"recorded from {head['recorded']}" if "recorded" in head else f"seed {head['seed']}"


def check_file(file: Path) -> None:
    """Refuse, before anything is simulated again, a place where no page can be; it leaves nothing there."""
    if file.is_dir() or not file.name:
        raise BadInput(f"{file}: this is a folder; name a file for the page (--out)")
    if file.exists() and not file.is_file():  # a device: it would be replaced by the page
        raise BadInput(f"{file}: this is no ordinary file; choose another place for the page (--out)")
    if not file.parent.is_dir():
        problem = "is a file" if file.parent.is_file() else "is not there"
        raise BadInput(f"{file}: the folder {file.parent} {problem}; choose another place for the page (--out)")
    check_can_hold(file.parent, file, "choose another place for the page (--out)")


def write_page(page: str, file: Path) -> Path:
    """Write the page, whole or not at all."""
    try:
        with tempfile.TemporaryDirectory(prefix=".serai-", dir=file.parent) as aside, removed_if_stopped(Path(aside)):
            made = Path(aside) / file.name
            made.write_text(page, encoding="utf-8")
            made.replace(file)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}; choose another place for the page (--out)") from error
    return file


def _file(name: str) -> str:
    return (resources.files("serai.replay") / "page" / name).read_text("utf-8")


def _as_script(module: str) -> str:
    """A module as a part of one script, without its comments: all of them share its names."""
    return _EXPORT.sub("", _IMPORT.sub("", _COMMENT.sub("", module)))


def _in_script(text: str) -> str:
    """JSON that cannot end the element it stands in."""
    return text.replace("<", "\\u003c")


def _escaped(text: Any) -> str:
    return str(text).replace("&", "&amp;").replace("<", "&lt;")
