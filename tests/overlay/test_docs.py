"""docs/overlay/index.md says every key with its default, every metric with its definition, and every column."""

import json
import re
from pathlib import Path
from typing import Any

from serai.core.units import Quantity
from serai.kinds import OVERLAY
from serai.overlay.engine.graph import read_links
from serai.overlay.sections import OverlayScenario
from serai.scenario.section import keys_of, known_keys

PAGE = (Path(__file__).parents[2] / "docs" / "overlay" / "index.md").read_text(encoding="utf-8")


def part(title: str) -> str:
    """What stands under a heading of the second level."""
    return re.split(r"^## ", PAGE.partition(f"\n## {title}\n")[2], flags=re.MULTILINE)[0]


def rows(text: str) -> list[tuple[str, ...]]:
    """The cells of each row whose first cell is a name."""
    lines = re.findall(r"^\| `\w+` \|.*$", text, re.MULTILINE)
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines]


def documented_keys() -> dict[str, str]:
    """Every key of the scenario chapter, dotted, with its default."""
    found = {}
    for chapter in part("Scenario").split("\n### ")[1:]:
        table = re.match(r"`\[(.*)\]`", chapter)
        assert table
        found |= {f"{table[1]}.{key.strip('`')}": default.strip("`") for key, default, _ in rows(chapter)}
    return found


def default_of(field: Any) -> str:
    unit = next((mark for mark in field.metadata if isinstance(mark, Quantity)), None)
    default = field.get_default()
    if default is None:
        return "none"
    return json.dumps(unit.format(default) if unit else default)


def test_every_key_with_its_default() -> None:
    keys = {key: field for key, field in known_keys(OverlayScenario, []).items() if key not in keys_of(OverlayScenario)}
    del keys["events.attributes"]  # has no default that could be written in one word
    assert documented_keys() == {key: default_of(field) for key, field in keys.items()} | {
        "events.attributes": "A1`, `A2"
    }


def test_every_metric_with_unit_and_definition() -> None:
    found = {name.strip("`"): (unit, meaning) for name, unit, meaning, _ in rows(part("Metrics"))}
    assert found == {name: (one.unit or "-", one.meaning) for name, one in OVERLAY.definitions.items()}


def test_the_example_of_links_can_be_read(tmp_path: Path) -> None:
    (example,) = re.findall(r"```csv\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "links.csv").write_text(example)
    assert read_links(tmp_path / "links.csv")[0] == ("hill", "barn", "lake")
