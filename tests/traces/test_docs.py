"""docs/traces.md has an example of every format, and each can be read."""

import re
from pathlib import Path

import pytest

from serai.traces import FORMATS, detect_format, read_trace
from serai.traces.messages import read_interests, read_messages

PAGE = (Path(__file__).parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")


def example(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


@pytest.mark.parametrize("form", FORMATS)
def test_the_example_of_every_format_is_of_that_format(form: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(example(form))
    assert detect_format(path) == form
    trace = read_trace(path, strict=True)
    assert trace.names
    assert all(warning.what.startswith(("still up", "a sighting: lasts")) for warning in trace.warnings)
    assert f"`{form}`" in PAGE


@pytest.mark.parametrize("language", ["messages", "csv"])
def test_the_examples_of_messages_can_be_read(language: str, tmp_path: Path) -> None:
    path = tmp_path / "messages"
    path.write_text(example(language))
    assert len(read_messages(path, strict=True).source) == 2


def test_the_example_of_subscriptions_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "subscriptions.csv"
    path.write_text(example("subscriptions"))
    found = read_interests(path, strict=True)
    assert found.node == ["n1", "n3"]
    assert found.to_s.tolist() == [float("inf"), 7200.0]
