"""Chapters on runs, those of a comparison or a single one: who pays, what is lost and why, how things live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from serai.field.log import FieldRun
from serai.kinds import kind_of_run
from serai.log.run import Run, SimulatedRun
from serai.opportunistic.log import OpportunisticRun
from serai.overlay.log import OverlayRun
from serai.report.fates import fates, where_lost, why_lost
from serai.report.figures import Picture
from serai.report.maps import energy_map, field_map, lives, loss_map, most_lost
from serai.report.networks import event_way, load_map, most_load, query_way, store_map
from serai.report.section import Section

Drawn = Sequence[tuple[SimulatedRun, str]]
"""Runs, each with the colour of its protocol, as `serai.log.svg` calls it."""

DOTS: Final = "Size and colour of a dot show the amount, by square root and on one scale; a ring marks the largest."
_NO_LOG: Final = "the full log was not kept"
_NO_PLACES: Final = "where the nodes stand is not known"
_NO_LIFE: Final = "no event was wanted by several subscribers and lived its whole life"


def chapters_on(runs: Drawn) -> list[Section]:
    """The chapters on the runs of a comparison."""
    return [losses_of(runs), *costs_of(runs), lives_of(runs)] if runs else []


def where_of(run: Run) -> Picture | None:
    """Where a run took place; None for an overlay with places, whose other maps show it."""
    if isinstance(run, FieldRun):
        return field_map(run)
    if isinstance(run, OverlayRun) and most_load([run]) is not None:
        return None
    caption = "Where nodes stand and move. The colour of a publisher: the share of its events that a subscriber got."
    return Picture("run", run.plot().svg, caption)


def costs_of(runs: Drawn) -> list[Section]:
    """Who carries what the network does."""
    fields = [(run, colour) for run, colour in runs if isinstance(run, FieldRun) and len(run.world.sensor_x)]
    contacts = [run for run, _ in runs if isinstance(run, OpportunisticRun)]
    overlays = [(run, colour) for run, colour in runs if isinstance(run, OverlayRun)]
    if fields:
        most = max(int(run.ledger.event_pj.max(initial=0)) for run, _ in fields)
        said = "What each sensor spent on events. " + DOTS
        maps = [energy_map(run, most, colour) for run, colour in fields]
        return [Section("energy", "Where the energy goes", (said,), pictures=tuple(maps))]
    if contacts:
        return [_chapter("stores", "How full stores are", [store_map(run) for run in contacts], _NO_LOG)]
    if overlays:
        busiest = most_load([run for run, _ in overlays])
        load = [load_map(run, colour, busiest) for run, colour in overlays]
        ways = [way for run, _ in overlays for way in (query_way(run), event_way(run))]
        return [
            _chapter("load", "Who carries the load", load, _NO_PLACES),
            _chapter("ways", "The way of a query and of an event", ways, _NO_PLACES),
        ]
    return []


def losses_of(runs: Drawn) -> Section:
    """What becomes of all that is wanted, and why the rest is lost; in fields also where."""
    title, only = "Where events are lost, and why", [run for run, _ in runs]
    bar, fields = fates(only), [(run, colour) for run, colour in runs if isinstance(run, FieldRun)]
    if bar is None:
        return Section("lost", title, absent=_NO_LOG)
    if all(run.metrics.delivered_pairs == run.metrics.wanted_pairs for run in only):
        return Section("lost", title, absent="none is")
    most = max((most_lost(run) for run, _ in fields), default=0)
    maps = [picture for run, colour in fields if (picture := loss_map(run, most, colour))]
    about = "Lost: pairs of an event born there and a subscriber that wants it. " + DOTS
    said = (*why_lost(only), where_lost(only), about if maps else "")
    return Section("lost", title, tuple(filter(None, said)), pictures=tuple(maps), beside=(bar,))


def lives_of(runs: Drawn) -> Section:
    """How long what is published takes to reach who wants it, shown by a typical one."""
    title, timed = "A typical event's life", [drawn for drawn in runs if kind_of_run(drawn[0]).pairs is not None]
    if not timed:
        return Section("lives", title, absent="this kind of network has no delays")
    noun = "bundle" if isinstance(runs[0][0], OpportunisticRun) else "event"
    return _chapter("lives", title.replace("event", noun), [lives(timed, noun)], _NO_LIFE)


def _chapter(name: str, title: str, pictures: Sequence[Picture | None], missing: str) -> Section:
    there = tuple(picture for picture in pictures if picture)
    return Section(name, title, pictures=there, absent="" if there else missing)
