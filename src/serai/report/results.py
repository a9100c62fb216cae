"""What a report is made from: means over seeds, a few curves, and one typical run of each main case to be drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from serai.core.statistics import Estimate
from serai.kinds import protocol_label
from serai.log.metrics import Chapter, Metric, Served
from serai.log.run import SimulatedRun
from serai.report.wording import Scale, scale_of

UNKNOWN = Estimate(math.nan, math.nan, 0)


class Case(NamedTuple):
    """A line of the tables: a point of the sweep (its number) under one protocol."""

    point: int
    protocol: str


@dataclass(frozen=True)
class Point:
    """A point of a sweep: the scenario's name, and the settings that were changed."""

    scenario: str
    settings: Mapping[str, str]

    @property
    def label(self) -> str:
        """The changed settings, as they would be written; the scenario's name if there are none."""
        return ", ".join(f"{key} = {value}" for key, value in self.settings.items()) or self.scenario

    def short(self, keys: Sequence[str]) -> str:
        """These of the changed settings, without their tables if that is enough; without any the scenario's name."""
        ends = [key.rpartition(".")[2] for key in keys]
        called = dict(zip(keys, ends if len(set(ends)) == len(ends) else keys, strict=True))
        named = [f"{called[key]} {value}" for key, value in self.settings.items() if key in called]
        return ", ".join(named) or self.scenario


class Difference(NamedTuple):
    """The mean difference of two protocols under common seeds, half of its interval, and the paired test's p."""

    mean: float
    half_width: float
    p: float


class DelayCurve(NamedTuple):
    """The fraction of all wanted pairs that was served within each delay: it ends at the delivery ratio, not at 1."""

    delay_s: tuple[float, ...]
    fraction: tuple[float, ...]


@dataclass(frozen=True)
class Results:
    """The summary of a sweep; what it does not have is empty, and the report says so."""

    title: str
    points: tuple[Point, ...]
    cases: tuple[Case, ...]
    definitions: Mapping[str, Metric]
    """The metrics of this kind of network, in the order in which they are shown."""
    headlines: tuple[str, ...]
    """The metrics of the main table."""
    estimates: Mapping[tuple[Case, str], Estimate]
    seeds: int
    ignored: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Settings of the points that a protocol does not have: whatever they are, its runs are the same."""
    differences: Mapping[tuple[Case, Case, str], Difference] = field(default_factory=dict)
    """(case, other case at the same point, metric) -> case minus other."""
    delays: Mapping[Case, DelayCurve] = field(default_factory=dict)
    dots: Mapping[tuple[Case, str], tuple[float, ...]] = field(default_factory=dict)
    """The values of a few seeds, to be drawn."""
    served: Mapping[Case, Mapping[str, Served]] = field(default_factory=dict)
    """How the events of communities of each size fared, in a few runs of the main cases."""
    served_seeds: int = 0
    scenarios: Mapping[Case, str] = field(default_factory=dict)
    """The whole scenario of a case as TOML, every default written out."""
    setting: str = ""
    """The world in one line, where all cases have the same."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """How to reproduce this: command, seeds, versions."""
    shown: Mapping[Case, SimulatedRun] = field(default_factory=dict)
    """A run of each main case, all of the seed that is nearest to the means."""
    outdated: bool = False
    """Whether serai has changed since the runs were made, so that none can be simulated again to be drawn."""

    def estimate(self, case: Case, metric: str) -> Estimate:
        """The mean of a metric over the seeds; `UNKNOWN` where there is none."""
        return self.estimates.get((case, metric), UNKNOWN)

    def name(self, case: Case) -> str:
        """How a case is called: by its protocol, and by what makes its point differ where there are several."""
        protocol = protocol_label(case.protocol)
        if len(self.numbers) == 1:
            return protocol
        its = [key for key in self.varied if key not in self.ignored.get(case.protocol, ())]
        return protocol if self.varied and not its else f"{protocol} · {self.points[case.point].short(its)}"

    @cached_property
    def distinct(self) -> tuple[Case, ...]:
        """The cases without those that have the runs of an earlier one, as their protocol lacks what was changed."""
        first: dict[object, Case] = {}
        for case in self.cases:
            lacks, point = self.ignored.get(case.protocol), self.points[case.point]
            its = [item for item in point.settings.items() if item[0] not in (lacks or ())]
            first.setdefault((case.protocol, point.scenario, *its) if lacks else case, case)
        return tuple(first.values())

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """The settings that are not the same at all points."""
        points = [self.points[number].settings for number in self.numbers]
        keys = dict.fromkeys(key for settings in points for key in settings)
        return tuple(key for key in keys if len({settings.get(key) for settings in points}) > 1)

    @property
    def protocols(self) -> list[str]:
        """The protocols, in the order of the cases."""
        return list(dict.fromkeys(case.protocol for case in self.cases))

    def at(self, point: int) -> list[Case]:
        """The cases of a point."""
        return [case for case in self.cases if case.point == point]

    @property
    def numbers(self) -> list[int]:
        """The points (their numbers) that the cases are at."""
        return list(dict.fromkeys(case.point for case in self.cases))

    def main(self) -> Results:
        """What the tables are about: where some points change nothing, the first of these; else everything."""
        unchanged = [number for number in self.numbers if not self.points[number].settings]
        return replace(self, cases=tuple(self.at(unchanged[0]))) if unchanged else self

    def scale(self, metric: str) -> Scale:
        """How a metric is shown, alike in all tables and figures."""
        means = (estimate.mean for (_, name), estimate in self.estimates.items() if name == metric)
        return scale_of(self.definitions[metric], means)

    def chapter(self, name: Chapter) -> tuple[str, ...]:
        """The metrics of a chapter of which anything is known."""
        known = {
            metric
            for (case, metric), found in self.estimates.items()
            if case in self.cases and math.isfinite(found.mean)
        }
        return tuple(one.name for one in self.definitions.values() if one.chapter == name and one.name in known)
