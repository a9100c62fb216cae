"""What may be deployed, and what it costs: every choice of what a plan varies, each one whole scenario."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from serai.core.counting import counted
from serai.core.errors import BadInput, did_you_mean
from serai.field.movement import read_tracks
from serai.field.sections import FieldScenario
from serai.kinds import protocol_label
from serai.log.pairs import Count
from serai.planning.goals import Goal, parse_goal
from serai.planning.race import FIRST_LOOK, Limits
from serai.planning.relays import RELAYS, Placement, Relays, check_relays, parse_relays, settings_of_places, with_relays
from serai.scenario.groups import group_settings, known_field, table_at
from serai.scenario.section import PlanTable, Scenario, known_keys
from serai.sweeping.axes import Axis, axis_of, values_of
from serai.sweeping.plan import Plan, loaded, plan_sweep, written_values
from serai.world.grid import Grid
from serai.world.positions import read_positions

MOST_DEPLOYMENTS: Final = 1000
_SHARE_OF_GRID: Final = 0.3
_RUNS_OF_GRID: Final = 400
"""Without another word a plan may take 30 % of the runs that a full grid of 400 seeds would."""
PROTOCOL: Final = "protocol"


@dataclass(frozen=True)
class Deployment:
    """One choice of everything that varies."""

    number: int
    """The place of its cell in the sweep."""
    settings: dict[str, Any]
    """What was chosen, dotted; the protocol first, if there is a choice."""
    scenario: Scenario
    cost: float

    def __str__(self) -> str:
        return ", ".join(_said(key, value) for key, value in self.settings.items()) or self.scenario.name


def _said(key: str, value: Any) -> str:
    """A choice in words: "6 subscribers", "range 60 m", "CET"."""
    table, _, setting = key.rpartition(".")
    if key == PROTOCOL:
        return protocol_label(str(value))
    if key == RELAYS:
        return counted(value, RELAYS) if value else "no relays"
    return counted(value, table.rpartition(".")[2]) if setting == "count" else f"{setting} {value}"


@dataclass(frozen=True)
class Search:
    """What is looked for among which deployments."""

    name: str
    goals: tuple[Goal, ...]
    deployments: tuple[Deployment, ...]
    sweep: Plan
    limits: Limits
    prices: Mapping[str, Any]
    base: Scenario
    """What is varied."""
    relays: Relays | None = None
    """What may be added, before it is known where."""
    placed: tuple[Placement, ...] = ()


def plan_search(
    source: str | Path | Scenario,
    *,
    goal: Sequence[str] = (),
    cost: Mapping[str, Any] | None = None,
    vary: Mapping[str, Any] | None = None,
    at_most: int | None = None,
    certain: bool = False,
) -> Search:
    """The search that a scenario's [plan] describes; what is said here stands in its place."""
    scenario = loaded(source)
    table = scenario.plan or PlanTable()
    written = list(goal) or table.goal
    varied = dict(vary) if vary else dict(table.vary)
    prices = dict(cost) if cost else table.cost
    _check_said(scenario, written, varied, prices)
    relays = parse_relays(varied.pop(RELAYS)) if RELAYS in varied else None
    each = 1 + relays.at_most if relays else 1
    sweep = _sweep_of(scenario, varied, each)
    goals = tuple(parse_goal(text, sweep.kind) for text in written)
    counts = tuple(dict.fromkeys(goal.measure for goal in goals if isinstance(goal.measure, Count)))
    base = blake2b(f"{sweep.base} {counts} {relays or ''}".encode(), digest_size=8).hexdigest()
    sweep = replace(sweep, counts=counts, base=base)
    if relays:
        check_relays(relays, sweep.cells[0].scenario, goals)
    _check_files(sweep)
    search = Search(scenario.name, goals, _priced(sweep, prices), sweep, Limits(), prices, scenario, relays)
    budget = at_most or table.at_most or _usual_budget(each * len(search.deployments))
    limits = Limits(budget=budget, certain=certain or table.certain)
    if limits.certain and (means := [goal.text for goal in goals if not goal.of_shares]):
        raise BadInput(f"plan.certain: {means[0]}: nothing is certain of a mean without a worst case; name a share")
    _check_budget(limits, each * len(search.deployments))
    return replace(search, limits=limits)


