"""The shape of the code, kept by `make lint`: no long modules, no long functions, no blocks that stand twice.

    python tools/shape.py

A long file or function does not fit into a reader's head; a block that stands twice is changed in one place only.
What stood twice when this check was written is listed in `tools/known_duplicates.txt`, by the number of lines that
two files have in common. The list may only shrink: a number that has become too large is an error as well.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
SIZED: Final = ("src", "tests", "benchmarks", "examples", "tools")
"""Folders whose modules and functions are measured; blocks are compared within `src` alone."""

MODULE_LINES: Final = 450
BODY_LINES: Final = 60
BLOCK_LINES: Final = 8

Function = ast.FunctionDef | ast.AsyncFunctionDef
Pair = tuple[str, str]


class Line(NamedTuple):
    """A line of code as it is compared: without comment and indentation."""

    number: int
    text: str


def module_error(name: str, source: str) -> str | None:
    """What is wrong with the length of a module."""
    count = len(source.splitlines())
    return f"{name}: {count} lines, at most {MODULE_LINES}: split it by subject" if count > MODULE_LINES else None


def function_errors(name: str, source: str) -> Iterator[str]:
    """What is wrong with the lengths of the functions of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function) and (count := body_lines(node)) > BODY_LINES:
            yield f"{name}:{node.lineno}: {node.name} has a body of {count} lines, at most {BODY_LINES}"


def body_lines(function: Function) -> int:
    """The lines of a function from its first statement to its end, its docstring not counted."""
    statements = function.body[1:] if _docstring(function) else function.body
    if not statements:
        return 0
    assert function.end_lineno is not None
    return function.end_lineno - statements[0].lineno + 1


def _docstring(node: ast.AST) -> ast.Expr | None:
    body = getattr(node, "body", None)
    first = body[0] if isinstance(body, list) and body else None
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    return first if is_text else None


def code_lines(source: str) -> list[Line]:
    """The lines that do something: no comments, blank lines, imports, docstrings, nor lone brackets.

    Two blocks that differ in these alone, or in how deep they are indented, are the same block.
    """
    silent = set(_silent_lines(ast.parse(source)))
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    texts = ((number, " ".join(line.split())) for number, line in enumerate(lines, start=1) if number not in silent)
    return [Line(number, text) for number, text in texts if re.search(r"\w", text)]


def _silent_lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        silent = node if isinstance(node, ast.Import | ast.ImportFrom) else _docstring(node)
        if silent is not None:
            assert silent.end_lineno is not None
            yield from range(silent.lineno, silent.end_lineno + 1)


def shared_lines(sources: dict[str, str]) -> dict[Pair, list[tuple[int, int]]]:
    """Where two files (or one file twice) have a block in common: for each line of it the two line numbers."""
    blocks: dict[tuple[str, ...], list[tuple[str, tuple[int, ...]]]] = defaultdict(list)
    for name in sorted(sources):
        lines = code_lines(sources[name])
        for first in range(len(lines) - BLOCK_LINES + 1):
            window = lines[first : first + BLOCK_LINES]
            blocks[tuple(line.text for line in window)].append((name, tuple(line.number for line in window)))
    shared: dict[Pair, set[tuple[int, int]]] = defaultdict(set)
    for places in blocks.values():
        for (one, numbers), (other, others) in combinations(places, 2):
            if one != other or numbers[-1] < others[0]:  # a run of equal lines is not its own duplicate
                shared[one, other].update(zip(numbers, others, strict=True))
    return {pair: sorted(found) for pair, found in shared.items()}


def duplicate_errors(shared: dict[Pair, list[tuple[int, int]]], known: dict[Pair, int]) -> Iterator[str]:
    """What stands twice and is not known, and what is known and no longer stands twice."""
    for pair in sorted(shared.keys() | known.keys()):
        found, allowed = shared.get(pair, []), known.get(pair, 0)
        one, other = pair
        if len(found) > allowed:
            (first, second), count = found[0], len(found)
            yield f"{one}:{first}: {count} lines also stand at {other}:{second} (known: {allowed}): write them once"
        elif len(found) < allowed:
            yield f"tools/known_duplicates.txt: {one} and {other} share {len(found)} lines, not {allowed}: correct it"


def read_known(text: str) -> dict[Pair, int]:
    """The known duplicates: lines of `COUNT FILE FILE`."""
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {(one, other): int(count) for count, one, other in rows}


def errors(sources: dict[str, str], known: dict[Pair, int]) -> Iterator[str]:
    """Everything that is wrong with the shape of some modules, given by name."""
    for name, source in sources.items():
        if error := module_error(name, source):
            yield error
        yield from function_errors(name, source)
    yield from duplicate_errors(
        shared_lines({name: text for name, text in sources.items() if name[:4] == "src/"}), known
    )


def read_sources(folders: Iterable[str] = SIZED) -> dict[str, str]:
    """Every module of the project by its path."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    known = read_known((ROOT / "tools" / "known_duplicates.txt").read_text(encoding="utf-8"))
    found = list(errors(read_sources(), known))
    print("\n".join(found) if found else "shape: no long modules or functions, nothing new stands twice")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
