"""The notebook of the documentation runs from top to bottom, and everything in it shows itself."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = json.loads((Path(__file__).parents[2] / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
CELLS = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does: the value of an expression at its end is what it shows."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if isinstance(last, ast.Expr) else None


def test_the_notebook_runs(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = {source: run_cell(source, names) for source in CELLS}
    told = {source.splitlines()[-1]: value for source, value in shown.items()}
    for name in ("run", "comparison", "sweep"):
        assert "<table>" in told[name]._repr_html_()
    pictures = [value for source, value in told.items() if source.endswith(".plot()")]
    assert len(pictures) == 3
    assert all(picture._repr_svg_().startswith("<svg") for picture in pictures)
    assert told["fraction[-1] == run.metrics.delivery_ratio"]
    assert told['serai.read_run("ced-1") == run'] is True
    assert told['sweep.rows.select("point", "seed", "delivery_ratio").toPandas()'].shape == (6, 3)
    assert 'did you mean "alpha"?' in capsys.readouterr().out


def test_the_notebook_is_kept_without_outputs() -> None:
    assert not any(cell.get("outputs") for cell in NOTEBOOK["cells"])
