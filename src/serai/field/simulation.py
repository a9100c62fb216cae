"""One run in a field: scenario and seed -> world -> protocol -> ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.energy import Radio, receive_pj
from serai.core.errors import BadInput
from serai.core.streams import BREAKDOWNS, PLACEMENT, order_key, stream
from serai.field.asking import ask_by_file, draw_interests, with_wishes
from serai.field.births import draw_events
from serai.field.engine.state import DROPS, LOOKS, MESSAGES, NONE, Field, Limits
from serai.field.equipment import equip
from serai.field.lifetime import SteadyPart, lasting_s, steady_part
from serai.field.log import (
    Control,
    Drops,
    FieldRun,
    FullLog,
    Heads,
    Ledger,
    Naps,
    Sessions,
    Spent,
    Transfers,
    Watched,
)
from serai.field.movement import Places, move, origin_in
from serai.field.protocols import PROTOCOLS
from serai.field.sections import FieldScenario
from serai.field.serai import MESSAGES as SERAI_MESSAGES
from serai.field.world import People, World, who_hears_whom
from serai.recorded.content import Content, names_in
from serai.recorded.readings import read_readings
from serai.recorded.wishes import texts_of
from serai.world.equipment import Own
from serai.world.grid import Floats, Grid, Numbers, place_grid, place_uniform
from serai.world.positions import Listed, read_sensors

_LONGER = 1.5  # a simulation until the first death that did not see it goes on this much longer
_LONGEST, _LONGEST_S = 6.0, 3e8  # where sensors harvest nobody may ever die: up to so many times what was expected


def simulate_field(
    scenario: FieldScenario, seed: int, *, full_log: bool = False, until_death: bool = False
) -> FieldRun:
    """Run a field protocol for the scenario's duration, or until the first sensor's battery is empty."""
    if until_death:
        return simulate_until_death(scenario, seed, full_log)
    world = build_world(scenario, seed)
    ledger, full = run_protocol(world, scenario, order_key(seed), full_log)
    return FieldRun(scenario, scenario.protocol.name, seed, world, ledger, full)


def simulate_until_death(scenario: FieldScenario, seed: int, full_log: bool) -> FieldRun:
    """Run a scenario for as long as it takes until the first sensor's battery is empty."""
    if scenario.events.file is not None:
        raise BadInput("until death: the events of a file end with it; leave out events.file, and they are drawn")
    world = build_world(scenario, seed)
    ledger, _ = run_protocol(world, scenario, order_key(seed), False)
    spent = ledger.spent_pj(scenario.radio.control_costs)
    if not spent.any() and not (ledger.died != NONE).any():
        raise BadInput("until death: no sensor spends energy in this scenario, so none will ever die")
    guess = float(lasting_s(world, np.maximum(spent, 1) / scenario.duration_s).min())
    longest = math.inf if world.harvest is None else min(_LONGEST_S, _LONGEST * guess)
    while guess < longest:
        longer = scenario.model_copy(update={"duration_s": math.ceil(_LONGER * guess)})
        world = build_world(longer, seed)
        ledger, full = run_protocol(world, longer, order_key(seed), full_log, until_death=True)
        if ledger.ended_s is not None:
            return FieldRun(longer, scenario.protocol.name, seed, world, ledger, full)
        guess *= _LONGER
    raise BadInput("until death: with what they harvest no sensor is seen to die")


# ---- the world


def build_world(scenario: FieldScenario, seed: int) -> World:
    """The world of a scenario under a seed: who stands and walks where, what happens, who wants to know."""
    shape = scenario.field
    grid = Grid(shape.width_m, shape.height_m, shape.columns, shape.rows)
    names, x, y, own = place_sensors(scenario, grid, seed)
    has = equip(scenario, own)
    relays = scenario.sensors.relays or ()
    tracks, people = move(scenario, seed, Places(tuple(names), x, y))
    happens = what_happens(scenario, names[: len(x) - len(relays)], has.interval_s, seed)
    wanted = who_wants_it(scenario, people, happens, seed)
    return World(
        grid=grid,
        sensor_names=tuple(names),
        sensor_x=x,
        sensor_y=y,
        battery_j=has.battery_j,
        tracks=tracks,
        event_sensor=happens.sensor,
        event_time_s=happens.time_s,
        attribute_names=happens.content.names,
        texts=tuple((name, tuple(texts)) for name, texts in happens.content.texts.items()),
        **wanted,
        failing=draw_failing(scenario, len(x), seed),
        queue=has.queue,
        idle_w=has.idle_w,
        harvest=has.harvest,
        **who_hears_whom(grid, (x, y), has.ranges, tracks, scenario.duration_s, people.turning_m),
    )


class Happening(NamedTuple):
    """The events of a run, and the date of its time 0, if anybody says it."""

    sensor: Numbers
    time_s: Floats
    values: Floats
    content: Content
    begin_s: float | None


