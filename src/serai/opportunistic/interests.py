"""Which channels each sink chooses: by popularity, alone or like others, once or again when popularity changes.

A choice is a draw without replacement by the channels' weights: the highest of the weights' logarithms with Gumbel
noise, which is a sink's taste. Sinks that want alike share a taste; and popularity that changes meets the same taste.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from serai.core.streams import stream
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.world import Subscriptions
from serai.world.contacts import Contacts
from serai.world.grid import Floats, Numbers

TASTES, POPULARITY = 24, 25  # streams; the taste of a sink alone is the workload's


def zipf(count: int, exponent: float) -> Floats:
    """The chances of `count` things by Zipf's law; exponent 0: all alike."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    chances: Floats = weights / weights.sum()
    return chances


def best(liking: Floats, each: int) -> NDArray[np.int64]:
    """The best liked of each row, in ascending order."""
    chosen = np.argpartition(-liking, each - 1, axis=1)[:, :each] if len(liking) else np.empty((0, each), np.int64)
    return np.sort(chosen, axis=1)


def choices(
    scenario: OpportunisticScenario, taste: Floats, groups: Numbers | None, weights: Floats, seed: int
) -> NDArray[np.int64]:
    """The channels of each sink, `taste` being its own; `groups`: who shares a taste, if anybody does."""
    each, liking = min(scenario.channels.each, weights.size), taste + np.log(weights)
    if groups is None:
        return best(liking, each)
    count = int(groups.max(initial=-1)) + 1
    shared = stream(seed, TASTES).gumbel(size=(count, weights.size)) + np.log(weights)
    alike = each - round(scenario.subscriptions.mixing * each)
    common = np.zeros((count, weights.size), bool)
    if alike:
        np.put_along_axis(common, best(shared, alike), True, axis=1)
    # What the group wants comes first, then what the sink itself likes best of the rest.
    return best(np.where(common[groups], np.inf, liking), each)


def subscriptions(
    scenario: OpportunisticScenario, sinks: Numbers, taste: Floats, groups: Numbers | None, seed: int
) -> Subscriptions:
    """Who wants which channel from when to when, popularity changing every `subscriptions.change`."""
    channels, change_s = taste.shape[1], scenario.subscriptions.change_s
    weights, order = zipf(channels, scenario.channels.popularity), np.arange(channels)
    shuffles, rows = stream(seed, POPULARITY), []
    open_since: dict[tuple[int, int], float] = {}
    for begin_s in np.arange(0.0, scenario.duration_s, change_s).tolist():
        chosen = choices(scenario, taste, groups, weights[order], seed)
        now = {(int(sink), channel) for sink, row in zip(sinks, chosen.tolist(), strict=True) for channel in row}
        for sink, channel in sorted(open_since.keys() - now):
            rows.append((sink, channel, open_since.pop((sink, channel)), begin_s))
        for pair in sorted(now - open_since.keys()):
            open_since[pair] = begin_s
        order = shuffles.permutation(channels)
    rows += [(sink, channel, since_s, np.inf) for (sink, channel), since_s in sorted(open_since.items())]
    columns = np.array(rows, np.float64).reshape(-1, 4).T
    return Subscriptions(columns[0].astype(np.int32), columns[1].astype(np.int32), columns[2].copy(), columns[3].copy())


# ---- who wants alike


def groups_of(scenario: OpportunisticScenario, sinks: Numbers, contacts: Contacts, nodes: int) -> Numbers | None:
    """The group of each sink, or None if each is alone."""
    how = scenario.subscriptions
    if how.alike == "group":
        return (np.arange(sinks.size) % how.groups).astype(np.int32)
    if how.alike == "community":
        return communities(contacts, nodes)[sinks]
    return None


def communities(contacts: Contacts, nodes: int) -> Numbers:
    """The community of each node: who spends time together, by modularity.

    Nodes, one after the other, join the neighbours' community that gains most, until nobody moves: the first phase of
    Blondel, Guillaume, Lambiotte and Lefebvre, "Fast unfolding of communities in large networks" (2008). Communities
    are numbered by their first node; who meets nobody is alone.
    """
    time_s: list[dict[int, float]] = [{} for _ in range(nodes)]
    for one, other, lasted in zip(
        contacts.a.tolist(), contacts.b.tolist(), (contacts.down_s - contacts.up_s).tolist(), strict=True
    ):
        time_s[one][other] = time_s[one].get(other, 0.0) + lasted
        time_s[other][one] = time_s[other].get(one, 0.0) + lasted
    strength = [sum(row.values()) for row in time_s]
    total, of = sum(strength), list(range(nodes))
    held = strength.copy()  # of each community
    moved = total > 0
    while moved:
        moved = False
        for node in range(nodes):
            ties: dict[int, float] = {of[node]: 0.0}
            for other, tie in time_s[node].items():
                ties[of[other]] = ties.get(of[other], 0.0) + tie
            held[of[node]] -= strength[node]
            gain = {where: tie - strength[node] * held[where] / total for where, tie in ties.items()}
            where = max(gain, key=lambda one: (gain[one], one == of[node], -one))
            moved |= where != of[node]
            of[node] = where
            held[where] += strength[node]
    _, first, number = np.unique(of, return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.int32)
    rank[np.argsort(first)] = np.arange(first.size, dtype=np.int32)
    return rank[number]
