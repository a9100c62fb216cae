"""The registry of the kinds of network: the one place that knows all of them, and the only one that dispatches."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from serai.core.errors import BadInput, did_you_mean
from serai.field.log import FieldRun
from serai.field.metrics import FieldMetrics, measure_field, pairs_field, served_by_size
from serai.field.sections import FieldScenario
from serai.field.simulation import check_files_field, simulate_field
from serai.field.summary import HEADLINES as FIELD_HEADLINES
from serai.field.summary import summary_field
from serai.log.metrics import Metric, Metrics, Served, declared
from serai.log.pairs import RunPairs
from serai.log.run import Run, SimulatedRun
from serai.log.summary import Line
from serai.opportunistic.log import OpportunisticRun
from serai.opportunistic.metrics import (
    OpportunisticMetrics,
    measure_opportunistic,
    pairs_opportunistic,
    write_message_stats,
)
from serai.opportunistic.presets import PRESETS
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.simulation import check_files_opportunistic, simulate_opportunistic
from serai.opportunistic.summary import HEADLINES as OPPORTUNISTIC_HEADLINES
from serai.opportunistic.summary import summary_opportunistic
from serai.overlay.log import OverlayRun
from serai.overlay.metrics import OverlayMetrics, measure_overlay
from serai.overlay.sections import OverlayScenario
from serai.overlay.simulation import check_files_overlay, simulate_overlay
from serai.overlay.summary import HEADLINES as OVERLAY_HEADLINES
from serai.overlay.summary import summary_overlay
from serai.scenario.catalogue import Catalogue
from serai.scenario.protocol import Protocol
from serai.scenario.section import Scenario

if TYPE_CHECKING:
    from serai.own.checking import Checked
    from serai.own.loading import Family, Own

S = TypeVar("S", bound=Scenario)
R = TypeVar("R", bound=SimulatedRun)
M = TypeVar("M", bound=Metrics)


@dataclass(frozen=True)
class Kind(Generic[S, R, M]):
    """Everything that the rest of serai asks of a kind of network."""

    scenario: type[S]
    run: type[R]
    simulate: Callable[..., R]
    """Of a scenario and a seed; its options are its keyword-only arguments, all of them yes or no."""
    measure: Callable[..., M]
    """Of a run; options likewise."""
    metrics: type[M]
    headlines: tuple[str, ...]
    """The metrics that are looked for first."""
    summary: Callable[[R, M], Sequence[Line]]
    """A run for the terminal."""
    check_files: Callable[[S], None]
    """Reads the files that a scenario names, and complains about them as a run would."""
    pairs: Callable[[R], RunPairs] | None = None
    """What became of every wanted pair; None where nobody waits."""
    served: Callable[[R], Mapping[str, Served]] | None = None
    """Who is served: what became of events by where they were born; None where it makes no difference."""
    message_stats: Callable[[R, Path], None] | None = None
    """Writes The ONE's report on messages; None where there are none to speak of."""
    presets: Mapping[str, Callable[[str], Mapping[str, Any]]] = field(default_factory=dict)
    """Settings under which another simulator does the same: by its name, of a protocol's name."""

    @property
    def name(self) -> str:
        """How scenarios of this kind call it."""
        return self.scenario.network

    @property
    def definitions(self) -> Mapping[str, Metric]:
        """Every metric of this kind, by name."""
        return declared(self.metrics)

    @cached_property
    def simulate_options(self) -> tuple[str, ...]:
        """The options that `simulate` takes."""
        return _options_of(self.simulate)

    @cached_property
    def measure_options(self) -> tuple[str, ...]:
        """The options that `measure` takes."""
        return _options_of(self.measure)


def _options_of(function: Callable[..., Any]) -> tuple[str, ...]:
    parameters = inspect.signature(function).parameters.values()
    return tuple(one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY)


def check_options(asked: Mapping[str, object], known: Sequence[str], of: str) -> None:
    """Refuse options that do not exist there, and values that are not yes or no."""
    for name, value in asked.items():
        if name not in known:
            meant = did_you_mean(name, known) if known else "it takes none"
            raise BadInput(f'{of}: no option "{name}"; {meant}')
        if not isinstance(value, bool):
            raise BadInput(f"{of}: {name} is {value!r}; write True or False")


