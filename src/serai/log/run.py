"""A run: what was asked for and what came of it, as arrays for metrics and as tables for everybody else."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, NamedTuple, Self, TypeVar

import numpy as np

from serai.log.folder import check_keys, check_out, package_versions, read_tables, write_folder
from serai.log.metrics import Metrics
from serai.scenario.section import Scenario
from serai.scenario.write import to_toml

# pyarrow takes longer to import than a run to simulate: only who reads or writes tables shall wait for it.
if TYPE_CHECKING:
    import pyarrow as pa

    from serai.log.columns import Columns
    from serai.log.picture import RunPicture

_SIMULATED: Final = ("origin", "kind", "protocol", "seed", "scenario", "attributes", "counts", "versions", "tables")
_RECORDED: Final = ("origin", "kind", "protocol", "attributes", "versions", "tables")


class Run(ABC):
    """What happened in a network once. Two are equal if everything in them is the same, to the last bit."""

    protocol: str
    versions: dict[str, str]

    @property
    @abstractmethod
    def kind(self) -> str:
        """The kind of network, as scenarios call it."""

    @property
    @abstractmethod
    def full_log(self) -> bool:
        """Whether every transfer and every drop was kept."""

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, pa.Table]:
        """Every table of the run by name, as its folder keeps them."""

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """What `run.json` says, but for the version of the log and the list of tables."""

    def plot(self) -> RunPicture:
        """A picture (SVG): where nodes stand and go, and from where events got through."""
        from serai.log.picture import draw_run

        return draw_run(self.tables, repr(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(same(getattr(self, part.name), getattr(other, part.name)) for part in fields(self))  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]  # arrays have none either


R = TypeVar("R")
S = TypeVar("S", bound=Scenario)


class TableForm(NamedTuple, Generic[R, S]):
    """How runs of a kind of network stand in tables, and come back from them."""

    own: dict[str, pa.Schema]
    """The tables that only this kind has."""
    columns_of: Callable[[R], dict[str, Columns]]
    """The columns of each table, as `serai.log.tables.make_tables` takes them; `transfers` only in a full log."""
    parts_from: Callable[[S, Mapping[str, Any], Mapping[str, pa.Table]], dict[str, Any]]
    """What this kind of run has beyond every other, given its scenario, its `run.json` and its tables."""
    optional: Mapping[str, pa.Schema] = MappingProxyType({})
    """The tables that only this kind has, and not every run of it: most of them belong to a full log."""


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedRun(Run):
    """One run of a scenario: the same scenario, protocol, seed and versions give it again.

    Each kind of network has a class below this one, which says how its arrays stand in tables and come back.
    """

    scenario: Scenario
    protocol: str
    seed: int
    versions: dict[str, str] = field(default_factory=package_versions, kw_only=True)

    COUNTED: ClassVar[tuple[str, ...]] = ()
    """The names of `counts`."""

    @property
    def kind(self) -> str:
        """The kind of network, as scenarios call it."""
        return self.scenario.network

    @property
    @abstractmethod
    def attributes(self) -> tuple[str, ...]:
        """The names of the events' attributes."""

    @property
    def texts(self) -> Mapping[str, tuple[str, ...]]:
        """Of attributes that are texts: what their values, places from 0, stand for."""
        return {}

    @abstractmethod
    def counts(self) -> dict[str, Any]:
        """Sums that need no table, by name."""

    @abstractmethod
    def in_numbers(self) -> tuple[str, ...]:
        """How much there is of everything, in a few words each."""

    @staticmethod
    @abstractmethod
    def form() -> TableForm[Any, Any]:
        """How runs of this kind of network stand in tables."""

    @cached_property
    def tables(self) -> Mapping[str, pa.Table]:
        """Every table of the run by name, as its folder keeps them; made when first asked for."""
        from serai.log.tables import make_tables

        form = self.form()
        return make_tables(form.columns_of(self), form.own | dict(form.optional), self.attributes, self.texts)

    def description(self) -> dict[str, Any]:
        """What `run.json` says, but for the version of the log and the list of tables."""
        return {
            "origin": "simulation",
            "kind": self.kind,
            "protocol": self.protocol,
            "seed": self.seed,
            "scenario": to_toml(self.scenario),
            "attributes": list(self.attributes),
            **({"texts": {name: list(texts) for name, texts in self.texts.items()}} if self.texts else {}),
            "counts": self.counts(),
            "versions": self.versions,
            **self._own_protocol(),
        }

    def _own_protocol(self) -> dict[str, Any]:
        """What the author of a protocol of the user's wrote: the folder must be readable without the file."""
        own = self.scenario.PROTOCOLS[self.protocol].own
        return {} if own is None else {"protocol_texts": own.texts()}

    @classmethod
    def read(cls, place: Path, said: Mapping[str, Any], scenario: Scenario) -> Self:
        """The run that a folder keeps, given what its `run.json` says."""
        from serai.log.tables import CORE_TABLES, FULL_LOG_TABLES

        check_keys(place, said, (*_SIMULATED, *(f"counts.{name}" for name in cls.COUNTED)))
        full = FULL_LOG_TABLES if said["tables"].keys() & FULL_LOG_TABLES.keys() else {}
        form = cls.form()
        more = {name: schema for name, schema in form.optional.items() if name in said["tables"]}
        tables = read_tables(place, said["tables"], CORE_TABLES | form.own | full | more)
        parts = form.parts_from(scenario, said, tables)
        return cls(scenario, said["protocol"], said["seed"], versions=said["versions"], **parts)

    def __repr__(self) -> str:
        numbers = ", ".join((*self.in_numbers(), *(["full log"] if self.full_log else [])))
        return f"{type(self).__name__}({self.protocol}, seed {self.seed}: {numbers})"

    def _repr_html_(self) -> str:
        """What the run is, its picture and its metrics, for notebooks."""
        picture = f'<div style="max-width:440px">{self.plot().svg}</div>'
        return f"<p>{html.escape(repr(self))}</p>{picture}{self.metrics._repr_html_()}"

    @property
    @abstractmethod
    def metrics(self) -> Metrics:
        """Every metric of the run, worked out when first asked for."""


