"""From a run folder to its page: the full log is read, or simulated again and checked against the folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from serai.core.errors import BadInput
from serai.field.log import FieldRun
from serai.kinds import protocol_label
from serai.lab import read_run, simulate
from serai.log.folder import package_versions, read_description
from serai.log.run import SimulatedRun
from serai.replay.contacts import contacts_sheet, contacts_streams
from serai.replay.field import field_sheet, field_streams
from serai.replay.overlay import overlay_sheet
from serai.replay.page import check_file, render, write_page
from serai.replay.sheet import Sheet, Streams
from serai.replay.thin import Wish, cut_to_fit, fewer_events, in_words, rest_of, thin

PAGE: Final = "replay.html"
MOST_BYTES: Final = 25_000_000
"""Up to this nothing is left out of a page; browsers open it within seconds."""
_LEAST_ROW_BYTES: Final = 1.3  # no page has ever taken less for a transfer

_SHEETS: Final[dict[str, Callable[..., Sheet]]] = {
    "field": field_sheet,
    "opportunistic": contacts_sheet,
    "overlay": overlay_sheet,
}
_STREAMS: Final[dict[str, Callable[[Any], Streams]]] = {"field": field_streams, "opportunistic": contacts_streams}


class Replay(NamedTuple):
    """A page that was written."""

    page: Path
    bytes: int
    simulated_again: bool
    left_out: str = ""
    """What the page does not show, in words."""


def write_replay(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    begin_s: float | None = None,
    end_s: float | None = None,
    events: Sequence[int] = (),
) -> Replay:
    """Write the page that plays the run of a folder, by default into the folder.

    It opens at `begin_s`, with the first of `events` chosen. Of a run too large for a page, everything between the two
    times is kept, and the whole life of these events; what is left out the answer says, and the page.
    """
    run = read_run(folder)
    if not isinstance(run, SimulatedRun):
        raise BadInput(
            f"{folder}: real nodes logged this without a scenario; serai node log makes folders that have one"
        )
    wish = Wish(begin_s, end_s, tuple(sorted(set(events))))
    _check(run, wish, str(folder))
    file = Path(folder) / PAGE if out is None else Path(out)
    check_file(file)
    whole = run if run.full_log else again_with_full_log(run, str(folder))
    page, left_out = _fitting(whole, wish, _recorded(Path(folder)))
    write_page(page, file)
    return Replay(file, len(page.encode()), whole is not run, left_out)


def page_of(run: SimulatedRun, source: str = "run", wish: Wish | None = None) -> tuple[str, bool]:
    """The page of a run, nothing left out, and whether it had to be simulated again for it; it opens as wished."""
    whole = run if run.full_log else again_with_full_log(run, source)
    return render(run.kind, _with_facts(whole, _SHEETS[run.kind](whole), _opening(wish or Wish()))), whole is not run


def _check(run: SimulatedRun, wish: Wish, source: str) -> None:
    """Refuse times and events that the run does not have."""
    times = [time_s for time_s in (wish.begin_s, wish.end_s) if time_s is not None]
    if times and run.kind not in _STREAMS:
        raise BadInput(f"{source}: an overlay has no clock, its page plays hops; leave --from and --to out")
    end_s = getattr(run.scenario, "duration_s", 0.0)
    if any(not 0 <= time_s <= end_s for time_s in times):
        raise BadInput(f"{source}: the run lasts from 0 to {end_s:.0f} s; choose --from and --to within")
    if len(times) == 2 and times[0] >= times[1]:
        raise BadInput(f"{source}: --from {times[0]:.0f} s is not before --to {times[1]:.0f} s")
    count = len(run.tables["events"])
    if absent := [event for event in wish.events if not 0 <= event < count]:
        there = f"its events are 0 to {count - 1}" if count else "the run has no events"
        raise BadInput(f"{source}: no event {', '.join(map(str, absent))}; {there}")


def _recorded(folder: Path) -> dict[str, Any]:
    """When real nodes logged a run, and who of them kept no log; nothing of a simulation."""
    said = read_description(folder)
    if said.get("origin") != "field":
        return {}
    return {"recorded": said.get("begin", ""), "silent": said.get("nodes_without_log", [])}


def _fitting(run: SimulatedRun, wish: Wish, facts: Mapping[str, Any] | None = None) -> tuple[str, str]:
    """The page of a run with a full log, and what had to be left out of it to keep it small."""
    kind, opening = run.kind, _opening(wish) | dict(facts or {})
    if kind not in _STREAMS:
        return render(kind, _with_facts(run, _SHEETS[kind](run), opening)), ""
    streams = _STREAMS[kind](run)
    if len(streams.row_s) * _LEAST_ROW_BYTES <= MOST_BYTES:
        page = render(kind, _with_facts(run, _SHEETS[kind](run), opening))
        if len(page) <= MOST_BYTES:
            return page, ""
    cut, rest = cut_to_fit(streams, wish, MOST_BYTES), rest_of(streams)
    while True:
        sheet = thin(partial(_SHEETS[kind], run), streams, cut, rest)
        page = render(kind, _with_facts(run, sheet, opening))
        if len(page) <= MOST_BYTES or cut.one_in >= max(streams.events, 2):
            return page, in_words(sheet.head)
        cut = fewer_events(cut, len(page), MOST_BYTES)


def _opening(wish: Wish) -> dict[str, Any]:
    """Where the page opens."""
    opening: dict[str, Any] = {} if wish.begin_s is None else {"opening": wish.begin_s}
    return opening | ({"chosen": wish.events[0]} if wish.events else {})


def again_with_full_log(run: SimulatedRun, source: str) -> SimulatedRun:
    """The same run with its full log; refused if this version of serai gives another one."""
    options = {"full_log": True} | ({"until_death": True} if _died(run) else {})
    whole = simulate(run.scenario, None, run.seed, **options)
    different = [
        name for name, table in run.tables.items() if not whole.tables[name].equals(table, check_metadata=False)
    ]
    if different or whole.counts() != run.counts():
        told = _difference(run.versions, package_versions())
        raise BadInput(
            f"{source}: kept without the full log, and simulated again it is not the same run"
            f" ({', '.join(different) or 'its counts'} differ; {told}); simulate it with --full-log"
        )
    return whole


def _died(run: SimulatedRun) -> bool:
    return isinstance(run, FieldRun) and run.ledger.ended_s is not None


def _difference(one: dict[str, str], other: dict[str, str]) -> str:
    changed = [
        f"{name} was {version}, is {other.get(name)}" for name, version in one.items() if other.get(name) != version
    ]
    return ", ".join(changed) or "the versions are the same"


def _with_facts(run: SimulatedRun, sheet: Sheet, opening: Mapping[str, Any] | None = None) -> Sheet:
    common: dict[str, Any] = {
        "title": run.scenario.title or run.scenario.name,
        "protocol": protocol_label(run.protocol),
        "seed": run.seed,
        "attributes": list(run.attributes),
        "texts": {name: list(texts) for name, texts in run.texts.items()},
    }
    return sheet._replace(head=common | sheet.head | dict(opening or {}))
