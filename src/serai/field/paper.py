"""CED and CET: every table, figure and stated trend of their evaluations, and how each is reproduced.

    N. Liu, M. Liu, J. Zhu, H. Gong: A Community-Based Event Delivery Protocol in Publish/Subscribe Systems for
    Delay Tolerant Sensor Networks. Sensors 2009, 9(10), 7580-7594.                                          ("ced")
    J. Zhu, N. Liu, M. Liu, H. Gong: Event transmitting oriented to publish/subscribe systems in delay tolerant
    sensor networks (in Chinese). Journal of Software 2010, 21(8), 1954-1967.                                ("cet")

The tables' numbers are in `PUBLISHED`. Of the figures only what the text says is known here
(and the ticks of CED's Fig. 8): no value is read off a curve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Literal

from serai.papers.claims import Claim, Order, Trend
from serai.papers.exhibits import Ablation, Axis, Exhibit, Paper, Published, Setup

# --- What is printed

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

_PAUSES_COST: Final = (
    "a subscriber is heard while it pauses, and all that its community sends goes through the sensors around it; with"
    " protocol.silent_while_pausing=true the lifetime is within 10 %, but the trends with speed are not the paper's"
)
IF_MISSED: Final[dict[tuple[str, str], str]] = {
    ("dg", "lifetime_days"): (
        "the published 6.04 d need a busiest sensor with about twice the mean load;"
        " here it carries three and a half times as much"
    ),
    ("ced", "lifetime_days"): _PAUSES_COST,
    ("cet", "lifetime_days"): _PAUSES_COST,
}
"""The likely reason, where a published number is missed; whether it is, `serai.papers.verdicts` says."""


def published(protocol: str, metric: str) -> Published | None:
    """The printed number of a protocol's metric, if there is one."""
    return next((row for row in PUBLISHED if (row.protocol, row.metric) == (protocol, metric)), None)


# --- Tables and figures

PAPERS: Final = {
    "ced": Paper("ced", "Liu et al., Sensors 2009, 9(10), 7580-7594", 1000),
    "cet": Paper("cet", "Zhu et al., Journal of Software 2010, 21(8), 1954-1967 (in Chinese)", 100),
}


_ALPHA: Final = Axis(
    "protocol.alpha",
    "α",
    "",
    (1, 2, 4, 6, 8, 10, 15, 20),
    20,
    "our choice, the text gives none",
)
_SPEED: Final = Axis(
    "subscribers.speed_max", "Vmax", "m/s", (1, 3, 5, 7, 9, 11), 5, "Vmax from 1 to 11 by CET 4.3, the steps are ours"
)
_SENSORS: Final = Axis("sensors.count", "N", "", (40, 60, 80, 100, 120, 140), 100, "the ticks of CED's Fig. 8")
_CELLS: Final = Axis(
    "field.cells", "cells a side", "", (10, 15, 20, 25, 30), 15, "10 x 10 to 30 x 30 by CET 4.5, the steps are ours"
)

_RATIO: Final = "delivery_ratio"
_COPIES: Final = "copies_per_event"
_DELAY: Final = "mean_delay_s"
_LIFETIME: Final = "lifetime_days"


_PANELS: Final = (_RATIO, _COPIES, _DELAY)

EXHIBITS: Final[dict[str, Exhibit]] = {
    exhibit.name: exhibit
    for exhibit in (
        Exhibit(
            "ced-table-2", "ced", "Table 2", 7589, "5.2", "results with default parameters", ("ced", "dg"), _PANELS
        ),
        Exhibit("ced-fig-6", "ced", "Fig. 6", 7590, "5.2", "delivery ratio against α", ("ced",), (_RATIO,), _ALPHA),
        Exhibit("ced-fig-7", "ced", "Fig. 7", 7590, "5.3", "the subscribers' speed", ("ced", "dg"), _PANELS, _SPEED),
        Exhibit("ced-fig-8", "ced", "Fig. 8", 7591, "5.4", "the sensors' density", ("ced", "dg"), _PANELS, _SENSORS),
        Exhibit("ced-table-3", "ced", "Table 3", 7592, "5.5", "network lifetime", ("ced", "dg"), (_LIFETIME, _RATIO)),
        Exhibit(
            "cet-table-2", "cet", "Table 2", 1962, "4.2", "results with default parameters", ("cet", "dg"), _PANELS
        ),
        Exhibit("cet-fig-7", "cet", "Fig. 7", 1963, "4.2", "delivery ratio against α", ("cet",), (_RATIO,), _ALPHA),
        Exhibit("cet-fig-8", "cet", "Fig. 8", 1963, "4.3", "the subscribers' speed", ("cet", "dg"), _PANELS, _SPEED),
        Exhibit("cet-fig-9", "cet", "Fig. 9", 1964, "4.4", "the sensors' density", ("cet", "dg"), _PANELS, _SENSORS),
        Exhibit("cet-fig-10", "cet", "Fig. 10", 1965, "4.5", "the range of radio", ("cet", "dg"), _PANELS, _CELLS),
        Exhibit("cet-table-3", "cet", "Table 3", 1965, "4.6", "network lifetime", ("cet", "dg"), (_LIFETIME, _RATIO)),
    )
}

