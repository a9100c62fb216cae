"""Metrics and settings of opportunistic networks stand in the docs as they are defined."""

import re
import tomllib
from pathlib import Path

import pytest

from serai.core.units import Quantity, format_quantity
from serai.kinds import OPPORTUNISTIC
from serai.opportunistic.presets import PRESETS
from serai.opportunistic.protocols import PROTOCOLS

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = (DOCS / "opportunistic" / "results.md").read_text(encoding="utf-8")
ROWS = {name: rest for name, *rest in re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", RESULTS, re.MULTILINE)}


def test_metrics_are_documented_as_defined() -> None:
    assert {name: tuple(row[:2]) for name, row in ROWS.items()} == {
        name: (one.unit or "-", one.meaning) for name, one in OPPORTUNISTIC.definitions.items()
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_defaults_are_the_documented_ones(protocol: str) -> None:
    text = (DOCS / "opportunistic" / "dpsp.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `(\w+)` \| `(.+?)` \|", text, re.MULTILINE))
    for name, field in PROTOCOLS[protocol].settings.model_fields.items():
        key = field.alias or name
        if key == "name":
            continue
        unit = next((mark for mark in field.metadata if isinstance(mark, Quantity)), None)
        value = format_quantity(field.default, unit.dimension) if unit else field.default
        written = {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value
        if isinstance(written, tuple):
            written = list(written)
        assert shown[key].replace('"', "") == str(written).replace("'", ""), key


def test_like_the_one_sets_what_its_table_says() -> None:
    """On the run beside which all is checked no store is ever full, so what leaves a full one does not show there."""
    text = (DOCS / "opportunistic" / "dpsp.md").read_text(encoding="utf-8").partition("| it sets |")[2]
    table: dict[str, dict[str, object]] = {"": {}}
    for cell in re.findall(r"^\| (`.*?`) \| .* \|$", text.partition("\n\n")[0], re.MULTILINE):
        router = re.match(r"`([\w-]+)`: ", cell)
        row = table.setdefault(router[1] if router else "", {})
        for key, value in re.findall(r"`([\w.]+) = (.+?)`", cell):
            row[key if key == "step" or "." in key else f"protocol.{key}"] = tomllib.loads(f"it = {value}")["it"]
    for protocol in PROTOCOLS:
        assert PRESETS["the-one"](protocol) == table[""] | table.pop(protocol, {})
    assert list(table) == [""]
