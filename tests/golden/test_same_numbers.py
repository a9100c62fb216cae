"""Every built-in scenario gives the numbers that it gave when digests.json was written, to the last bit."""

import json
from pathlib import Path

import pytest

from serai.scenario.load import builtin_names
from tests.golden.digests import FILE, digests_now


@pytest.mark.parametrize("name", builtin_names())
def test_the_numbers_of_built_in_scenarios_have_not_changed(name: str, tmp_path: Path) -> None:
    assert digests_now(name, tmp_path) == json.loads(FILE.read_text())[name]
