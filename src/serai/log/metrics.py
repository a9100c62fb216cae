"""Metrics: how one is declared, and what those of all kinds of network share.

A metric is a typed field of the class of its kind, and the field is its only declaration:

    delivery_ratio: float = metric("fraction", better=+1, says="Share of the wanted pairs that were delivered.")

The columns of tables, the documentation's check, reports, the terminal, `--json` and notebooks follow from it. Whole
numbers always exist; a float that a run does not have (the delay when nothing was delivered) is NaN, and None in JSON.
"""

from __future__ import annotations

import dataclasses
import html
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

# pyarrow takes longer to import than a run to measure.
if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]
Value = str | int | float
Better = Literal[-1, 0, 1]
Chapter = Literal["", "cost", "drops", "fairness"]


class Metric(NamedTuple):
    """What is known of a metric, whatever its value."""

    name: str
    type: type
    unit: str
    better: Better
    """1: more is better; -1: less is; 0: neither can be said."""
    meaning: str
    label: str
    """A short name for headings."""
    chapter: Chapter
    """The chapter of the report that shows it, if it is one of several that do not choose by name."""
    compare_by: str = ""
    """The metric to compare protocols by, where this one is not counted alike in all of them."""
    full_log: bool = False
    """Whether only a full log tells it."""


def metric(
    unit: str = "",
    *,
    better: Better = 0,
    says: str,
    label: str = "",
    chapter: Chapter = "",
    compare_by: str = "",
    full_log: bool = False,
) -> Any:
    """Declare a metric as a field of a class of metrics."""
    told = {"unit": unit, "better": better, "meaning": says, "label": label, "chapter": chapter}
    return dataclasses.field(metadata=told | {"compare_by": compare_by, "full_log": full_log})


@dataclass(frozen=True, kw_only=True, repr=False)
class Metrics:
    """The metrics of one run that all kinds of network have."""

    protocol: str = metric(says="The protocol's name.")
    seed: int = metric(says="The seed of the run.")
    delivery_ratio: float = metric(
        "fraction", better=+1, says="Share of the wanted pairs that were delivered.", label="delivered"
    )
    wanted_pairs: int = metric(says="Pairs of an event and a subscriber that wants it.")
    delivered_pairs: int = metric(better=+1, says="Wanted pairs whose subscriber received the event.")
    lost_never_met: float = metric(
        better=-1, full_log=True, says="Lost pairs whose subscriber never met a node that held the event."
    )
    lost_not_sent: float = metric(
        better=-1, full_log=True, says="Lost pairs whose subscriber met a node that held the event but was not sent it."
    )
    lost_stranded: float = metric(
        better=-1, full_log=True, says="Lost pairs for which a copy was sent but never arrived."
    )
    lost_expired: float = metric(
        better=-1, full_log=True, says="Lost pairs for which a copy was sent but expired on the way."
    )
    lost_full: float = metric(better=-1, full_log=True, says="Lost pairs for which a queue or store had no room.")
    lost_dead: float = metric(better=-1, full_log=True, says="Lost pairs whose last copy was in a sensor that died.")

    def as_dict(self) -> dict[str, Value | None]:
        """Every metric by name, ready for JSON: None where there is no finite number."""
        return {name: finite(getattr(self, name)) for name in (field.name for field in dataclasses.fields(self))}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.protocol}, seed {self.seed}: {self.delivery_ratio:.1%} delivered)"

    def _repr_html_(self) -> str:
        """The metrics that exist, as a table for notebooks; hovering over a name shows its definition."""
        known = declared(type(self))
        rows = [_html_row(known[name], value) for name, value in self.as_dict().items() if value is not None]
        return f"<table>{''.join(rows)}</table>"


@dataclass(frozen=True, kw_only=True, repr=False)
class TimedMetrics(Metrics):
    """The metrics of a run in which time passes between publication and delivery."""

    mean_delay_s: float = metric(
        "s", better=-1, says="Mean time from publication to delivery, over the delivered pairs.", label="delay"
    )
    median_delay_s: float = metric("s", better=-1, says="Median delay of the delivered pairs.")
    p95_delay_s: float = metric("s", better=-1, says="Delay that 95 % of the delivered pairs do not exceed.")


class Served(NamedTuple):
    """What became of some events: how many there were, and who wanted and got them."""

    events: int
    wanted_pairs: int
    delivered_pairs: int


def declared(metrics: type[Metrics]) -> Mapping[str, Metric]:
    """Every metric of a class, by name and in order."""
    types = get_type_hints(metrics)
    found = (Metric(field.name, types[field.name], **field.metadata) for field in dataclasses.fields(metrics))
    return {one.name: one for one in found}


def arrow_schema(metrics: type[Metrics]) -> pa.Schema:
    """A row of the table of many runs: a column for each metric."""
    import pyarrow as pa

    types = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    return pa.schema(
        [pa.field(one.name, types[one.type], nullable=one.type is float) for one in declared(metrics).values()]
    )


def _html_row(one: Metric, value: Value) -> str:
    number = f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))
    return f'<tr><th title="{html.escape(one.meaning)}">{one.name}</th><td>{number}</td><td>{one.unit}</td></tr>'


# --- What measuring shares


def finite(value: Value) -> Value | None:
    """The value, or None for NaN and infinity, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def ratio(part: float, whole: float) -> float:
    """A part of a whole as a plain number, whatever came in; NaN where there is no whole."""
    return float(part) / float(whole) if whole else math.nan


def mean(values: NDArray[Any]) -> float:
    """The mean as a plain number; NaN of nothing."""
    return float(values.mean()) if len(values) else math.nan


def jain(shares: Floats) -> float:
    """Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all shares are equal, 1/n if one has it all."""
    return ratio(shares.sum() ** 2, len(shares) * np.square(shares).sum())


def delay_metrics(delays_s: Floats) -> dict[str, Any]:
    """The metrics of `TimedMetrics`."""
    if not len(delays_s):
        return dict.fromkeys(("mean_delay_s", "median_delay_s", "p95_delay_s"), math.nan)
    median, p95 = np.quantile(delays_s, (0.5, 0.95), method="linear")
    return {"mean_delay_s": float(delays_s.mean()), "median_delay_s": float(median), "p95_delay_s": float(p95)}