LITTLE: Final = 0.10
"""What "slightly" and "no significant impact" are taken to mean: within 10 % of the curve's mean. Our reading."""


def _speed_claims(exhibit: str, section: str, protocol: str) -> tuple[Claim, ...]:
    """What both papers say, in the same words, about the subscribers' speed."""
    name = protocol.upper()
    return (
        Order(exhibit, section, f"{name} delivers more than DG at every speed", _RATIO, protocol, "dg"),
        Trend(exhibit, section, f"the ratio of {name} rises with speed", protocol, _RATIO, "rises"),
        Trend(exhibit, section, "the ratio of DG rises with speed", "dg", _RATIO, "rises"),
        Trend(exhibit, section, f"copies of {name} rise with speed", protocol, _COPIES, "rises"),
        Trend(
            exhibit,
            section,
            "speed has little impact on the copies of DG",
            "dg",
            _COPIES,
            at_most=LITTLE,
            if_not=_MORE_PAUSES,
        ),
        Trend(exhibit, section, f"the delay of {name} falls with speed", protocol, _DELAY, "falls"),
        Trend(exhibit, section, "the delay of DG falls with speed", "dg", _DELAY, "falls"),
    )


def _range_claim(
    words: str, protocol: str, metric: str, direction: Literal["rises", "falls"], if_not: str = ""
) -> Claim:
    """What CET says about longer range: its figure has cells a side instead, of which there are fewer then."""
    said = f"with longer range (fewer cells) {words}"
    return Trend("cet-fig-10", "4.5", said, protocol, metric, direction, if_not=if_not, backwards=True)


def _default_claims(paper: str, section: str, protocol: str) -> tuple[Claim, ...]:
    """What both papers say about their Table 2."""
    exhibit, name = f"{paper}-table-2", protocol.upper()
    return (
        Order(exhibit, section, f"{name} delivers much more than DG", _RATIO, protocol, "dg"),
        Order(exhibit, section, f"DG's delay is longer than that of {name}", _DELAY, "dg", protocol),
        Order(exhibit, section, f"{name} makes far fewer copies than DG", _COPIES, "dg", protocol),
    )


_PRINTED_FALL: Final = (
    'as printed; "in contrast" stands before it and CET 4.4 says that it rises, so probably "increases" was meant'
)

_SHARED_BUDGET: Final = (
    "more sensors in range share the 20 events a second that a subscriber receives, and DG sends all of them again"
    " every second"
)
_MORE_PAUSES: Final = (
    "DG sends nothing to a pausing subscriber here, and a faster one spends more of its time pausing: its legs are"
    " shorter, its pauses are not; with protocol.silent_while_pausing=false there is little impact"
)
_LARGER_COMMUNITIES: Final = "more sensors grow together into fewer and larger communities, which are met sooner"
_STRANDED: Final = (
    "up to 80 sensors communities grow, and ever more of what is sent through them comes too late for a subscriber that"
    " has walked on (it is stranded); with more they grow together, and it is hardly ever out of reach"
)
_FEWER_HOPS: Final = "the longer the range, the fewer the hops on which an event is copied"

