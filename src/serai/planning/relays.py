"""Where further sensors would help most: relays at some of many sites, placed one after the other before the race.

Each step asks two questions. Which ten sites allow most, by contacts with communities alone? That takes no simulation
(`serai.field.relay_sites`). And which of these ten helps most in ten runs? It is taken if it surely helps: if the
paired 95 % interval is above 0. Where no single site helps, pairs are tried that together join communities. Placing
has seeds of its own: the race must not judge sites by the runs that chose them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from serai.core.errors import BadInput
from serai.core.statistics import Estimate, estimate
from serai.core.units import LENGTH, parse_quantity
from serai.field.relay_sites import Choice, Place, RelaySites
from serai.field.sections import FieldScenario
from serai.log.pairs import Count
from serai.planning.goals import Columns, Goal, margin_of
from serai.scenario.section import Scenario

RELAYS: Final = "relays"
FIRST_SEED: Final = 1_000_000
RUNS: Final = 10
_CEILINGS: Final = 3
_BEST: Final = 10
_MOST_SITES: Final = 5000
_EXAMPLE: Final = '{candidates = "grid 50 m", at_most = 12}'
_OF_PLACES: Final = ("radio.range", "field.", "sensors.count", "sensors.file", "sensors.placement")

Simulate = Callable[[Sequence[Scenario]], Sequence[Columns]]
"""The rows of the seeds from `FIRST_SEED` on, of each of some scenarios."""


@dataclass(frozen=True)
class Relays:
    """What a plan may add: relays at some of these places."""

    at_most: int
    spacing_m: float | None = None
    """Of a grid of sites over the whole field."""
    places: tuple[Place, ...] = ()

    def sites(self, scenario: FieldScenario) -> list[Place]:
        """Where a relay may stand."""
        wide, high = scenario.field.width_m, scenario.field.height_m
        if self.spacing_m is None:
            return [(x, y) for x, y in self.places if 0 <= x <= wide and 0 <= y <= high]
        return [(x, y) for y in _evenly(high, self.spacing_m) for x in _evenly(wide, self.spacing_m)]


def _evenly(length_m: float, apart_m: float) -> list[float]:
    """Places at this distance, as far from one end as from the other."""
    count = int(length_m // apart_m)
    return [(length_m - count * apart_m) / 2 + apart_m * place for place in range(count + 1)]


@dataclass(frozen=True)
class Step:
    """One step of placing: a relay, or two that help only together."""

    places: tuple[Place, ...]
    goal: Goal
    """The goal that was farthest from being met."""
    gain: Estimate
    """By how much its share rose, over the same worlds."""
    taken: bool


@dataclass(frozen=True)
class Placement:
    """Relays in the order in which they help, for deployments with these settings."""

    settings: Mapping[str, Any]
    steps: tuple[Step, ...]
    sites: int

    @property
    def places(self) -> tuple[Place, ...]:
        """Where they stand, first the one that helps most."""
        return tuple(place for step in self.steps if step.taken for place in step.places)

    def covers(self, settings: Mapping[str, Any]) -> bool:
        """Whether deployments with these settings have their relays at these places."""
        return all(settings.get(key) == value for key, value in self.settings.items())


def parse_relays(written: Any) -> Relays:
    """What is written at `relays` under [plan.vary]."""
    if not isinstance(written, Mapping) or set(written) != {"candidates", "at_most"}:
        raise BadInput(f"plan.vary.relays: write {_EXAMPLE}")
    at_most, candidates = written["at_most"], written["candidates"]
    if type(at_most) is not int or at_most < 1:
        raise BadInput(f"plan.vary.relays.at_most: {at_most!r} is not a number of relays")
    if not isinstance(candidates, list | tuple):
        return Relays(at_most, _spacing(str(candidates)))
    pairs = [place if isinstance(place, list | tuple) else () for place in candidates or [()]]
    if any(len(pair) != 2 or any(type(at) not in (int, float) for at in pair) for pair in pairs):
        raise BadInput('plan.vary.relays.candidates: write "grid 50 m", or places in metres: [[120, 80], [40, 15.5]]')
    return Relays(at_most, None, tuple((float(x), float(y)) for x, y in pairs))


def _spacing(text: str) -> float:
    found = re.fullmatch(r"\s*grid\s+(.+)", text)
    try:
        spacing_m = parse_quantity(found[1], LENGTH) if found else 0.0
    except ValueError as error:
        raise BadInput(f"plan.vary.relays.candidates: {error}") from None
    if spacing_m <= 0:
        raise BadInput(f'plan.vary.relays.candidates: "{text}" is no grid; write "grid 50 m"')
    return spacing_m


def check_relays(relays: Relays, scenario: Scenario, goals: Sequence[Goal]) -> None:
    """Refuse relays where there can be none, and too many sites."""
    if not isinstance(scenario, FieldScenario):
        raise BadInput(f"plan.vary.relays: networks of kind {scenario.network} have no relays")
    if not any(isinstance(goal.measure, Count) for goal in goals):
        needed = 'add a goal on readings that arrive, such as "on_time(1 h) >= 95 %"'
        raise BadInput(f"plan.vary.relays: nothing says which place is better; {needed}")
    sites = len(relays.sites(scenario))
    if not 1 <= sites <= _MOST_SITES:
        raise BadInput(f"plan.vary.relays.candidates: {sites:,} sites in the field; 1 to {_MOST_SITES:,} are possible")


def settings_of_places(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Of the settings of a deployment those on which it depends where relays help."""
    return {key: value for key, value in settings.items() if key.startswith(_OF_PLACES)}