FIELD = Kind(
    scenario=FieldScenario,
    run=FieldRun,
    simulate=simulate_field,
    measure=measure_field,
    metrics=FieldMetrics,
    headlines=FIELD_HEADLINES,
    summary=summary_field,
    check_files=check_files_field,
    pairs=pairs_field,
    served=served_by_size,
)
OVERLAY = Kind(
    scenario=OverlayScenario,
    run=OverlayRun,
    simulate=simulate_overlay,
    measure=measure_overlay,
    metrics=OverlayMetrics,
    headlines=OVERLAY_HEADLINES,
    summary=summary_overlay,
    check_files=check_files_overlay,
)
OPPORTUNISTIC = Kind(
    scenario=OpportunisticScenario,
    run=OpportunisticRun,
    simulate=simulate_opportunistic,
    measure=measure_opportunistic,
    metrics=OpportunisticMetrics,
    headlines=OPPORTUNISTIC_HEADLINES,
    summary=summary_opportunistic,
    check_files=check_files_opportunistic,
    pairs=pairs_opportunistic,
    message_stats=write_message_stats,
    presets=PRESETS,
)

AnyKind = Kind[Any, Any, Any]
KINDS: dict[str, AnyKind] = {kind.name: kind for kind in (FIELD, OVERLAY, OPPORTUNISTIC)}


def own_in_file(file: Path, wanted: str | None) -> tuple[Protocol, type[Scenario]]:
    """A protocol of the user's, from a file, and the kind of scenario that it runs on."""
    from serai.own.loading import find_own

    return _own_protocol(find_own(file, wanted, _families()))


def own_installed(name: str) -> tuple[Protocol, type[Scenario]] | None:
    """The same, from an installed package that offers it under this name; None: there is none."""
    from serai.own.loading import find_offered

    own = find_offered(name, _families())
    return None if own is None else _own_protocol(own)


def _families() -> list[Family]:
    from serai.field.kit.family import SENSORS
    from serai.opportunistic.kit.family import ROUTERS

    return [ROUTERS, SENSORS]


def _own_protocol(own: Own) -> tuple[Protocol, type[Scenario]]:
    from serai.field.kit.family import SENSORS
    from serai.own.loading import own_protocol

    return own_protocol(own), FieldScenario if own.family is SENSORS else OpportunisticScenario


def doubts_about(name: str) -> list[str]:
    """What in a protocol of the user's is probably not what was meant, in a sentence each; of others nothing."""
    own = PROTOCOLS[name].own
    if own is None:
        return []
    from serai.own.loading import Own
    from serai.own.spelling import misspelt

    assert isinstance(own, Own)
    return misspelt(own)


def check_own(name: str) -> Iterator[Checked]:
    """Try a protocol of the user's."""
    from serai.field.kit.checks import TRIAL as FIELDS
    from serai.opportunistic.kit.checks import TRIAL as CONTACTS
    from serai.own.checking import check_protocol
    from serai.own.loading import Own

    own = PROTOCOLS[name].own
    assert isinstance(own, Own)
    return check_protocol(own, FIELDS if CATALOGUE.scenario_of(name) is FieldScenario else CONTACTS)


CATALOGUE = Catalogue([kind.scenario for kind in KINDS.values()], own_in_file, own_installed)
PROTOCOLS = CATALOGUE.protocols


def kernels_of(scenario: Scenario) -> str:
    """The name that a scenario's compiled kernels go by: protocols of the user's have none of their own."""
    name: str = scenario.protocol.name
    return "own protocols" if PROTOCOLS[name].own else name


def protocol_label(name: str) -> str:
    """How people write the name of a protocol."""
    return PROTOCOLS[name].label if name in PROTOCOLS else name


def kind_of(scenario: Scenario) -> AnyKind:
    """The kind of network that a scenario describes."""
    return KINDS[scenario.network]


def preset(kind: AnyKind, like: str, protocol: str) -> Mapping[str, Any]:
    """The settings under which a protocol of this kind does what another simulator does."""
    known = [name for one in KINDS.values() for name in one.presets]
    if like not in known:
        raise BadInput(f'like "{like}": {did_you_mean(like, known)}')
    if like not in kind.presets:
        able = " or ".join(one.name for one in KINDS.values() if like in one.presets)
        raise BadInput(f"like {like}: only for networks of kind {able}, and this scenario is of kind {kind.name}")
    return kind.presets[like](protocol)


def kind_of_run(run: Run) -> AnyKind:
    """The kind of network that a run is of; one that was not simulated is of none."""
    for kind in KINDS.values():
        if isinstance(run, kind.run):
            return kind
    raise BadInput(f"{run!r}: it was not simulated; there are its tables (run.tables), but no metrics")