def what_happens(scenario: FieldScenario, names: Sequence[str], interval_s: Floats, seed: int) -> Happening:
    """What sensors measure, as a file says or drawn; nothing happens at the relays, the last of the nodes."""
    events = scenario.events
    if events.file is not None:
        found = read_readings(events, names, scenario.begin, scenario.duration_s, names_asked(scenario))
        begin_s = found.begin_s if found.dated else scenario.begin
        return Happening(found.sensor, found.time_s, found.values, found.content, begin_s)
    busy_s = scenario.duration_s - events.quiet_s
    born_at, born_s, values = draw_events(interval_s, busy_s, events.attributes, seed)
    return Happening(born_at, born_s, values, Content.of(events.attributes), scenario.begin)


def who_wants_it(scenario: FieldScenario, people: People, happens: Happening, seed: int) -> dict[str, Any]:
    """What subscribers want of what happens, as a file says or drawn: these fields of the world."""
    if scenario.subscriptions.file is not None:
        wishes = ask_by_file(scenario, people, happens.content, happens.begin_s)
        lifetime_s = float(scenario.events.lifetime_s)
        return with_wishes(wishes, people, happens.values, happens.time_s, lifetime_s)._asdict()
    where, low, high = draw_interests(scenario, people, happens.content, seed)
    return {"event_values": happens.values, "low": low, "high": high, "where": where, "people": people}


def names_asked(scenario: FieldScenario) -> set[str]:
    """The attributes that somebody's condition names."""
    if scenario.subscriptions.file is not None:
        return names_in(texts_of(scenario.subscriptions.file))
    return names_in(text for group in scenario.groups for text in group.where or scenario.subscriptions.where)


def check_files_field(scenario: FieldScenario) -> None:
    """Read the files of sensors, of those who move, of events and subscriptions, if there are any, as a run would."""
    shape = scenario.field
    grid = Grid(shape.width_m, shape.height_m, shape.columns, shape.rows)
    names, x, y, own = place_sensors(scenario, grid, 0)
    has = equip(scenario, own)
    files = scenario.events.file or scenario.subscriptions.file
    if not files and all(group.movement == "walk" for group in scenario.groups):
        return
    _, people = move(scenario, 0, Places(tuple(names), x, y))
    if files:
        relays = len(scenario.sensors.relays or ())
        happens = what_happens(scenario, names[: len(names) - relays], has.interval_s, 0)
        who_wants_it(scenario, people, happens, 0)


def place_sensors(scenario: FieldScenario, grid: Grid, seed: int) -> Listed:
    """Names and positions of the sensors, and what they have of their own; relays are the last of them."""
    sensors = scenario.sensors
    names, own = [f"s{number}" for number in range(sensors.count)], Own.nothing([""] * sensors.count)
    if sensors.file is not None:
        names, x, y, own = read_sensors(sensors.file, grid, origin_in(scenario))
    elif sensors.placement == "grid":
        x, y = place_grid(grid, sensors.count)
    else:
        x, y = place_uniform(grid, sensors.count, stream(seed, PLACEMENT))
    relays = np.array(sensors.relays or (), np.float64).reshape(-1, 2)
    names += [f"relay {number}" for number in range(1, len(relays) + 1)]
    return Listed(names, np.append(x, relays[:, 0]), np.append(y, relays[:, 1]), own.with_more(len(relays)))


def draw_failing(scenario: FieldScenario, sensors: int, seed: int) -> NDArray[np.int32]:
    """Which sensors fail, by number: so many of them, none sooner than others."""
    count = round(scenario.sensors.failing * sensors)
    return np.sort(stream(seed, BREAKDOWNS).permutation(sensors)[:count]).astype(np.int32)


# ---- the protocol


def run_protocol(
    world: World, scenario: FieldScenario, key: int, full_log: bool, until_death: bool = False
) -> tuple[Ledger, FullLog | None]:
    """Let the scenario's protocol run over a world."""
    limits = limits_of(world, scenario, key, full_log, until_death)
    protocol = PROTOCOLS[scenario.protocol.name]
    field = protocol.simulate(world, limits, scenario.protocol)
    if protocol.own:  # the plain engine keeps its books itself
        ledger, full = field
        return ledger, full
    return ledger_of(field), full_log_of(field) if full_log else None


def limits_of(world: World, scenario: FieldScenario, key: int, full_log: bool, until_death: bool) -> Limits:
    """The numbers of a scenario as the kernels read them."""
    grid, radio, rate = world.grid, scenario.radio, scenario.radio.rate
    model = Radio(
        radio.electronics_j_per_bit, radio.free_space_j_per_bit_m2, radio.multipath_j_per_bit_m4, radio.receive_costs
    )
    births = np.ceil(world.event_time_s).astype(np.int64)
    steady = steady_part(scenario) or SteadyPart(NONE, NONE, NONE)
    bits = {f"{name}_bits": float(size) for name, size in control_sizes(scenario).items()}
    return Limits(
        grid=grid.as_floats(),
        slots=scenario.duration_s,
        rate=rate,
        most_born=int(np.bincount(births).max(initial=0)),
        most_sent=len(world.sensor_x) * rate,
        most_received=len(world.low) * rate,
        queue=scenario.sensors.queue,
        lifetime=float(scenario.events.lifetime_s),
        bits=float(scenario.events.size_bits),
        receive_pj=receive_pj(model, float(scenario.events.size_bits)),
        radio=model,
        key=key,
        full_log=full_log,
        until_death=until_death,
        pruned_floods=getattr(scenario.protocol, "floods", "whole") == "pruned",
        steady_begin=steady.begin,
        steady_middle=steady.middle,
        steady_end=steady.end,
        control_costs=radio.control_costs,
        loss=radio.loss,
        fail_slot=scenario.sensors.fail_at_s if len(world.failing) else NONE,
        since_midnight=0 if world.harvest is None else world.harvest.since_midnight_s,
        in_metres=world.ranges is not None,
        **bits,
    )


