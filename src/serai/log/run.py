"""A run: what was asked for and what came of it, as arrays for metrics and as tables for everybody else."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from serai.log.folder import check_out, package_versions, write_folder
from serai.log.metrics import Metrics
from serai.scenario.section import Scenario
from serai.scenario.write import to_toml

# pyarrow takes longer to import than a run to simulate: only who reads or writes tables shall wait for it.
if TYPE_CHECKING:
    import pyarrow as pa

    from serai.log.picture import RunPicture


class Run(ABC):
    """What happened in a network once. Two are equal if everything in them is the same, to the last bit."""

    protocol: str
    versions: dict[str, str]

    @property
    @abstractmethod
    def full_log(self) -> bool:
        """Whether every transfer and every drop was kept."""

    @cached_property
    def tables(self) -> Mapping[str, pa.Table]:
        """Every table of the run by name, as its folder keeps them; made when first asked for."""
        return self._tables()

    @abstractmethod
    def _tables(self) -> dict[str, pa.Table]:
        """Every table of the run by name."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """What `run.json` says, but for the version of the log and the list of tables."""

    def plot(self) -> RunPicture:
        """A figure: where nodes stand and go, and from where events got through."""
        from serai.log.picture import draw_run

        return draw_run(self.tables, repr(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(same(getattr(self, part.name), getattr(other, part.name)) for part in fields(self))  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]  # arrays have none either


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedRun(Run):
    """One run of a scenario: the same scenario, protocol, seed and versions give it again."""

    scenario: Scenario
    protocol: str
    seed: int
    versions: dict[str, str] = field(default_factory=package_versions, kw_only=True)

    @abstractmethod
    def counts(self) -> dict[str, Any]:
        """What `run.json` says beyond what it says of every run: sums that need no table."""

    @property
    @abstractmethod
    def attributes(self) -> tuple[str, ...]:
        """The names of the events' attributes."""

    @abstractmethod
    def in_numbers(self) -> tuple[str, ...]:
        """How much there is of everything, in a few words each."""

    def description(self) -> dict[str, Any]:
        """What `run.json` says, but for the version of the log and the list of tables."""
        return {
            "protocol": self.protocol,
            "seed": self.seed,
            "scenario": to_toml(self.scenario),
            "attributes": list(self.attributes),
            "versions": self.versions,
            **self.counts(),
        }

    def __repr__(self) -> str:
        numbers = ", ".join((*self.in_numbers(), *(["full log"] if self.full_log else [])))
        return f"{type(self).__name__}({self.protocol}, seed {self.seed}: {numbers})"

    def _repr_html_(self) -> str:
        """What the run is, and its metrics, for notebooks."""
        return f"<p>{html.escape(repr(self))}</p>{self.metrics._repr_html_()}"

    @property
    @abstractmethod
    def metrics(self) -> Metrics:
        """Every metric of the run, worked out when first asked for."""


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, arrays to the last bit."""
    if isinstance(one, np.ndarray):
        alike = isinstance(other, np.ndarray) and one.dtype == other.dtype
        return alike and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def write_run(run: Run, folder: str | Path) -> Path:
    """Write a run to a new or empty folder, whole or not at all, and say where it is."""
    check_out(folder)  # before the tables are put together
    return write_folder(folder, run.description(), run.tables)