def with_relays(scenario: FieldScenario, places: Sequence[Place]) -> FieldScenario:
    """A scenario with further relays."""
    there = scenario.sensors.relays or ()
    sensors = scenario.sensors.model_copy(update={"relays": (*there, *places) or None})
    return scenario.model_copy(update={"sensors": sensors})


def place_relays(
    nominal: Sequence[tuple[Mapping[str, Any], FieldScenario]],
    goals: Sequence[Goal],
    relays: Relays,
    simulate: Simulate,
    on_step: Callable[[Placement], None] = lambda _: None,
) -> tuple[Placement, ...]:
    """Place relays in each of these scenarios, which stand for all deployments with their settings.

    All go on at the same time, step by step, so that each step is simulated at once.
    """
    counted = [replace(goal, share=None) for goal in goals if isinstance(goal.measure, Count)]
    first = simulate([scenario for _, scenario in nominal])
    placings = [
        _Placing(dict(settings), scenario, relays, counted, rows)
        for (settings, scenario), rows in zip(nominal, first, strict=True)
    ]
    while asking := [(one, choices) for one in placings if (choices := one.choices())]:
        rows = iter(simulate([one.with_relays(choice) for one, choices in asking for choice in choices]))
        for one, choices in asking:
            one.decide(choices, [next(rows) for _ in choices])
            on_step(one.placement())
    return tuple(one.placement() for one in placings)


class _Placing:
    """How far the relays of one scenario are."""

    def __init__(
        self, settings: Mapping[str, Any], scenario: FieldScenario, relays: Relays, goals: Sequence[Goal], rows: Columns
    ) -> None:
        self.settings, self.scenario, self.goals, self.rows = settings, scenario, goals, rows
        self.places = relays.sites(scenario)
        self.sites = RelaySites(scenario, self.places, range(FIRST_SEED, FIRST_SEED + _CEILINGS))
        self.at_most = min(relays.at_most, len(self.places))
        self.chosen: Choice = ()
        self.steps: list[Step] = []
        self.kinds = self._kinds()

    def _kinds(self) -> Iterator[Sequence[Choice]]:
        """What to try next: single sites, and if none of them helps, pairs."""
        yield self.sites.touching(self.chosen)
        if len(self.chosen) + 2 <= self.at_most:
            yield self.sites.bridging(self.chosen)

    def choices(self) -> list[Choice]:
        """The choices that are worth a simulation, the most promising first; none: it is done."""
        if len(self.chosen) >= self.at_most:
            return []
        measure = self.binding.measure
        assert isinstance(measure, Count)
        within_s = measure.within_s or float(self.scenario.events.lifetime_s)
        for tried in self.kinds:
            gains = self.sites.gains(self.chosen, tried, within_s, measure.what == "reached")
            by_gain = sorted(range(len(tried)), key=lambda place: (-gains[place], place))
            best = [tried[place] for place in by_gain[:_BEST] if gains[place] > 0]
            if best:
                return best
        return []

    @property
    def binding(self) -> Goal:
        """The goal that is farthest from being met, in standard deviations of a run."""
        return min(self.goals, key=lambda goal: margin_of(goal.score(self.rows)))

    def decide(self, choices: Sequence[Choice], rows: Sequence[Columns]) -> None:
        """Take the choice that helps most in these runs, if it surely helps."""
        goal = self.binding
        assert isinstance(goal.measure, Count)
        asked = float(self.rows[goal.measure.columns()[1]].mean()) or 1.0
        gains = [estimate(((goal.score(one) - goal.score(self.rows)) / asked).tolist()) for one in rows]
        best = max(range(len(choices)), key=lambda place: (gains[place].mean, -place))
        taken = gains[best].mean - gains[best].half_width() > 0
        places = tuple(self.places[site] for site in choices[best])
        self.steps.append(Step(places, goal, gains[best], taken))
        if taken:
            self.chosen, self.rows, self.kinds = (*self.chosen, *choices[best]), rows[best], self._kinds()

    def with_relays(self, choice: Choice) -> FieldScenario:
        """The scenario with what was chosen so far, and with this choice."""
        return with_relays(self.scenario, [self.places[site] for site in (*self.chosen, *choice)])

    def placement(self) -> Placement:
        """What came of it so far."""
        return Placement(self.settings, tuple(self.steps), len(self.places))


def said_step(placement: Placement) -> str:
    """The last step of a placement in words."""
    last = placement.steps[-1]
    where = "".join(f", {key.rpartition('.')[2]} {value}" for key, value in placement.settings.items())
    at = " and ".join(f"({x:.0f} m, {y:.0f} m)" for x, y in last.places)
    gain = f"{100 * last.gain.mean:+.2f} ± {100 * last.gain.half_width():.2f} points of {last.goal.text}"
    return f"relay at {at}{where}: {gain}{'' if last.taken else '; no more'}"


def rows_by_point(table: Any, names: Sequence[str]) -> list[Columns]:
    """The columns of each point of a table of runs, in the order of seeds."""
    point = table["point"].to_numpy()
    columns = {name: table[name].to_numpy().astype(np.float64) for name in names}
    ends = np.flatnonzero(np.diff(point)) + 1
    return [{name: values[rows] for name, values in columns.items()} for rows in np.split(np.arange(len(point)), ends)]