def _check_files(sweep: Plan) -> None:
    """Read the files of all cells, as runs would; those that differ in counts, radio and protocol have the same."""
    checked: set[str] = set()
    for cell in sweep.cells:
        point = sweep.points[cell.point]
        files = str({key: value for key, value in point.items() if not re.match(r"protocol|radio\.|.*\.count$", key)})
        if files not in checked:
            sweep.kind.check_files(cell.scenario)
            checked.add(files)


def _usual_budget(deployments: int) -> int:
    return round(_SHARE_OF_GRID * _RUNS_OF_GRID * deployments)


def _check_budget(limits: Limits, deployments: int) -> None:
    if limits.budget < FIRST_LOOK * deployments:
        least = f"{FIRST_LOOK * deployments:,} runs are the least that tell anything"
        raise BadInput(f"plan.at_most: {counted(deployments, 'deployments')} x {FIRST_LOOK} = {least}")


def nominal_scenarios(search: Search) -> list[tuple[dict[str, Any], FieldScenario]]:
    """One scenario for all deployments whose relays are placed together, and the settings that these share.

    It is the one that is nearest to what the plan varies, or in the middle of it.
    """
    found: dict[str, tuple[dict[str, Any], tuple[int, int], FieldScenario]] = {}
    for cell in search.sweep.cells:
        assert isinstance(cell.scenario, FieldScenario)
        point = search.sweep.points[cell.point]
        shared = settings_of_places(point)
        far = _far_from_base(search, point), int(cell.protocol != search.base.protocol.name)
        if str(shared) not in found or far < found[str(shared)][1]:
            found[str(shared)] = (shared, far, cell.scenario)
    return [(shared, scenario) for shared, _, scenario in found.values()]


def _far_from_base(search: Search, point: Mapping[str, Any]) -> int:
    steps = 0
    for axis in search.sweep.axes:
        own = _written_value(search.base, axis.key)
        usual = axis.values.index(own) if own in axis.values else len(axis.values) // 2
        steps += abs(axis.values.index(point[axis.key]) - usual)
    return steps


def with_placed(search: Search, placed: Sequence[Placement]) -> Search:
    """The search among all deployments with none, one, two, ... of the relays that were placed."""
    points = []
    for one in search.deployments:
        assert isinstance(one.scenario, FieldScenario)
        places = next(placement.places for placement in placed if placement.covers(one.settings))
        point = search.sweep.points[search.sweep.cells[one.number].point]
        points += [
            (point | {RELAYS: count}, with_relays(one.scenario, places[:count])) for count in range(len(places) + 1)
        ]
    most = max(point[RELAYS] for point, _ in points)
    axes = (*search.sweep.axes, Axis(RELAYS, tuple(range(most + 1))))
    sweep = replace(search.sweep.over(points, range(FIRST_LOOK)), axes=axes)
    return replace(search, sweep=sweep, deployments=_priced(sweep, search.prices), placed=tuple(placed))


def _check_said(scenario: Scenario, goals: Sequence[str], varied: Mapping[str, Any], prices: Mapping[str, Any]) -> None:
    """Goals, prices and something to choose from are needed; say all that is missing at once."""
    missing = [
        example
        for said, example in (
            (goals, 'goal = ["delivery_ratio >= 95 %"]'),
            (prices, "cost = {subscribers = 400}"),
            (varied, '[plan.vary]\n  subscribers.count = "2..8"'),
        )
        if not said
    ]
    if missing:
        raise BadInput(f"{scenario.name}: [plan] says too little; add for example\n  " + "\n  ".join(missing))


def _sweep_of(scenario: Scenario, varied: Mapping[str, Any], each: int) -> Plan:
    settings = {key: value for key, value in varied.items() if key != PROTOCOL or isinstance(value, Mapping)}
    chosen = varied.get(PROTOCOL)
    protocols = None
    if chosen is not None and not isinstance(chosen, Mapping):
        protocols = [str(name) for name in values_of(chosen)]
    count = each * len(protocols or [""]) * math.prod(len(values) for values in written_values(settings).values())
    if count > MOST_DEPLOYMENTS:
        raise BadInput(f"plan.vary: {count:,} deployments; at most {MOST_DEPLOYMENTS:,} can be raced: try fewer values")
    # What `serai sweep` would vary has nothing to do with the plan.
    plain = scenario.model_copy(update={"sweep": None, "plan": None})
    return plan_sweep(plain, settings, protocols, seeds=FIRST_LOOK)


