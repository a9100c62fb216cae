"""How a paper's evaluation is written down as data: what is printed where, and what has to be run for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """One printed number: `metric` is the name it has here, `source` says where it stands."""

    protocol: str
    metric: str
    value: float
    unit: str
    source: str

    @property
    def as_metric(self) -> float:
        """The number in the metric's own unit: ratios are fractions there, percentages in print."""
        return self.value / 100 if self.unit == "%" else self.value

    @property
    def printed(self) -> str:
        """The number with the decimals that it has in print: two for days, one for the others."""
        return f"{self.value:.{2 if self.unit == 'd' else 1}f}"


@dataclass(frozen=True)
class Paper:
    """A paper: how it is cited, and over how many runs it averaged."""

    name: str
    cited: str
    runs: int


@dataclass(frozen=True)
class Axis:
    """The setting that a figure varies: its values in `unit`, and where these values come from."""

    key: str
    label: str
    unit: str
    values: tuple[float, ...]
    default: float
    chosen: str

    def written(self, value: float) -> str:
        """The value as a scenario file writes it."""
        return f"{value:g} {self.unit}" if self.unit else f"{value:g}"


@dataclass(frozen=True)
class Exhibit:
    """A table or figure: where it stands, what it varies (None: nothing), whom and what it shows."""

    name: str
    paper: str
    label: str
    page: int
    section: str
    title: str
    protocols: tuple[str, ...]
    metrics: tuple[str, ...]
    axis: Axis | None = None


@dataclass(frozen=True)
class Setup:
    """What one run of a reproduction needs but for the seed: a built-in scenario, a protocol, changed settings."""

    scenario: str
    protocol: str
    settings: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Ablation:
    """Another reading of an open point: the settings that choose it, and the protocols that have them."""

    settings: tuple[tuple[str, str], ...]
    protocols: tuple[str, ...]

    @property
    def words(self) -> str:
        """The settings as they are written on the command line."""
        return " ".join(f"{key}={value}" for key, value in self.settings)
