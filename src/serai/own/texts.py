"""What a protocol of the user's says: the text of its file, and of the modules beside it that it imports."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from serai.core.errors import BadInput

_LAST: dict[str, str] = {}
"""What each file said when it was last read: on a worker the file itself may not be there."""
_PINNED: dict[str, str] = {}
"""What a file is to say whatever stands in it now."""


def remember_texts(texts: Mapping[str, str], *, pinned: bool = False) -> None:
    """What files say that may not be there on this machine; pinned: and whatever they say here."""
    (_PINNED if pinned else _LAST).update(texts)


def text_of(path: str) -> str:
    """What a file says, or said when it was last read."""
    if path in _PINNED:
        return _PINNED[path]
    try:
        _LAST[path] = Path(path).read_text("utf-8")
    except FileNotFoundError:
        if path not in _LAST:
            raise BadInput(f"no such file: {path}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8 text") from None
    return _LAST[path]


def texts_of(path: str) -> dict[str, str]:
    """The texts of a file and of the modules of its folder that it imports, and they in turn, by path."""
    texts = {path: text_of(path)}
    waiting = [path]
    for seen in waiting:
        for name in _imports(texts[seen], seen):
            beside = str(Path(path).parent / f"{name}.py")
            if beside not in texts and _is_known(beside) and name not in sys.stdlib_module_names:
                texts[beside] = text_of(beside)
                waiting.append(beside)
    return texts


def digest_of(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _is_known(path: str) -> bool:
    return path in _PINNED or path in _LAST or Path(path).is_file()


def _imports(text: str, path: str) -> Iterator[str]:
    """The modules that a text imports anywhere, without what stands below them."""
    try:
        parts = ast.walk(ast.parse(text, path))
    except SyntaxError as error:
        raise BadInput(f"{path}:{error.lineno}: not valid Python: {error.msg}") from None
    for part in parts:
        if isinstance(part, ast.Import):
            yield from (alias.name.split(".")[0] for alias in part.names)
        elif isinstance(part, ast.ImportFrom) and part.module and not part.level:
            yield part.module.split(".")[0]