def _priced(sweep: Plan, prices: Mapping[str, Any]) -> tuple[Deployment, ...]:
    price_of = [_price(name, price, sweep) for name, price in prices.items()]
    deployments = []
    for number, cell in enumerate(sweep.cells):
        settings = ({PROTOCOL: cell.protocol} if len(sweep.protocols) > 1 else {}) | sweep.points[cell.point]
        cost = sum(price(cell.scenario) for price in price_of)
        deployments.append(Deployment(number, settings, cell.scenario, cost))
    return tuple(deployments)


@dataclass(frozen=True)
class _Price:
    """What a scenario costs because of one of its settings."""

    key: str
    each: float | None
    of_value: Mapping[Any, float]

    def __call__(self, scenario: Scenario) -> float:
        value = _written_value(scenario, self.key)
        if value is None:  # a setting of another protocol
            return 0.0
        if self.each is not None:
            return self.each * float(value)
        if value not in self.of_value:
            raise BadInput(
                f"plan.cost.{self.key}: no price for {value}; priced are {', '.join(map(str, self.of_value))}"
            )
        return self.of_value[value]


def _price(name: str, price: Any, sweep: Plan) -> _Price:
    known = known_keys(type(sweep.cells[0].scenario), sweep.protocols)
    if name == RELAYS and f"sensors.{RELAYS}" in known:
        return _Price(name, _positive(name, price), {})
    groups = group_settings(sweep.cells[0].scenario, "count")
    key = groups.get(name) or (f"{name}.count" if f"{name}.count" in known else name)
    if known_field(known, key) is None and key != PROTOCOL:
        counted = [*groups, *(one.removesuffix(".count") for one in known if one.endswith(".count"))]
        raise BadInput(f'plan.cost: nothing is called "{name}"; {did_you_mean(name, [*counted, *known])}')
    if isinstance(price, Mapping):
        prices = {_normal(key, value, known): _positive(name, amount) for value, amount in price.items()}
        return _Price(key, None, prices)
    if not _is_number(_written_value(sweep.cells[0].scenario, key)):
        raise BadInput(f'plan.cost.{name}: not a number of things; give a price for each value: {{"40 m" = 10}}')
    return _Price(key, _positive(name, price), {})


def _normal(key: str, value: str, known: Mapping[str, Any]) -> Any:
    return axis_of(key, values_of(value), known.get(key)).values[0]


def _positive(name: str, price: Any) -> float:
    if not _is_number(price) or not 0 <= price < math.inf:
        raise BadInput(f"plan.cost.{name}: {price!r} is not a price; write a number that is not negative")
    return float(price)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written_value(scenario: Scenario, key: str) -> Any:
    """What a scenario says for a key, as it is written there, in the unit of an axis."""
    if key == PROTOCOL:
        return scenario.protocol.name
    if key == RELAYS:
        return len(scenario.sensors.relays or ()) if isinstance(scenario, FieldScenario) else None
    table, _, setting = key.rpartition(".")
    section = table_at(scenario.as_written(), table) or {}
    if setting == "count" and isinstance(section, list):  # of all groups together
        return sum(_written_value(scenario, key) for key in group_settings(scenario, "count").values())
    if setting == "count" and setting not in section and section.get("file"):
        return _rows_of_file(scenario, table)
    if setting == "count" and setting not in section and section.get("tracks"):
        return len(read_tracks(Path(section["tracks"]), section.get("nodes")).names)
    field = known_field(known_keys(type(scenario), [scenario.protocol.name]), key)
    return axis_of(key, [section[setting]], field).values[0] if setting in section else None


def _rows_of_file(scenario: Any, table: str) -> int:
    """How many there are where a file says it."""
    area = scenario.field
    names, _, _ = read_positions(getattr(scenario, table).file, Grid(area.width_m, area.height_m, *area.cells))
    return len(names)
