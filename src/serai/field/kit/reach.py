"""Who hears whom in the plain engine: by cells or in metres, chosen once for a run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np

from serai.field.kit.parts import ALIVE, Guest, Site
from serai.field.visits import path_cells
from serai.field.world import World


class Visit(NamedTuple):
    """A change of place or leg, as `serai.field.visits.Visits` lists them."""

    slot: int
    subscriber: int
    cell: int
    segment: int
    leg: int
    moving: bool
    came: bool
    went: bool


class Reach(Protocol):
    """What the engine asks."""

    def neighbors(self, site: Site) -> list[Site]:
        """The sensors that hear this one, by number."""

    def come_to(self, guest: Guest, visit: Visit) -> None:
        """The visitor is in its new place."""

    def listeners(self, guest: Guest) -> list[Site]:
        """The living sensors that hear the visitor, by number."""

    def in_same_cell(self, guest: Guest) -> list[Site]:
        """Those of them in the visitor's own cell."""

    def answers(self, guest: Guest) -> bool:
        """Whether anybody, dead or alive, may answer a Hello."""

    def ahead(self, guest: Guest, x: float, y: float) -> Iterable[Site]:
        """The living sensors that will hear the visitor, who is at (x, y) on its way, on the rest of its leg."""

    def bury(self) -> None:
        """Some sensors have died."""


def reach_of(world: World, sites: list[Site]) -> Reach:
    """How reach is read in a world."""
    return ByCells(world, sites) if world.ranges is None else InMetres(world, sites)


def end_of_leg(world: World, guest: Guest) -> int:
    """The point where the visitor's leg ends."""
    last, point = int(world.tracks.start[guest.number + 1]) - 1, guest.segment
    while point < last and world.legs[point] == world.legs[guest.segment]:
        point += 1
    return point


class ByCells:
    """Nodes hear each other if their cells are the same or touch."""

    def __init__(self, world: World, sites: list[Site]) -> None:
        self.world, self.columns, self.rows = world, int(world.grid.columns), int(world.grid.rows)
        self.by_cell: dict[int, list[Site]] = {}
        for site in sites:
            self.by_cell.setdefault(site.cell, []).append(site)
        self.near: dict[int, list[Site]] = {}  # looked up once
        self.room = np.empty(self.columns + self.rows, np.int32)

    def neighbors(self, site: Site) -> list[Site]:
        """The sensors in cells that touch."""
        return [other for other in self.in_touch(site.cell) if other is not site]

    def come_to(self, guest: Guest, visit: Visit) -> None:
        """It is in another cell."""
        guest.cell = visit.cell

    def listeners(self, guest: Guest) -> list[Site]:
        """The sensors in cells that touch."""
        return self.in_touch(guest.cell)

    def in_same_cell(self, guest: Guest) -> list[Site]:
        """The sensors in the same cell."""
        return self.around(guest.cell, 0)

    def answers(self, guest: Guest) -> bool:
        """Nobody knows, unless the visitor is nowhere."""
        return guest.cell >= 0

    def ahead(self, guest: Guest, x: float, y: float) -> Iterable[Site]:
        """The sensors that touch a cell on the way."""
        tracks, grid = self.world.tracks, self.world.grid.as_floats()
        for point in range(guest.segment + 1, end_of_leg(self.world, guest) + 1):
            to_x, to_y = float(tracks.x_m[point]), float(tracks.y_m[point])
            for cell in self.room[: path_cells(x, y, to_x, to_y, grid, self.room)].tolist():
                yield from self.in_touch(cell)
            x, y = to_x, to_y

    def bury(self) -> None:
        """What was looked up holds no longer."""
        self.near = {}

    def in_touch(self, cell: int) -> list[Site]:
        """The living sensors whose cell touches this one, by number."""
        if cell not in self.near:
            self.near[cell] = self.around(cell, 1)
        return self.near[cell]

    def around(self, cell: int, apart: int) -> list[Site]:
        """The living sensors in cells at most so many columns and rows away, by number."""
        row, column = divmod(cell, self.columns)
        cells = [
            y * self.columns + x
            for y in range(max(row - apart, 0), min(row + apart + 1, self.rows))
            for x in range(max(column - apart, 0), min(column + apart + 1, self.columns))
        ]
        found = [site for near in cells for site in self.by_cell.get(near, ()) if site.died == ALIVE]
        return sorted(found, key=lambda site: site.number)


class InMetres:
    """Nodes hear each other within range; which sensors visitors will pass, and when, is known beforehand."""

    def __init__(self, world: World, sites: list[Site]) -> None:
        self.world, self.sites = world, sites
        passes = world.passes
        self.bounds: list[int] = passes.start.tolist()
        self.passes = list(zip(passes.first.tolist(), passes.last.tolist(), passes.sensor.tolist(), strict=True))
        self.next = self.bounds[:-1]  # of each visitor: the first pass to come
        self.going_on: list[list[int]] = [[] for _ in self.next]

    def neighbors(self, site: Site) -> list[Site]:
        """The sensors within range."""
        start = self.world.communities.neighbor_start[site.number : site.number + 2]
        return [self.sites[other] for other in self.world.communities.neighbors[slice(*start)].tolist()]

    def come_to(self, guest: Guest, visit: Visit) -> None:
        """Passes end and begin."""
        going_on = [n for n in self.going_on[guest.number] if self.passes[n][1] >= visit.slot]
        while self.next[guest.number] < self.bounds[guest.number + 1]:
            n = self.next[guest.number]
            if self.passes[n][0] > visit.slot:
                break
            going_on.append(n)
            self.next[guest.number] += 1
        self.going_on[guest.number] = going_on

    def listeners(self, guest: Guest) -> list[Site]:
        """The sensors that are passed just now."""
        numbers = sorted(self.passes[n][2] for n in self.going_on[guest.number])
        return [self.sites[number] for number in numbers if self.sites[number].died == ALIVE]

    def in_same_cell(self, guest: Guest) -> list[Site]:
        """There are no cells: the scenario has refused this setting."""
        raise NotImplementedError

    def answers(self, guest: Guest) -> bool:
        """Whether any sensor is passed just now."""
        return bool(self.going_on[guest.number])

    def ahead(self, guest: Guest, x: float, y: float) -> Iterable[Site]:
        """The sensors that are passed now, or will be before the first second after the end of the leg."""
        yield from self.listeners(guest)
        until = math.ceil(self.world.tracks.time_s[end_of_leg(self.world, guest)])
        for n in range(self.next[guest.number], self.bounds[guest.number + 1]):
            first, _, sensor = self.passes[n]
            if first > until:
                break
            if self.sites[sensor].died == ALIVE:
                yield self.sites[sensor]

    def bury(self) -> None:
        """Passes stay what they are."""