CLAIMS: Final[tuple[Claim, ...]] = (
    *_default_claims("ced", "5.2", "ced"),
    Trend("ced-fig-6", "5.2", "the ratio of CED rises with α", "ced", _RATIO, "rises"),
    *_speed_claims("ced-fig-7", "5.3", "ced"),
    Trend(
        "ced-fig-8",
        "5.4",
        "the ratio of CED varies only slightly with N",
        "ced",
        _RATIO,
        at_most=LITTLE,
        if_not=_LARGER_COMMUNITIES,
    ),
    Trend(
        "ced-fig-8",
        "5.4",
        "the ratio of DG varies only slightly with N",
        "dg",
        _RATIO,
        at_most=LITTLE,
        if_not=_SHARED_BUDGET,
    ),
    Order("ced-fig-8", "5.4", "CED delivers more than DG at every N", _RATIO, "ced", "dg"),
    Trend("ced-fig-8", "5.4", "copies of CED rise with N", "ced", _COPIES, "rises"),
    Trend("ced-fig-8", "5.4", "copies of DG fall (sharply) with N", "dg", _COPIES, "falls"),
    Trend("ced-fig-8", "5.4", "the delay of CED falls with N", "ced", _DELAY, "falls"),
    Trend("ced-fig-8", "5.4", "the delay of DG falls with N", "dg", _DELAY, "falls", note=_PRINTED_FALL),
    Order("ced-table-3", "5.5", "DG lives longer than CED", _LIFETIME, "dg", "ced"),
    Order(
        "ced-table-3",
        "5.5",
        "more events are transmitted in CED than in DG",
        "transmissions_per_event",
        "ced",
        "dg",
        note="the reason given for the lifetimes; Table 2 of the same paper has 4.2 copies for CED and 75.9 for DG",
    ),
    *_default_claims("cet", "4.2", "cet"),
    Trend("cet-fig-7", "4.2", "the ratio of CET rises with α", "cet", _RATIO, "rises"),
    *_speed_claims("cet-fig-8", "4.3", "cet"),
    Trend(
        "cet-fig-9",
        "4.4",
        "the ratio of CET rises very slightly with N",
        "cet",
        _RATIO,
        "rises",
        LITTLE,
        if_not=_STRANDED,
    ),
    Trend(
        "cet-fig-9",
        "4.4",
        "the ratio of DG rises very slightly with N",
        "dg",
        _RATIO,
        "rises",
        LITTLE,
        if_not=_SHARED_BUDGET,
    ),
    Order("cet-fig-9", "4.4", "CET delivers more than DG at every N", _RATIO, "cet", "dg"),
    Trend("cet-fig-9", "4.4", "copies of CET rise with N", "cet", _COPIES, "rises"),
    Trend("cet-fig-9", "4.4", "copies of DG fall with N", "dg", _COPIES, "falls"),
    Trend("cet-fig-9", "4.4", "the delay of CET falls with N", "cet", _DELAY, "falls"),
    Trend("cet-fig-9", "4.4", "the delay of DG rises with N", "dg", _DELAY, "rises"),
    _range_claim("the ratio of CET rises", "cet", _RATIO, "rises"),
    _range_claim("the ratio of DG rises", "dg", _RATIO, "rises", _SHARED_BUDGET),
    _range_claim("copies of CET rise", "cet", _COPIES, "rises", _FEWER_HOPS),
    _range_claim("copies of DG rise", "dg", _COPIES, "rises"),
    Order("cet-fig-10", "4.5", "CET makes fewer copies than DG at every range", _COPIES, "dg", "cet"),
    _range_claim("the delay of CET falls", "cet", _DELAY, "falls"),
    _range_claim("the delay of DG falls", "dg", _DELAY, "falls", _SHARED_BUDGET),
    Order("cet-fig-10", "4.5", "CET's delay is shorter than DG's at every range", _DELAY, "dg", "cet"),
    Order("cet-table-3", "4.6", "DG lives longer than CET", _LIFETIME, "dg", "cet"),
    Order("cet-table-3", "4.6", "sensors spend more energy under CET than under DG", "energy_j", "cet", "dg"),
)


