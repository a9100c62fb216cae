"""What may be deployed, and what it costs: every choice of what a plan varies, each one whole scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from serai.core.errors import BadInput, did_you_mean
from serai.log.pairs import Count
from serai.planning.goals import Goal, parse_goal
from serai.planning.race import FIRST_LOOK, Limits
from serai.scenario.section import PlanTable, Scenario, known_keys
from serai.sweeping.axes import axis_of, values_of
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
        return str(value).upper()
    return f"{value} {table}" if setting == "count" else f"{setting} {value}"


@dataclass(frozen=True)
class Search:
    """What is looked for among which deployments."""

    name: str
    goals: tuple[Goal, ...]
    deployments: tuple[Deployment, ...]
    sweep: Plan
    limits: Limits
    prices: Mapping[str, Any]


def plan_search(
    source: str | Path | Scenario,
    *,
    goal: Sequence[str] = (),
    cost: Mapping[str, Any] | None = None,
    vary: Mapping[str, Any] | None = None,
    at_most: int | None = None,
) -> Search:
    """The search that a scenario's [plan] describes; what is said here stands in its place."""
    scenario = loaded(source)
    table = scenario.plan or PlanTable()
    written = list(goal) or table.goal
    varied = dict(vary) if vary else table.vary
    prices = dict(cost) if cost else table.cost
    _check_said(scenario, written, varied, prices)
    sweep = _sweep_of(scenario, varied)
    goals = tuple(parse_goal(text, sweep.kind) for text in written)
    counts = tuple(dict.fromkeys(goal.measure for goal in goals if isinstance(goal.measure, Count)))
    base = blake2b(f"{sweep.base} {counts}".encode(), digest_size=8).hexdigest()
    sweep = replace(sweep, counts=counts, base=base)
    deployments = _priced(sweep, prices)
    budget = at_most or table.at_most or round(_SHARE_OF_GRID * _RUNS_OF_GRID * len(deployments))
    if budget < FIRST_LOOK * len(deployments):
        least = f"{FIRST_LOOK * len(deployments):,} runs are the least that tell anything"
        raise BadInput(f"plan.at_most: {len(deployments)} deployments x {FIRST_LOOK} = {least}")
    return Search(scenario.name, goals, deployments, sweep, Limits(budget=budget), prices)


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


def _sweep_of(scenario: Scenario, varied: Mapping[str, Any]) -> Plan:
    settings = {key: value for key, value in varied.items() if key != PROTOCOL or isinstance(value, Mapping)}
    chosen = varied.get(PROTOCOL)
    protocols = None
    if chosen is not None and not isinstance(chosen, Mapping):
        protocols = [str(name) for name in values_of(chosen)]
    count = len(protocols or [""]) * math.prod(len(values) for values in written_values(settings).values())
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
    key = f"{name}.count" if f"{name}.count" in known else name
    if key not in known and key != PROTOCOL:
        counted = [one.removesuffix(".count") for one in known if one.endswith(".count")]
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
    if not _is_number(price) or price < 0:
        raise BadInput(f"plan.cost.{name}: {price!r} is not a price; write a number that is not negative")
    return float(price)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _written_value(scenario: Scenario, key: str) -> Any:
    """What a scenario says for a key, as it is written there, in the unit of an axis."""
    if key == PROTOCOL:
        return scenario.protocol.name
    table, _, setting = key.rpartition(".")
    section = scenario.as_written().get(table, {}) if table else scenario.as_written()
    if setting == "count" and setting not in section and section.get("file"):
        return _rows_of_file(scenario, table)
    known = known_keys(type(scenario), [scenario.protocol.name])
    return axis_of(key, [section[setting]], known.get(key)).values[0] if setting in section else None


def _rows_of_file(scenario: Any, table: str) -> int:
    """How many there are where a file says it."""
    area = scenario.field
    names, _, _ = read_positions(getattr(scenario, table).file, Grid(area.width_m, area.height_m, *area.cells))
    return len(names)