@dataclass(frozen=True, eq=False, repr=False)
class RecordedRun(Run):
    """What real nodes logged: the tables, and what `run.json` says; no scenario would give it again."""

    protocol: str
    versions: dict[str, str]  # of the nodes' software
    said: dict[str, Any]  # all else that `run.json` says
    recorded: Mapping[str, pa.Table]

    @property
    def kind(self) -> str:
        """The kind of network, as scenarios call it."""
        return str(self.said["kind"])

    @property
    def full_log(self) -> bool:
        """Whether every transfer and every drop was kept."""
        return "transfers" in self.recorded

    @property
    def tables(self) -> Mapping[str, pa.Table]:
        """Every table of the run by name, as its folder keeps them."""
        return self.recorded

    def description(self) -> dict[str, Any]:
        """What `run.json` says, but for the version of the log and the list of tables."""
        return self.said | {"protocol": self.protocol, "versions": self.versions}

    @classmethod
    def read(cls, place: Path, said: Mapping[str, Any]) -> Self:
        """The run that a folder keeps, given what its `run.json` says."""
        from serai.log.tables import CORE_TABLES, FULL_LOG_TABLES

        check_keys(place, said, _RECORDED)
        known = CORE_TABLES | FULL_LOG_TABLES
        full = FULL_LOG_TABLES if said["tables"].keys() & FULL_LOG_TABLES.keys() else {}
        described = {name: known.get(name) for name in said["tables"]} | CORE_TABLES | full
        tables = read_tables(place, said["tables"], described)
        elsewhere = ("log_version", "tables", "protocol", "versions")
        rest = {key: value for key, value in said.items() if key not in elsewhere}
        return cls(said["protocol"], said["versions"], rest, tables)

    def __repr__(self) -> str:
        nodes, events = len(self.tables["nodes"]), len(self.tables["events"])
        return f"RecordedRun({self.protocol}: {nodes} nodes, {events} events)"


def write_run(run: Run, folder: str | Path) -> Path:
    """Write a run to a new or empty folder, whole or not at all, and say where it is."""
    check_out(folder)  # before the tables are put together
    return write_folder(folder, run.description(), run.tables)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same, arrays to the last bit."""
    if isinstance(one, np.ndarray):
        alike = isinstance(other, np.ndarray) and one.dtype == other.dtype
        return alike and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