CALIBRATED: Final = "calibrated"
COMMON: Final = "common"
SILENT: Final = "silent"
RULE_SETS: Final = {
    CALIBRATED: "each protocol in the set-up of its own paper: the built-in scenario of its name",
    COMMON: "all three in one field under one set of rules: the built-in scenario `field`",
    SILENT: "as calibrated, but nothing is sent to a pausing subscriber in CED and CET either, as in DG",
}
"""Calibrated and common differ for CET alone: its paper has integer attributes, `field` has CED's real ones.

The third is run on request: of all open points, whether a pausing subscriber is heard does most to the trends.
"""


def default_setup(protocol: str, rules: str = CALIBRATED) -> Setup:
    """The set-up at the papers' default parameters."""
    changed = (("protocol.silent_while_pausing", "true"),) if rules == SILENT and protocol in _COMMUNITY else ()
    return Setup("field" if rules == COMMON else protocol, protocol, changed)


def setup(exhibit: Exhibit, protocol: str, at: float | None, rules: str) -> Setup:
    """What has to be run for one point of an exhibit; at the axis' default that is the default set-up itself."""
    axis, default = exhibit.axis, default_setup(protocol, rules)
    if axis is None or at in (None, axis.default):
        return default
    return replace(default, settings=(*default.settings, (axis.key, axis.written(at))))


def shows(exhibit: Exhibit, rules: str) -> bool:
    """Whether an exhibit is run under a rule set: the others show it where they say something else."""
    axis = exhibit.axis
    return rules == CALIBRATED or axis is None or (rules == SILENT and axis is _SPEED)


def setups(papers: tuple[str, ...], rule_sets: tuple[str, ...] = (CALIBRATED, COMMON)) -> list[Setup]:
    """Everything that has to be run for these papers under these rule sets, each set-up once."""
    shown = [exhibit for exhibit in EXHIBITS.values() if exhibit.paper in papers]
    return list(dict.fromkeys(found for exhibit in shown for found in _setups(exhibit, rule_sets)))


def _setups(exhibit: Exhibit, rule_sets: tuple[str, ...]) -> Iterator[Setup]:
    for rules in filter(lambda rules: shows(exhibit, rules), rule_sets):
        for protocol in exhibit.protocols:
            for at in exhibit.axis.values if exhibit.axis else (None,):
                yield setup(exhibit, protocol, at, rules)


_ALL: Final = ("ced", "cet", "dg")
_COMMUNITY: Final = ("ced", "cet")

ABLATIONS: Final[tuple[Ablation, ...]] = (
    Ablation((("protocol.silent_while_pausing", "true"),), _COMMUNITY),
    Ablation((("protocol.silent_while_pausing", "false"),), ("dg",)),
    Ablation((("protocol.match", "sensor"),), _ALL),
    Ablation((("protocol.resend", "each-contact"),), _ALL),
    Ablation((("protocol.zone", "announced"),), _COMMUNITY),
    Ablation((("protocol.zone", "in-range"),), _COMMUNITY),
    Ablation((("protocol.zone", "pruned"),), _COMMUNITY),
    Ablation((("protocol.relays", "open"),), _COMMUNITY),
    Ablation((("protocol.stranded", "kept"),), _COMMUNITY),
    Ablation((("protocol.hops", "one"),), _COMMUNITY),
    Ablation((("protocol.floods", "pruned"),), _COMMUNITY),
    Ablation((("protocol.return_count", "reset"),), ("cet",)),
    Ablation((("protocol.return_memory", "returner"),), ("cet",)),
    Ablation((("protocol.return_to_origin", "true"),), ("cet",)),
    Ablation((("protocol.resend", "once"),), ("dg",)),
    Ablation((("protocol.reach", "same-cell"),), ("dg",)),
    Ablation((("protocol.budget", "link"),), ("dg",)),
    Ablation(
        (
            ("protocol.reach", "same-cell"),
            ("protocol.budget", "link"),
        ),
        ("dg",),
    ),
    Ablation((("radio.receive_costs", "false"),), _ALL),
    Ablation((("radio.control_costs", "true"),), _ALL),
    Ablation((("subscribers.speed_min", "0.25 m/s"),), _ALL),
)
"""The open points of `docs/field/protocols.md`, one by one, with every value that is not the default."""


def ablation_setup(ablation: Ablation, protocol: str) -> Setup:
    """What has to be run to see what a reading does to the published numbers of a protocol."""
    return Setup(protocol, protocol, ablation.settings)
