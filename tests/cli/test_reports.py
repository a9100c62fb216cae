"""What `serai paper` and `serai report` say to bad input, before anything is started; and the report of a run."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.test_lab import SMALL


def test_report_on_a_folder_without_a_sweep(serai: Callable[..., Any], tmp_path: Path) -> None:
    answer = serai("report", str(tmp_path / "nothing"))
    assert answer.code == 2
    assert "no run and no sweep here (neither run.json nor sweep.json)" in answer.err
    assert answer.out == ""


def test_unknown_paper(serai: Callable[..., Any]) -> None:
    answer = serai("paper", "cde")
    assert (answer.code, answer.err) == (2, 'no paper "cde"; did you mean "ced"?\n')


def test_report_of_a_single_run_needs_no_spark(serai: Callable[..., Any], tmp_path: Path) -> None:
    small = [word for change in SMALL["ced"] for word in ("--set", change)]
    assert serai("run", "ced", *small, "--out", "run").code == 0
    answer = serai("report", "run", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out) == {"report": "run/report.html"}
    assert "<svg" in (tmp_path / "run" / "figures" / "field.svg").read_text()
