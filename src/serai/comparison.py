"""Scenarios side by side under common seeds: how much each differs from the first, and how sure that is."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from serai.core.errors import BadInput
from serai.core.statistics import Estimate, estimate
from serai.kinds import kind_of
from serai.lab import measure, scenario_of, simulate
from serai.log.metrics import Metric
from serai.scenario.section import Scenario


@dataclass(frozen=True)
class Comparison:
    """What was measured of some scenarios, the first of which is the baseline."""

    names: tuple[str, ...]
    seeds: tuple[int, ...]
    definitions: Mapping[str, Metric]
    means: Mapping[tuple[str, str], Estimate]
    """By name and metric."""
    differences: Mapping[tuple[str, str], Estimate]
    """By name and metric: the difference from the baseline, seed by seed; none for the baseline itself."""

    def differs(self, name: str, metric: str) -> bool:
        """Whether the 95 % interval of the difference leaves out 0."""
        found = self.differences[name, metric]
        return abs(found.mean) > found.half_width()

    def better(self, name: str, metric: str) -> bool | None:
        """Whether it is better than the baseline; None if it does not differ, or neither end is the better one."""
        sign = self.definitions[metric].better
        return self.differences[name, metric].mean * sign > 0 if sign and self.differs(name, metric) else None

    def __repr__(self) -> str:
        baseline, *others = self.names
        return f"Comparison({', '.join(others)} with {baseline}, {len(self.seeds)} seeds)"

    def _repr_html_(self) -> str:
        """A row for each metric that is known: the baseline's mean, then each difference; bold where it differs."""
        baseline, *others = self.names
        heads = "".join(f"<th>{html.escape(name)} − {html.escape(baseline)}</th>" for name in others)
        rows = [self._row(one) for one in self.definitions.values() if (baseline, one.name) in self.means]
        caption = f"mean ± 95 % interval over {len(self.seeds)} common seeds; bold: differs from 0"
        head = f"<tr><th></th><th>{html.escape(baseline)}</th>{heads}<th></th></tr>"
        return f"<table><caption>{caption}</caption>{head}{''.join(rows)}</table>"

    def _row(self, one: Metric) -> str:
        baseline, *others = self.names
        cells = [f"<td>{self.means[baseline, one.name]}</td>"]
        for name in others:
            cell = str(self.differences[name, one.name])
            cells.append(f"<td>{f'<b>{cell}</b>' if self.differs(name, one.name) else cell}</td>")
        return f'<tr><th title="{html.escape(one.meaning)}">{one.name}</th>{"".join(cells)}<td>{one.unit}</td></tr>'


def compare(
    baseline: str | Path | Scenario, *others: str | Path | Scenario, seeds: int | Iterable[int] = 20
) -> Comparison:
    """Simulate scenarios of one kind of network with the same seeds, and compare each with the first.

    `seeds` is how many (0, 1, 2 ...) or which. Under a common seed, scenarios of the same world see the same
    movement, events and interests, so that differences show what the protocols do.
    """
    scenarios = [scenario_of(one) for one in (baseline, *others)]
    kinds = {kind_of(one).name: kind_of(one) for one in scenarios}
    chosen = tuple(range(seeds)) if isinstance(seeds, int) else tuple(seeds)
    if len(kinds) > 1:
        raise BadInput(f"compare: networks of one kind can be compared, not {' and '.join(kinds)}")
    if not others or not chosen:
        raise BadInput("compare: name at least two scenarios and one seed")
    (kind,) = kinds.values()
    known = {one.name: one for one in kind.definitions.values() if one.type is not str and one.name != "seed"}
    names = _names_of(scenarios)
    values = {name: _measured(one, chosen) for name, one in zip(names, scenarios, strict=True)}
    means = {(name, metric): estimate(row[metric] for row in values[name]) for name in names for metric in known}
    differences = {
        (name, metric): estimate(
            row[metric] - base[metric] for row, base in zip(values[name], values[names[0]], strict=True)
        )
        for name in names[1:]
        for metric in known
    }
    return Comparison(names, chosen, known, means, differences)


def _names_of(scenarios: Iterable[Scenario]) -> tuple[str, ...]:
    """The shortest names that tell the scenarios apart: by protocol, else by name, else by number."""
    several = list(scenarios)
    for names in ([one.protocol.name for one in several], [one.name for one in several]):
        if len(set(names)) == len(names):
            return tuple(names)
    return tuple(f"{one.name} {number}" for number, one in enumerate(several, 1))


def _measured(scenario: Scenario, seeds: Iterable[int]) -> list[dict[str, float]]:
    """The numbers of every run; NaN for those that it does not have."""
    rows = [measure(simulate(scenario, seed=seed)).as_dict() for seed in seeds]
    return [{name: _number(value) for name, value in row.items() if not isinstance(value, str)} for row in rows]


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
