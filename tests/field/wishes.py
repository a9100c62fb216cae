"""Small worlds in which subscribers ask as a file of subscriptions says."""

import math
import random

import numpy as np

from serai.field.asking import with_wishes
from serai.field.world import World
from serai.recorded.wishes import Wishes

_ALWAYS = (-math.inf, math.inf)


def as_recorded(world: World, slots: int, seed: int, lifetime_s: float) -> World:
    """The same world, but for who asks for what: several things, for some time, or nothing."""
    subscribers, attributes = world.low.shape
    wishes = some_wishes(subscribers, attributes, slots, random.Random(seed + 2))
    wanted = with_wishes(wishes, world.people, world.event_values, world.event_time_s, lifetime_s)
    return world._replace(**wanted._asdict())


def some_wishes(subscribers: int, attributes: int, slots: int, rng: random.Random) -> Wishes:
    """Any number of subscriptions; some begin or end in the run."""
    rows = []
    for _ in range(rng.randint(0, 2 * subscribers)):
        low = [rng.choice([-math.inf, -math.inf, 1.0, 2.25]) for _ in range(attributes)]
        high = [rng.choice([math.inf, math.inf, 2.5, 1.0]) for _ in range(attributes)]
        ends = rng.choice([_ALWAYS, _ALWAYS, (slots / 4, math.inf), (0.0, slots / 2), (9.5, 20.0)])
        rows.append((rng.randrange(subscribers), low, high, *ends))
    node, lows, highs, since, until = zip(*rows, strict=True) if rows else ((),) * 5
    low, high = (np.array(bounds, float).reshape(-1, attributes) for bounds in (lows, highs))
    return Wishes(
        np.array(node, np.int32), ("",) * len(rows), low, high, np.array(since, float), np.array(until, float)
    )
