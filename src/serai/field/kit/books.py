"""What is counted in a run of the plain engine: energy, transfers, receptions, drops, control messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from serai.core.energy import distance, receive_pj, transmit_pj
from serai.core.harvest import HOURS
from serai.field.engine.place import broadcast_ranges
from serai.field.engine.state import DEAD, DROPS, FULL, LOOKS, MESSAGES, NONE, Limits
from serai.field.kit.parts import ALIVE, Guest, Site
from serai.field.log import Drops, FullLog, Ledger, Naps, Transfers
from serai.field.world import World
from serai.world.mobility import position_at


class Books:
    """The accounts of one run."""

    def __init__(self, world: World, limits: Limits) -> None:
        self.world, self.limits = world, limits
        self.sensors = len(world.sensor_x)
        self.broadcast_m = broadcast_ranges(world).tolist()
        self.control_costs, self.full_log = limits.control_costs, limits.full_log
        self.now = 0
        self.harvest_pj, self.wake_pj = np.empty((0, HOURS), np.int64), np.empty(0, np.int64)
        if world.harvest is not None:
            self.harvest_pj, self.wake_pj = world.harvest.pj, world.harvest.wake_pj(world.battery_j)
        self.naps: list[tuple[int, int, int]] = []
        self.transmissions = [0] * len(world.event_sensor)
        self.receptions: list[tuple[int, int, int, bool]] = []
        self.transfers: list[tuple[Any, ...]] = []
        self.transferred = 0
        self.drops: list[tuple[Any, ...]] = []
        self.dropped = [0] * len(DROPS)
        self.messages = [0] * len(MESSAGES)
        self.bits = [0.0] * len(MESSAGES)
        self.ended_s: float | None = None
        self.spent: list[list[tuple[int, int]]] = []  # of each sensor: at the begin, middle and end of the steady part

    # ---- batteries

    def left_pj(self, site: Site) -> int:
        """What is left of the sensor's battery."""
        held = site.battery_pj + site.harvested_pj - site.wasted_pj
        return held - site.event_pj - site.idled_pj - (site.control_pj if self.control_costs else 0)

    def pays(self, site: Site, cost: int) -> bool:
        """Whether the sensor can pay for an event; then it has. With nothing left it is exhausted."""
        left = self.left_pj(site)
        able = not site.exhausted and cost <= left
        if able:
            site.event_pj += cost
        if not able or cost == left:
            site.exhausted = True
        return able

    def charge(self, site: Site, cost: int) -> None:
        """The sensor pays for control messages: if the battery feels them, at most what is left in it."""
        if self.control_costs:
            cost = min(cost, self.left_pj(site))
        site.control_pj += cost
        if self.control_costs and self.left_pj(site) == 0:
            site.exhausted = True

    def listen(self, sites: Sequence[Site]) -> None:
        """At the end of a slot all harvest, and the living pay for having listened, at most what they have."""
        if not self.world.feels_time:
            return
        hour = (self.limits.since_midnight + self.now) // _HOUR_S % HOURS
        income = self.harvest_pj[:, hour].tolist() if len(self.harvest_pj) else [0] * len(sites)
        for site, more in zip(sites, income, strict=True):
            site.harvested_pj += more
            if site.died == ALIVE:
                site.idled_pj += min(site.idle_pj, self.left_pj(site))
                site.exhausted = site.exhausted or self.left_pj(site) == 0
            site.wasted_pj += max(self.left_pj(site) - site.battery_pj, 0)

    def wakes(self, site: Site) -> bool:
        """Whether a sensor that died before this slot has harvested enough to live; if so, its nap is noted."""
        if not len(self.wake_pj) or not 0 <= site.died < self.now or self.left_pj(site) < self.wake_pj[site.number]:
            return False
        self.naps.append((site.number, site.died, self.now))
        return True

    def look_at_spending(self, sites: Sequence[Site], slot: int) -> None:
        """At the begin, middle and end of the steady part: note what each sensor has spent before this slot."""
        limits = self.limits
        if slot in (limits.steady_begin, limits.steady_middle, limits.steady_end):
            self.spent.append([(site.event_pj, site.control_pj) for site in sites])

    # ---- control messages

    def say(self, kind: int, bits: float) -> None:
        """A control message was sent."""
        self.messages[kind] += 1
        self.bits[kind] += bits

    def broadcast(self, site: Site, kind: int, bits: float) -> None:
        """A control message by a sensor to all that it touches."""
        self.say(kind, bits)
        self.charge(site, transmit_pj(self.limits.radio, bits, self.broadcast_m[site.number]))
        for other in site.neighbors:
            self.charge(other, receive_pj(self.limits.radio, bits))

    # ---- events

    def send_pj(self, site: Site, to: Site | Guest, bits: float) -> int:
        """What it costs the sensor to send an event."""
        if isinstance(to, Guest):
            self.locate(to)
        return transmit_pj(self.limits.radio, bits, distance(site.x, site.y, to.x, to.y))

    def locate(self, guest: Guest) -> None:
        """Work out where the visitor is in this slot, once."""
        if guest.at_s != self.now:
            tracks, last = self.world.tracks, self.world.tracks.start[guest.number + 1] - 1
            while guest.segment < last and tracks.time_s[guest.segment + 1] <= self.now:
                guest.segment += 1
            x, y = position_at(tracks, guest.number, guest.segment, self.now)
            guest.at_s, guest.x, guest.y = self.now, float(x), float(y)

    def take_in(self, site: Site, bits: float, has_room: bool) -> int:
        """The sensor pays for receiving an event, or the reason why it cannot, else NONE."""
        if not has_room and not site.exhausted:
            return FULL
        if not self.pays(site, receive_pj(self.limits.radio, bits)):
            return DEAD
        site.received += 1
        return NONE

    def transferred_to(
        self, event: int, sender: int, receiver: int, addressee: int | None, kind: int, refused: bool, moved: bool
    ) -> None:
        """An event went from one node to another."""
        self.transmissions[event] += 1
        if self.full_log:
            whom = NONE if addressee is None else addressee
            row = (self.now, event, sender, receiver, whom, kind, refused, False, moved)
            self.transfers.append(row)

    def stored(self) -> None:
        """What was transferred last lies in the receiver's queue now."""
        if self.full_log:
            self.transfers[-1] = (*self.transfers[-1][:7], True, self.transfers[-1][8])

    def drop(self, event: int, sensor: int, addressee: int | None, reason: int, held: bool) -> None:
        """A copy was lost at a sensor; `held`: it had a place in the queue."""
        self.dropped[reason] += 1
        if self.full_log:
            whom = NONE if addressee is None else addressee
            self.drops.append((self.now, event, sensor, whom, reason, held, len(self.transfers)))

    def give(self, site: Site, guest: Guest, event: int, cost: int, kind: int, moved: bool) -> bool | None:
        """A visitor receives an event: whether for the first time; None: the sensor cannot pay for it."""
        if not self.pays(site, cost):
            return None
        site.sent += 1
        self.transmissions[event] += 1
        if self.full_log:
            self.transfers.append((self.now, event, site.number, guest.node, guest.node, kind, False, False, moved))
        guest.received += 1
        if event in guest.known:
            return False
        guest.known.add(event)
        self.receptions.append((event, guest.number, self.now, guest.wanted[event]))
        return True

    # ---- the result

    def close(self, sites: Sequence[Site]) -> tuple[Ledger, FullLog | None]:
        """Everything that was counted, as the compiled protocols give it."""
        received = np.array(self.receptions, np.int64).reshape(-1, 4)
        event, subscriber, time_s = received[:, :3].astype(np.int32).T.copy()
        steady = np.zeros((2, len(sites), 2), np.int64)  # of a run that ended before its steady part did
        if len(self.spent) == LOOKS:
            steady = np.diff(np.array(self.spent, np.int64).reshape(LOOKS, -1, 2), axis=0)
        counts: dict[str, Any] = {
            name: np.array([getattr(site, name) for site in sites], np.int64) for name in _COUNTED
        }
        if len(self.wake_pj):
            counts |= {name: np.array([getattr(site, name) for site in sites], np.int64) for name in _HARVESTED}
        ledger = Ledger(
            reception_event=event,
            reception_subscriber=subscriber,
            reception_s=time_s,
            reception_wanted=received[:, 3].astype(bool),
            transmissions=np.array(self.transmissions, np.int64),
            steady_event_pj=steady[..., 0].copy(),
            steady_control_pj=steady[..., 1].copy(),
            died=np.array([site.died for site in sites], np.int32),
            drops=dict(zip(DROPS, self.dropped, strict=True)),
            control_messages=dict(zip(MESSAGES, self.messages, strict=True)),
            control_bits={kind: int(bits) for kind, bits in zip(MESSAGES, self.bits, strict=True)},
            idle_pj=np.array([site.idled_pj for site in sites], np.int64) if self.world.feels_time else None,
            naps=self._naps() if len(self.wake_pj) else None,
            ended_s=self.ended_s if any(site.died != ALIVE for site in sites) else None,
            **counts,
        )
        return ledger, self._full_log() if self.full_log else None

    def _naps(self) -> Naps:
        return Naps(*np.array(self.naps, np.int32).reshape(-1, len(Naps._fields)).T.copy())

    def _full_log(self) -> FullLog:
        transfers = np.array(self.transfers, np.int64).reshape(-1, len(Transfers._fields)).T
        drops = np.array(self.drops, np.int64).reshape(-1, len(Drops._fields)).T
        return FullLog(
            Transfers(*(column.astype(kind) for column, kind in zip(transfers, _TRANSFER_TYPES, strict=True))),
            Drops(*(column.astype(kind) for column, kind in zip(drops, _DROP_TYPES, strict=True))),
        )


_HOUR_S = 3600
_HARVESTED = ("harvested_pj", "wasted_pj")
_COUNTED = ("sent", "received", "event_pj", "control_pj")
_TRANSFER_TYPES = (*[np.int32] * 5, np.int8, np.int8, np.bool_, np.bool_)
_DROP_TYPES = (*[np.int32] * 4, np.int8, np.bool_, np.int64)
