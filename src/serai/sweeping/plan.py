"""What a sweep runs: every point of a grid of settings, under every protocol, with the same seeds. No Spark here.

A *point* is one choice of the swept settings. A *cell* is a point under a protocol: one whole scenario, named by a
hash of all that its runs depend on. Cells of the same name share their runs, in one sweep or in two.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from serai.core.errors import BadInput, BadScenario, Problem
from serai.kinds import CATALOGUE, AnyKind, kind_of
from serai.lab import load_scenario, parse_scenario
from serai.log.pairs import Count
from serai.scenario.groups import known_field, places_of
from serai.scenario.section import Scenario, SweepTable, keys_of, known_keys
from serai.scenario.write import to_toml
from serai.sweeping.axes import Axis, axis_of, parse_setting, values_of

DEFAULT_SEEDS: Final = 20
_MOST_CELLS: Final = 100_000


@dataclass(frozen=True)
class Cell:
    """One protocol at one point: the scenario of all its runs, and the name that its runs are kept under."""

    point: int
    protocol: str
    scenario: Scenario
    id: str
    seeds: int
    """So many seeds are run, from the plan's first on."""


@dataclass(frozen=True)
class Plan:
    """All runs of a sweep."""

    name: str
    axes: tuple[Axis, ...]
    points: tuple[dict[str, Any], ...]
    """The swept settings of each point, dotted, as they are written in a scenario."""
    protocols: tuple[str, ...]
    cells: tuple[Cell, ...]
    base: str
    """Names the scenario that the points vary: a folder keeps the runs of one."""
    counts: tuple[Count, ...] = ()
    """What is counted in every run besides its metrics."""
    first_seed: int = 0

    @property
    def network(self) -> str:
        """The kind of network, the same at all points."""
        return self.kind.name

    @property
    def kind(self) -> AnyKind:
        """What is known of that kind of network."""
        return kind_of(self.cells[0].scenario)

    @property
    def seeds(self) -> int:
        """How many seeds the points have, or the one with most of them."""
        return max(cell.seeds for cell in self.cells)

    def runs(self) -> dict[str, range]:
        """The seeds that are to be run under each distinct name; cells may share their runs."""
        found: dict[str, int] = {}
        for cell in self.cells:
            found[cell.id] = max(cell.seeds, found.get(cell.id, 0))
        return {name: range(self.first_seed, self.first_seed + seeds) for name, seeds in found.items()}

    def with_seeds(self, seeds: Mapping[int, int]) -> Plan:
        """The same plan with another number of seeds at each point."""
        return self.with_seeds_of_cells([seeds[cell.point] for cell in self.cells])

    def with_seeds_of_cells(self, seeds: Sequence[int]) -> Plan:
        """The same plan with another number of seeds in each cell."""
        cells = (replace(cell, seeds=count) for cell, count in zip(self.cells, seeds, strict=True))
        return replace(self, cells=tuple(cells))

    def over(self, points: Sequence[tuple[dict[str, Any], Scenario]], seeds: range) -> Plan:
        """The same sweep with other points, each a scenario of its own."""
        cells = tuple(_cell(number, scenario, len(seeds)) for number, (_, scenario) in enumerate(points))
        settings = tuple(point for point, _ in points)
        return replace(self, points=settings, cells=cells, first_seed=seeds.start)

    def scenarios(self) -> dict[str, Scenario]:
        """The scenario of each distinct cell."""
        return {cell.id: cell.scenario for cell in self.cells}

    def as_json(self) -> dict[str, Any]:
        """The plan as `sweep.json` keeps it."""
        return {
            "name": self.name,
            "base": self.base,
            "axes": [axis.as_json() for axis in self.axes],
            "points": list(self.points),
            "protocols": list(self.protocols),
            "counts": [[count.what, count.within_s] for count in self.counts],
            "first_seed": self.first_seed,
            "cells": [
                {"point": cell.point, "protocol": cell.protocol, "id": cell.id, "seeds": cell.seeds}
                for cell in self.cells
            ],
            "scenarios": {name: to_toml(scenario) for name, scenario in self.scenarios().items()},
        }


def plan_from_json(said: Mapping[str, Any]) -> Plan:
    """The plan that `as_json` described."""
    scenarios = {name: parse_scenario(text, source="sweep.json") for name, text in said["scenarios"].items()}
    return Plan(
        name=said["name"],
        axes=tuple(Axis(**axis | {"values": tuple(axis["values"])}) for axis in said["axes"]),
        points=tuple(said["points"]),
        protocols=tuple(said["protocols"]),
        cells=tuple(Cell(scenario=scenarios[cell["id"]], **cell) for cell in said["cells"]),
        base=said["base"],
        counts=tuple(Count(*count) for count in said["counts"]),
        first_seed=said.get("first_seed", 0),
    )


def plan_sweep(
    source: str | Path | Scenario,
    settings: Sequence[str] | Mapping[str, Any] = (),
    protocols: Sequence[str] | None = None,
    seeds: int | None = None,
) -> Plan:
    """The sweep of a scenario over settings (`protocol.alpha=2,5,10` or `{"protocol.alpha": [2, 5, 10]}`).

    What is not said here is taken from the scenario's [sweep] table. Every cell is checked; all that is wrong with
    any of them is said at once.
    """
    scenario = loaded(source)
    asked = scenario.sweep or SweepTable()
    written = [CATALOGUE.known(name) for name in protocols or asked.protocols]
    names = tuple(dict.fromkeys(written)) or (scenario.protocol.name,)
    for name in names:
        CATALOGUE.check_protocol(name)
    kind = CATALOGUE.scenario_of(names[0])
    for name in names:
        CATALOGUE.check_protocol(name, kind)
    known = known_keys(kind, names)
    varied = written_values(asked.settings, "sweep.set.") | written_values(settings)
    axes = [axis_of(key, values, known_field(known, key)) for key, values in varied.items()]
    fixed = {axis.key: axis.values[0] for axis in axes if len(axis.values) == 1}
    swept = tuple(axis for axis in axes if len(axis.values) > 1)
    points = _grid(swept, len(names))
    each = seeds or asked.seeds or DEFAULT_SEEDS
    cells = _checked_cells(source, [fixed | point for point in points], names, each)
    base = _digest(to_toml(_plain(scenario)))
    return Plan(scenario.name, swept, points, names, cells, base)