def control_sizes(scenario: FieldScenario) -> dict[str, float]:
    """The size of each kind of control message, in bits."""
    sizes = scenario.control
    return {
        "hello": sizes.hello_bits,
        "reply": sizes.reply_bits,
        "path": sizes.path_bits,
        "route": sizes.route_bits,
        "election": sizes.election_bits,
        "notice": sizes.notice_bits,
    }


def ledger_of(field: Field) -> Ledger:
    """What was counted, in the form that metrics read."""
    tally, limits = field.tally[0], field.limits
    rows = field.receptions[: tally.receptions]
    kinds = MESSAGES if not len(field.message_bits) else SERAI_MESSAGES
    messages = {kind: int(count) for kind, count in zip(kinds, field.messages, strict=True)}
    seen = tally.looks == LOOKS  # else the run ended before its steady part did
    steady_pj = np.diff(field.spent_pj, axis=0) * seen
    return Ledger(
        reception_event=rows.event.copy(),
        reception_subscriber=rows.subscriber.copy(),
        reception_s=rows.slot.copy(),
        reception_wanted=rows.wanted.astype(bool),
        transmissions=field.transmissions,
        sent=field.sensors.sent.copy(),
        received=field.sensors.received.copy(),
        event_pj=field.sensors.event_pj.copy(),
        control_pj=field.sensors.control_pj.copy(),
        idle_pj=field.idled_pj.copy() if len(field.idled_pj) else None,
        **(harvest_counts(field) if len(field.power.woken) else {}),
        steady_event_pj=steady_pj[:, 0].copy(),
        steady_control_pj=steady_pj[:, 1].copy(),
        drops={reason: int(count) for reason, count in zip(DROPS, field.drops, strict=True)},
        control_messages=messages,
        control_bits=control_bits_of(field, messages),
        died=field.sensors.died.copy(),
        ended_s=float(tally.died) if limits.until_death and tally.died != NONE else None,
    )


def harvest_counts(field: Field) -> dict[str, Any]:
    """What was harvested, and who slept when."""
    naps = field.power.naps[: field.tally[0].naps]
    return {
        "harvested_pj": field.power.harvested_pj.copy(),
        "wasted_pj": field.power.wasted_pj.copy(),
        "naps": Naps(*(naps[name].copy() for name in Naps._fields)),
    }


def control_bits_of(field: Field, messages: dict[str, int]) -> dict[str, int]:
    """The bits of each kind of control message: as counted, or so many messages of one size."""
    if len(field.message_bits):
        return {kind: int(bits) for kind, bits in zip(messages, field.message_bits, strict=True)}
    return {kind: int(count * getattr(field.limits, f"{kind}_bits")) for kind, count in messages.items()}


def full_log_of(field: Field) -> FullLog:
    """Every transfer and drop, column by column."""
    transfers = field.transfer_log[: field.tally[0].transfers]
    drops = field.drop_log[: field.tally[0].drops]
    return FullLog(
        Transfers(*(transfers[name].copy() for name in Transfers._fields)),
        Drops(*(drops[name].copy() for name in Drops._fields)),
        watched_of(field),
    )


def watched_of(field: Field) -> Watched:
    """What was seen of every slot, column by column."""
    watch, seen, sensors = field.watch, field.watch.seen[0], len(field.sensors)
    control, heads = watch.control_log[: seen.control], watch.head_log[: seen.heads]
    rows, spent = watch.session_log[: seen.sessions], watch.spent_log[: seen.spent]
    # A begin and the next end of the same two belong together.
    rows = rows[np.lexsort((np.arange(len(rows)), rows.member, rows.subscriber))]
    begins = np.flatnonzero(rows.begins)
    following = np.minimum(begins + 1, max(len(rows) - 1, 0))
    ended = (begins + 1 < len(rows)) & ~rows.begins[following]
    end_s = np.where(ended, rows.time_s[following], field.clock[0].slot + 1).astype(np.int32)
    sessions = Sessions(rows.subscriber[begins] + sensors, rows.member[begins], rows.time_s[begins], end_s)
    order = np.lexsort((sessions.member, sessions.subscriber, sessions.start_s))
    return Watched(
        Control(control.time_s.copy(), control.kind.copy(), control.messages.copy()),
        Sessions(*(np.asarray(column[order], np.int32) for column in sessions)),
        Heads(heads.time_s.copy(), heads.member.copy(), heads.node.copy()),
        Spent(spent.time_s.copy(), spent.node.copy(), spent.pj.copy()),
    )
