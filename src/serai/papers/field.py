"""What the papers report at their default parameters, as data, beside the metric that measures it here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


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


METRICS: Final = ("delivery_ratio", "mean_delay_s", "copies_per_event", "lifetime_days")
"""The metrics that the papers print for every protocol."""

_CED: Final = "Liu et al., Sensors 2009, Table"
_CET: Final = "Zhu et al., Journal of Software 2010, Table"

PUBLISHED: Final[tuple[Published, ...]] = (
    Published("ced", "delivery_ratio", 86.5, "%", f"{_CED} 2"),
    Published("ced", "copies_per_event", 4.2, "", f"{_CED} 2"),
    Published("ced", "mean_delay_s", 230.6, "s", f"{_CED} 2"),
    Published("ced", "lifetime_days", 3.57, "d", f"{_CED} 3"),
    Published("cet", "delivery_ratio", 91.0, "%", f"{_CET} 2"),
    Published("cet", "copies_per_event", 5.5, "", f"{_CET} 2"),
    Published("cet", "mean_delay_s", 193.8, "s", f"{_CET} 2"),
    Published("cet", "lifetime_days", 2.57, "d", f"{_CET} 3"),
    # Both papers print the same numbers for DG.
    Published("dg", "delivery_ratio", 47.0, "%", f"{_CED} 2"),
    Published("dg", "copies_per_event", 75.9, "", f"{_CED} 2"),
    Published("dg", "mean_delay_s", 615.5, "s", f"{_CED} 2"),
    Published("dg", "lifetime_days", 6.04, "d", f"{_CED} 3"),
)

KNOWN_MISSES: Final[dict[tuple[str, str], str]] = {
    ("dg", "lifetime_days"): (
        "DG's published lifetime of 6.04 d needs a busiest sensor with about twice the mean load;"
        " here it carries three and a half times as much"
    ),
    ("cet", "mean_delay_s"): (
        "CET's published delay: a pausing subscriber is silent here, in all three protocols alike; with"
        " protocol.silent_while_pausing=false the delay fits, but the lifetime does not"
    ),
}
"""Published numbers that this simulation does not reach, and why: shown wherever the two meet."""


def published(protocol: str, metric: str) -> Published | None:
    """The printed number of a protocol's metric, if there is one."""
    return next((row for row in PUBLISHED if (row.protocol, row.metric) == (protocol, metric)), None)
