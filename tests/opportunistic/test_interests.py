"""Who wants alike: groups, communities of those who meet, mixing; and popularity that changes."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from serai.core.errors import BadInput
from serai.lab import load_scenario, parse_scenario, simulate
from serai.opportunistic.interests import communities
from serai.opportunistic.workload import publications, subscriptions_of
from serai.traces.names import NodeNames
from serai.world.contacts import Contacts


def contacts_of(rows: list[tuple[int, int, float]]) -> Contacts:
    """Two nodes, and how long they are together."""
    a, b, lasted = np.array(rows, float).reshape(-1, 3).T
    return Contacts(a.astype(np.int32), b.astype(np.int32), np.zeros(len(a)), lasted.copy())


def cliques(size: int) -> list[tuple[int, int, float]]:
    """Two crowds of so many who are all together for 10 s, and a pair of them that meets for 1 s."""
    crowd = list(combinations(range(size), 2))
    return [(a, b, 10.0) for a, b in crowd] + [(a + size, b + size, 10.0) for a, b in crowd] + [(0, size, 1.0)]


def chosen(*overrides: str, contacts: Contacts | None = None, seed: int = 1) -> dict[int, set[int]]:
    """The channels of each of 8 sinks that want anything at the beginning."""
    rows = wanted(*overrides, contacts=contacts, seed=seed)
    found: dict[int, set[int]] = {}
    for node, channel, from_s in zip(rows.node.tolist(), rows.channel.tolist(), rows.from_s.tolist(), strict=True):
        if from_s <= 0:
            found.setdefault(node, set()).add(channel)
    return found


def wanted(*overrides: str, contacts: Contacts | None = None, seed: int = 1) -> Any:
    few = ("nodes.count=8", "channels.count=50", "channels.each=4", "duration=2 h", *overrides)
    made: Any = parse_scenario('[protocol]\nname = "dpsp"\n', overrides=few)
    names = NodeNames(f"n{number}" for number in range(8))
    published = publications(made, names, seed)
    return subscriptions_of(made, names, published, seed, contacts or contacts_of(cliques(4))).subscriptions


def test_communities_are_those_who_spend_time_together() -> None:
    assert communities(contacts_of(cliques(4)), 9).tolist() == [0] * 4 + [1] * 4 + [2]
    ring = [(node, (node + 1) % 6, [9.0, 9.0, 1.0][node % 3]) for node in range(6)]
    assert communities(contacts_of(ring), 6).tolist() == [0, 0, 0, 1, 1, 1]
    assert communities(contacts_of([]), 3).tolist() == [0, 1, 2]


def modularity(of: list[int], rows: list[tuple[int, int, float]]) -> float:
    """Newman's, by its definition."""
    total = sum(tie for _, _, tie in rows)
    strength = [sum(tie for a, b, tie in rows if node in (a, b)) for node in range(len(of))]
    inside = sum(tie for a, b, tie in rows if of[a] == of[b])
    expected = sum(strength[a] * strength[b] for a in range(len(of)) for b in range(len(of)) if of[a] == of[b]) / (
        4 * total
    )
    return (inside - expected) / total


def test_no_single_move_would_be_better() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        pairs = [pair for pair in combinations(range(7), 2) if rng.random() < 0.5] or [(0, 1)]
        rows = [(a, b, float(rng.integers(1, 9))) for a, b in pairs]
        of = communities(contacts_of(rows), 7).tolist()
        found = modularity(of, rows)
        for node in range(7):
            for other in set(of):
                assert modularity([other if n == node else c for n, c in enumerate(of)], rows) <= found + 1e-9


def test_groups_want_the_same() -> None:
    alone = chosen()
    assert len({frozenset(channels) for channels in alone.values()}) == 8
    grouped = chosen("subscriptions.alike=group", "subscriptions.groups=3")
    assert all(grouped[node] == grouped[node % 3] for node in range(8))
    assert grouped[0] != grouped[1]
    met = chosen("subscriptions.alike=community")
    assert all(met[node] == met[0] for node in range(4))
    assert all(met[node] == met[4] for node in range(4, 8))
    assert met[0] != met[4]


def test_mixing_is_the_share_that_a_sink_chooses_for_itself() -> None:
    alike, alone = chosen("subscriptions.alike=community"), chosen()
    half = chosen("subscriptions.alike=community", "subscriptions.mixing=0.5")
    for node in range(8):
        common = set.intersection(*(half[other] for other in range(8) if other // 4 == node // 4))
        assert len(half[node]) == 4
        assert len(common & alike[node]) >= 2
        assert len(half[node] & alone[node]) >= 2
    assert chosen("subscriptions.alike=community", "subscriptions.mixing=1.0") == alone


def test_popularity_that_changes() -> None:
    """Sinks choose at 0, 30, 60 and 90 min: four at any time, by the same tastes, so that some of them stay."""
    rows = wanted("subscriptions.change=30 min")
    assert set(rows.from_s.tolist()) <= {0.0, 1800.0, 3600.0, 5400.0}
    for at_s in (0.0, 1000.0, 1800.0, 4000.0, 7000.0):
        for node in range(8):
            assert sum((rows.node == node) & (rows.from_s <= at_s) & (at_s < rows.to_s)) == 4
    assert chosen("subscriptions.change=30 min") == chosen()
    lasted = np.minimum(rows.to_s, 7200.0) - rows.from_s
    assert len(set(lasted.tolist())) > 1
    flat = wanted("subscriptions.change=30 min", "channels.popularity=0")
    assert set(flat.from_s.tolist()) == {0.0}  # all are equally popular, always


def test_a_run_and_what_is_refused() -> None:
    some = ["duration=20 min", "nodes.count=10", "bundles.quiet=0 s", "bundles.lifetime=10 min"]
    made = load_scenario("dpsp", [*some, "subscriptions.alike=community", "subscriptions.change=5 min"])
    assert simulate(made, seed=1).metrics.as_dict()["bundles"] > 0
    for settings, message in (
        (["subscriptions.groups=3"], "subscriptions.groups: only used with alike"),
        (["subscriptions.mixing=0.5"], "subscriptions.mixing: only used with alike"),
        (["subscriptions.change=5 min", "subscriptions.length=5 min"], "by themselves"),
        (["subscriptions.alike=group", "subscriptions.where=A1 > ?"], "only used where channels are drawn"),
    ):
        with pytest.raises(BadInput, match=message):
            load_scenario("dpsp", [*some, *settings])
