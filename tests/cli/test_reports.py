"""What `serai paper` and `serai report` say to bad input, before anything is started."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_report_on_a_folder_without_a_sweep(serai: Callable[..., Any], tmp_path: Path) -> None:
    answer = serai("report", str(tmp_path / "nothing"))
    assert answer.code == 2
    assert "no sweep is kept there" in answer.err
    assert answer.out == ""


def test_unknown_paper(serai: Callable[..., Any]) -> None:
    answer = serai("paper", "cde")
    assert (answer.code, answer.err) == (2, 'no paper "cde"; did you mean "ced"?\n')
