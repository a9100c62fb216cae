"""Where a protocol of the user's comes from, a file or an installed package; its module, executed afresh for every run.

So nothing in it survives from one run to the next.
"""

from __future__ import annotations

import linecache
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, entry_points
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from serai.core.errors import BadInput
from serai.own.texts import digest_of, text_of, texts_of

GROUP: Final = "serai.protocols"
"""The entry points of installed packages under which protocols are found."""


@dataclass(frozen=True)
class File:
    """A file of the user's; the modules that it imports from its folder belong to it."""

    path: str

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return self.path

    def texts(self) -> dict[str, str]:
        """All that its author wrote, by path."""
        return texts_of(self.path)

    def wrote(self, filename: str) -> bool:
        """Whether a line of this file is the author's."""
        return filename == self.path or Path(filename).parent == Path(self.path).parent

    @contextmanager
    def executed(self) -> Iterator[ModuleType]:
        """Its module, and while it is in use the modules beside it."""
        texts = texts_of(self.path)
        beside = {Path(path).stem: path for path in texts if path != self.path}
        module = ModuleType(f"serai_protocol_{digest_of(texts[self.path])}")
        hidden = {name: sys.modules.pop(name) for name in beside if name in sys.modules}
        finder = _Beside(beside, texts)
        sys.meta_path.insert(0, finder)
        sys.modules[module.__name__] = module  # dataclasses look for it
        try:
            _execute(module, self.path, texts[self.path])
            yield module
        finally:
            sys.meta_path.remove(finder)
            for name in (*beside, module.__name__):
                sys.modules.pop(name, None)
            sys.modules.update(hidden)


class _Beside(MetaPathFinder, Loader):
    """Finds the modules beside a file, by texts that were read before."""

    def __init__(self, paths: Mapping[str, str], texts: Mapping[str, str]) -> None:
        self.paths, self.texts = paths, texts

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        """Where the module is, if it is one of these."""
        if fullname not in self.paths:
            return None
        return spec_from_loader(fullname, self, origin=self.paths[fullname])

    def exec_module(self, module: ModuleType) -> None:
        """Execute its text."""
        path = self.paths[module.__name__]
        _execute(module, path, self.texts[path])


def _execute(module: ModuleType, path: str, text: str) -> None:
    """Execute a text as a module; what is wrong with it is told with its line."""
    module.__file__ = path
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)  # a traceback shows the line
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except BadInput:
        raise  # of a module that it imports
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        raise BadInput(f"{path}:{lines[-1] if lines else 1}: {type(error).__name__}: {error}") from None


@dataclass(frozen=True)
class Installed:
    """A module of an installed package."""

    package: str  # what is installed, and its version
    module: str

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"{self.module} ({self.package})"

    def texts(self) -> dict[str, str]:
        """What tells this version from another one."""
        with self.executed() as module:
            return {self.package: text_of(str(module.__file__))}

    def wrote(self, filename: str) -> bool:
        """Whether a line of this file is the author's."""
        return f"/{self._top}/" in filename or filename.endswith(f"/{self._top}.py")

    @property
    def _top(self) -> str:
        return self.module.split(".")[0]

    @contextmanager
    def executed(self) -> Iterator[ModuleType]:
        """Its module, imported anew with all of its package."""
        hidden = self._take_out()
        try:
            yield import_module(self.module)
        except ImportError as error:
            raise BadInput(f"{self.name}: cannot be imported: {error}") from None
        finally:
            self._take_out()
            sys.modules.update(hidden)

    def _take_out(self) -> dict[str, Any]:
        names = [name for name in sys.modules if name == self._top or name.startswith(f"{self._top}.")]
        return {name: sys.modules.pop(name) for name in names}


Origin = File | Installed


def installed_protocols() -> list[str]:
    """The names of the protocols that installed packages offer."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def find_installed(name: str) -> tuple[Installed, str] | None:
    """The protocol of this name that an installed package offers, and its class there; None: there is none."""
    found = sorted(entry_points(group=GROUP, name=name), key=lambda point: point.value)
    if not found:
        return None
    if len({point.value for point in found}) > 1:
        raise BadInput(f'"{name}": offered by {" and by ".join(_package(point) for point in found)}; keep one of them')
    if not found[0].attr:
        raise BadInput(f'{_package(found[0])}: "{name} = {found[0].value}" names no class; write package.module:Class')
    return Installed(_package(found[0]), found[0].module), found[0].attr


def _package(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else point.module
