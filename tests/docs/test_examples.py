"""The examples run as they are."""

import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(spark: Any, example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = runpy.run_path(str(example))
    said = capsys.readouterr().out
    if example.stem == "matching":
        counts = dict(map(tuple, names["counts"].collect()))
        frost = names["events"].where("temperature < 0 and not isnan(temperature)")
        assert counts["frost"] == frost.count()
        assert counts["frost in the north"] == frost.where("site like 'north%'").count()
        assert counts["the first night"] == 5 * 3600 // 30
        assert 'did you mean "temperature"?' in said
