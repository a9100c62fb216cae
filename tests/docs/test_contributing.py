"""CONTRIBUTING draws the tree as it is, and every path and name in it exists."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "serai"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CODE = sorted(set(re.findall(r"`([^`\n]+)`", TEXT)))
PATHS = [word for word in CODE if re.fullmatch(r"[\w.-]+(/[\w.-]+)*(/|\.(py|md|txt|toml)(::\w+)?)", word)]


def find(path: str) -> Path | None:
    """The file or folder that a path means: below the project, its package, or any kind of network."""
    for folder in (ROOT, PACKAGE, *(PACKAGE / kind for kind in ("field", "overlay", "opportunistic"))):
        if (folder / path).exists():
            return folder / path
    return None


def test_paths_are_found_in_the_text() -> None:
    assert len(PATHS) > 40
    assert {"cli/runs.py::run", "tests/field/naive/", "constraints.txt", "lab.py"} <= set(PATHS)


@pytest.mark.parametrize("word", PATHS)
def test_every_path_and_name_exists(word: str) -> None:
    path, _, name = word.partition("::")
    found = find(path)
    assert found is not None, f"CONTRIBUTING.md names {path}, which does not exist"
    if name:
        assert name in defined_in(found), f"CONTRIBUTING.md names {name} of {path}, which is not defined there"


def defined_in(path: Path) -> set[str]:
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def drawn() -> list[str]:
    """The packages and modules of the tree, from top to bottom."""
    tree = TEXT.partition("## The tree")[2].partition("    tests/")[0]
    return re.findall(r"^ {6}(\S+?)/? {2,}\S", tree, re.MULTILINE)


def test_the_tree_has_one_line_for_each_package_and_module() -> None:
    there = [
        path.name
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists())
    ]
    assert sorted(drawn()) == sorted(there)


def test_the_tree_is_drawn_in_the_order_of_the_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["id"] == "layers")
    height = {name: -place for place, layer in enumerate(layers) for name in layer.split(" | ")}
    heights = [height[name.removesuffix(".py")] for name in drawn() if name != "__init__.py"]
    assert heights == sorted(heights)
