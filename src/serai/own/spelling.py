"""Names in an author's class that are nearly those of its base: a misspelt method is never called, and nothing fails.

A method of the author's own is no mistake: only names that nobody uses are looked at.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Mapping, Set
from inspect import isfunction
from typing import Final

from serai.own.loading import Own

_NEAR: Final = 0.75
"""As alike as this, from 0 to 1: "ofers" and "offers" are 0.91, "sender" and "sent" 0.6."""


def misspelt(own: Own) -> list[str]:
    """A sentence for each name in the class that is never used, and nearly that of something that would be."""
    trees = {path: ast.parse(text, path) for path, text in own.texts().items()}
    used = {name for tree in trees.values() for name in _used(tree)}
    places = {place: where for path, tree in trees.items() for place, where in _places(path, tree)}
    with own.executed() as cls:
        parts = [(cls, own.family.base)] + [(getattr(cls, name), base) for name, base in own.family.parts]
        return [line for part, base in parts for line in _misspelt(part, base, used, places)]


def _used(tree: ast.Module) -> Iterator[str]:
    """All names that a text mentions, but for those that it defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):  # getattr(self, "name")
            yield node.value


def _places(path: str, tree: ast.Module) -> Iterator[tuple[tuple[str, str], str]]:
    """Where a text defines what in which class."""
    for cls in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for part in cls.body:
            targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            names += [part.name] if isinstance(part, ast.FunctionDef) else []
            yield from (((cls.name, name), f"{path}:{part.lineno}") for name in names)


def _misspelt(cls: type, base: type, used: Set[str], places: Mapping[tuple[str, str], str]) -> Iterator[str]:
    for one in (one for one in cls.__mro__ if issubclass(one, base) and one is not base):
        for name, value in vars(one).items():
            where = places.get((one.__name__, name))
            if where is None or name in used or name[0] == "_" or hasattr(base, name):
                continue
            kind = _is_method(value)
            left = {_flat(key): key for key, its in vars(base).items() if key[0] != "_" and _is_method(its) == kind}
            near = difflib.get_close_matches(_flat(name), left, 1, _NEAR)
            if near and getattr(cls, left[near[0]]) is getattr(base, left[near[0]]):  # else it is there, too
                yield f'{where}: {one.__name__}.{name} is never used; did you mean "{left[near[0]]}"?'


def _is_method(value: object) -> bool:
    return isfunction(value) or isinstance(value, staticmethod | classmethod)


def _flat(name: str) -> str:
    """A name without what people write differently."""
    return name.replace("_", "").lower()
