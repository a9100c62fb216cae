"""A run under each protocol of the built-in scenarios, and of a trace without places; and its page."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import serai
from serai.lab import parse_scenario
from serai.log.run import SimulatedRun
from serai.replay.run import page_of
from tests.effort import THOROUGH

SHORT: dict[str, Any] = {} if THOROUGH else {"duration": "10 min", "events.lifetime": "3 min", "events.quiet": "0 s"}
_FEW: dict[str, Any] = {} if THOROUGH else {"duration": "1 h", "bundles.lifetime": "20 min", "bundles.quiet": "0 s"}
_SMALL: dict[str, Any] = {} if THOROUGH else {"nodes.count": 300, "events.count": 500, "field.width": "100 m"}
_TRACE = """
duration = "1 h"
[contacts]
source = "trace"
file = "{file}"
[nodes]
store = "100 kB"
when_full = "oldest"
[channels]
count = 2
each = 1
[bundles]
interval = "60 s"
size_min = "10 kB"
size_max = "30 kB"
lifetime = "10 min"
[protocol]
name = "flooding"
"""
_MEETINGS = "\n".join(
    f"{30 * k} CONN n{k % 5} n{(k * 3 + 1) % 7 + 5} up\n{30 * k + 20} CONN n{k % 5} n{(k * 3 + 1) % 7 + 5} down"
    for k in range(121)
)

FIELDS = ("ced", "cet", "dg", "serai", "metres")
CONTACTS = ("dpsp", "flooding", "trace")
NAMES = (*FIELDS, *CONTACTS, "tinymq")


@cache
def run_of(name: str) -> SimulatedRun:
    """The run of that name, with its full log."""
    if name == "trace":
        with tempfile.TemporaryDirectory() as aside:
            trace = Path(aside) / "meetings.txt"
            trace.write_text(_MEETINGS + "\n")
            return serai.simulate(parse_scenario(_TRACE.format(file=trace)), seed=1, full_log=True)
    changes = SHORT if name in FIELDS else _FEW if name in CONTACTS else _SMALL
    if name == "metres":  # CET where reach is in metres
        return serai.simulate(serai.load_scenario("cet", changes | {"radio.range": "23 m"}), seed=3, full_log=True)
    scenario = serai.load_scenario("field" if name in FIELDS else name, changes, protocol=name)
    return serai.simulate(scenario, seed=3, full_log=True)


def file_of(run: SimulatedRun, folder: Path, name: str) -> Path:
    """The page of a run, in a file of that name."""
    file = folder / f"{name}.html"
    if not file.exists():
        file.write_text(page_of(run)[0], encoding="utf-8")
    return file
