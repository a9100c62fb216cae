"""What docs/world.md shows can be done as it is shown."""

import re
from pathlib import Path

import pytest

from serai.world.grid import Grid
from serai.world.positions import read_positions
from tests.world import slow

PAGE = (Path(__file__).parents[2] / "docs" / "world.md").read_text(encoding="utf-8")


def example(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.mark.parametrize(("language", "suffix"), [("csv", "csv"), ("json", "geojson")])
def test_the_examples_of_files_can_be_read(tmp_path: Path, language: str, suffix: str) -> None:
    path = tmp_path / f"sensors.{suffix}"
    path.write_text(example(language), encoding="utf-8")
    names, x, y = read_positions(path, Grid(200.0, 200.0, 15, 15))
    assert names == ["gate", "pond"]
    assert x[1] > x[0]
    assert y[1] > y[0]


@pytest.mark.skipif(not slow.COMPILED, reason="too slow in plain Python")
def test_the_example_in_python_runs() -> None:
    found: dict[str, object] = {}
    exec(example("python"), found)
    assert {"communities", "visits", "by_cell", "by_range"} <= set(found)