def plan_comparison(name: str, scenarios: Sequence[Scenario], seeds: int) -> Plan:
    """One point with several protocols, each in a scenario of its own."""
    cells = tuple(_cell(0, scenario, seeds) for scenario in scenarios)
    names = tuple(cell.protocol for cell in cells)
    return Plan(name, (), ({},), names, cells, _digest("".join(cell.id for cell in cells)))


def join_plans(name: str, plans: Sequence[Plan], base: str | None = None) -> Plan:
    """All points of several plans, in their order, as one sweep; cells that they share are run once."""
    points: list[dict[str, Any]] = []
    cells: list[Cell] = []
    for plan in plans:
        cells += [replace(cell, point=cell.point + len(points)) for cell in plan.cells]
        points += plan.points
    axes = tuple({axis.key: axis for plan in plans for axis in plan.axes}.values())
    protocols = tuple(dict.fromkeys(name for plan in plans for name in plan.protocols))
    if len({plan.network for plan in plans}) > 1:
        raise BadInput("a sweep is over networks of one kind; run one for each kind")
    return Plan(name, axes, tuple(points), protocols, tuple(cells), base or _digest(name))


def cell_id(scenario: Scenario) -> str:
    """A name for all that the runs of a scenario depend on, but for the seed and the version of serai."""
    same = scenario.model_copy(update={"name": "", "title": "", "sweep": None, "plan": None})
    texts = [to_toml(same)]
    for key in type(scenario).FILES:
        for path in places_of(scenario, key):
            file: Any = scenario
            for part in path:
                file = getattr(file, part) if isinstance(part, str) else file[part]
            texts.append(hashlib.blake2b(Path(file).read_bytes()).hexdigest())
    own = type(scenario).PROTOCOLS[scenario.protocol.name].own
    if own is not None:
        texts += own.texts().values()
    return _digest("\n".join(texts))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _cell(point: int, scenario: Scenario, seeds: int) -> Cell:
    return Cell(point, scenario.protocol.name, _plain(scenario), cell_id(scenario), seeds)


def _plain(scenario: Scenario) -> Scenario:
    """The scenario without its [sweep] and [plan], which no run depends on."""
    return scenario.model_copy(update={"sweep": None, "plan": None})


def written_values(settings: Sequence[str] | Mapping[str, Any], where: str = "") -> dict[str, list[Any]]:
    """The values of every setting that was written; a table below a table is one dotted key."""
    if not isinstance(settings, Mapping):
        return dict(parse_setting(text) for text in settings)
    found: dict[str, list[Any]] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= {f"{key}.{inner}": values for inner, values in written_values(value, f"{where}{key}.").items()}
        else:
            try:
                found[key] = values_of(value)
            except ValueError as error:
                raise BadInput(f"{where}{key}: {error}") from None
    return found


def _grid(axes: Sequence[Axis], protocols: int) -> tuple[dict[str, Any], ...]:
    """Every combination of the axes' values, the last axis fastest."""
    size = math.prod(len(axis.values) for axis in axes)
    if size * protocols > _MOST_CELLS:
        raise BadInput(f"{size:,} points x {protocols} protocols: at most {_MOST_CELLS:,} together are possible")
    keys = [axis.key for axis in axes]
    return tuple(dict(zip(keys, values, strict=True)) for values in itertools.product(*(axis.values for axis in axes)))


def _checked_cells(
    source: str | Path | Scenario, settings: Iterable[Mapping[str, Any]], protocols: Sequence[str], seeds: int
) -> tuple[Cell, ...]:
    """The cells of all points, or else everything that is wrong with any of them, each thing once."""
    cells: list[Cell] = []
    problems: dict[tuple[str, str], Problem] = {}
    for number, point in enumerate(settings):
        for protocol in protocols:
            try:
                cells.append(_cell(number, _load(source, point, protocol, protocols), seeds))
            except BadScenario as error:
                for problem in error.problems:
                    problems.setdefault((problem.where, problem.message), problem)
    if problems:
        raise BadScenario(problems.values())
    return tuple(cells)


def _load(
    source: str | Path | Scenario, settings: Mapping[str, Any], protocol: str, protocols: Sequence[str]
) -> Scenario:
    """The scenario under a protocol with the settings that it knows: some may be another's of the sweep."""
    changes = [
        f"{key}={json.dumps(value, ensure_ascii=False)}"
        for key, value in settings.items()
        if not _of_another(key, protocol, protocols)
    ]
    return _plain(loaded(source, changes, protocol))


def loaded(source: str | Path | Scenario, changes: Sequence[str] = (), protocol: str | None = None) -> Scenario:
    """The scenario of a name, of a file or as it is, with changes."""
    if isinstance(source, Scenario):
        return parse_scenario(to_toml(source), source.name, changes, protocol)
    return load_scenario(source, changes, protocol)


def _of_another(key: str, protocol: str, protocols: Sequence[str]) -> bool:
    table, _, setting = key.partition(".")
    owners = [name for name in protocols if setting in keys_of(CATALOGUE.protocols[name].settings)]
    return table == "protocol" and bool(owners) and protocol not in owners
