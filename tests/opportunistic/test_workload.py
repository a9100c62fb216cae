"""What is published and who wants it: the laws of the draws, streams that leave each other alone, and files."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serai.core.content import Attribute, box, matches, parse_template
from serai.core.errors import BadInput
from serai.lab import parse_scenario
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.workload import (
    Published,
    Wanted,
    births,
    cells_of,
    cells_touched,
    publications,
    roles,
    sizes,
    subscriptions_of,
    zipf,
)
from serai.traces.names import NodeNames
from serai.world.contacts import Contacts

FILES = Path(__file__).parents[1] / "traces" / "files"


NOBODY_MEETS = Contacts(*np.empty((2, 0), np.int32), *np.empty((2, 0)))


def scenario(*overrides: str, text: str = "") -> OpportunisticScenario:
    made = parse_scenario(f'{text}\n[protocol]\nname = "dpsp"\n', overrides=overrides)
    assert isinstance(made, OpportunisticScenario)
    return made


def nodes(count: int = 100) -> NodeNames:
    return NodeNames(f"n{number}" for number in range(count))


def drawn(made: OpportunisticScenario, seed: int = 1, known: NodeNames | None = None) -> tuple[Published, Wanted]:
    known = known or nodes(made.nodes.count)
    published = publications(made, known, seed)
    return published, subscriptions_of(made, known, published, seed, NOBODY_MEETS)


def same(one: Any, other: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


# ---- laws


def test_zipf() -> None:
    assert zipf(3, 1.0) == pytest.approx([6 / 11, 3 / 11, 2 / 11])
    assert zipf(4, 0.0) == pytest.approx([0.25] * 4)


def test_popular_channels_have_more_subscribers_and_everybody_chooses_different_ones() -> None:
    made = scenario("nodes.count=3000", "channels.count=20", "channels.each=3", "bundles.interval=1 h")
    _, wanted = drawn(made)
    rows = wanted.subscriptions
    assert len(rows.node) == 3 * 3000
    assert len(set(zip(rows.node.tolist(), rows.channel.tolist(), strict=True))) == 9000
    often = np.bincount(rows.channel, minlength=20)
    assert (np.diff(often[[0, 1, 3, 8, 19]]) < 0).all()
    # The first choice of one channel alone is Zipf's law itself.
    _, single = drawn(scenario("nodes.count=3000", "channels.count=20", "channels.each=1", "bundles.interval=1 h"))
    share = np.bincount(single.subscriptions.channel, minlength=20) / 3000
    assert share == pytest.approx(zipf(20, 1.0), abs=4 * 0.5 / math.sqrt(3000))


def test_publications_are_a_poisson_process_and_channels_have_one_source() -> None:
    made = scenario("duration=10 h", "bundles.interval=2 s", "bundles.quiet=1 h", "channels.activity=1.0")
    published, _ = drawn(made)
    bundles = published.bundles
    expected = 9 * 3600 / 2
    assert bundles.created_s.size == pytest.approx(expected, abs=4 * math.sqrt(expected))
    assert (np.diff(bundles.created_s) >= 0).all()
    assert bundles.created_s.max() < 9 * 3600
    gaps = np.diff(bundles.created_s)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)
    for channel in range(100):
        assert len(set(bundles.source[bundles.channel == channel].tolist())) <= 1
    share = np.bincount(bundles.channel, minlength=100) / bundles.channel.size
    assert share[0] == pytest.approx(zipf(100, 1.0)[0], abs=0.02)


def test_a_regular_schedule() -> None:
    assert births(scenario("duration=1 min", "bundles.interval=20 s", "bundles.schedule=regular"), 1).tolist() == [
        0,
        20,
        40,
    ]


def test_sizes_lie_between_their_limits() -> None:
    by_log = sizes(scenario(), 20_000, 1)
    assert (by_log.min(), by_log.max()) == pytest.approx((1000, 45_000), rel=0.01)
    assert np.median(by_log) == pytest.approx(math.sqrt(1000 * 45_000), rel=0.05)
    even = sizes(scenario("bundles.sizes=uniform"), 20_000, 1)
    assert even.mean() == pytest.approx(23_000, rel=0.02)
    assert set(sizes(scenario("bundles.size_min=5 kB", "bundles.size_max=5 kB"), 10, 1).tolist()) == {5000}


def test_roles() -> None:
    sources, sinks = roles(scenario("nodes.sources=30", "nodes.sinks=70"), 100, 1)
    assert sorted([*sources.tolist(), *sinks.tolist()]) == list(range(100))
    sources, sinks = roles(scenario(), 100, 1)
    assert sources.tolist() == sinks.tolist() == list(range(100))
    published, wanted = drawn(scenario("nodes.sources=3", "nodes.sinks=4"))
    assert set(published.bundles.source.tolist()) <= set(published.sources.tolist())
    assert set(wanted.subscriptions.node.tolist()) == set(wanted.sinks.tolist())
    with pytest.raises(BadInput, match="there are only 5 nodes"):
        roles(scenario("nodes.sources=30"), 5, 1)


def test_nobody_need_subscribe() -> None:
    _, wanted = drawn(scenario("nodes.sinks=0"))
    assert wanted.subscriptions.node.size == 0


def test_subscriptions_begin_and_end() -> None:
    _, wanted = drawn(scenario("subscriptions.spread=10 min", "subscriptions.length=1 h"))
    rows = wanted.subscriptions
    assert (np.diff(rows.from_s) >= 0).all()
    assert (rows.from_s.min() >= 0) & (rows.from_s.max() < 600)
    assert np.allclose(rows.to_s - rows.from_s, 3600)
    _, always = drawn(scenario())
    assert set(always.subscriptions.from_s.tolist()) == {0.0}
    assert set(always.subscriptions.to_s.tolist()) == {math.inf}


# ---- streams


def test_the_same_seed_gives_the_same_and_another_seed_another() -> None:
    (published, wanted), (again, wanted_again), (other, _) = (drawn(scenario(), seed) for seed in (1, 1, 2))
    assert same(published.bundles, again.bundles)
    assert same(wanted.subscriptions, wanted_again.subscriptions)
    assert not same(published.bundles, other.bundles)


def test_a_change_in_one_concern_leaves_the_draws_of_the_others_alone() -> None:
    before, wanted = drawn(scenario())
    larger, wanted_too = drawn(scenario("bundles.size_max=1 MB", "bundles.lifetime=5 min"))
    assert np.array_equal(before.bundles.created_s, larger.bundles.created_s)
    assert np.array_equal(before.bundles.source, larger.bundles.source)
    assert same(wanted.subscriptions, wanted_too.subscriptions)
    loved, _ = drawn(scenario("channels.popularity=2.0", "channels.each=1"))
    assert same(before.bundles, loved.bundles)


# ---- ranges


attributes = (Attribute("A1", "real", 0.0, 10.0), Attribute("A2", "integer", -3.0, 12.0))
numbers = st.one_of(st.floats(-5, 15), st.integers(-5, 15).map(float))


@settings(max_examples=200)
@given(numbers, numbers, numbers, numbers, st.floats(0, 10), st.integers(-3, 12), st.integers(1, 9))
def test_whoever_wants_an_event_has_subscribed_to_its_channel(
    low1: float, low2: float, high1: float, high2: float, value1: float, value2: int, cells: int
) -> None:
    low, high, values = np.array([low1, low2]), np.array([high1, high2]), np.array([[value1, float(value2)]])
    channels = cells_touched(low, high, attributes, cells)
    place = cells_of(values, attributes, cells)[0]
    channel = int(place[0]) * cells + int(place[1])
    if (low <= values[0]).all() and (values[0] <= high).all():
        assert channel in channels
    assert len(set(channels.tolist())) == channels.size
    assert channels.size == 0 or (channels.min() >= 0 and channels.max() < cells**2)


def test_a_box_touches_the_cells_it_lies_in() -> None:
    two = (Attribute("A1", "real", 0.0, 10.0), Attribute("A2", "real", 0.0, 10.0))
    low, high = box(parse_template("A1 < 4 and 6 <= A2", two).fill([]), ("A1", "A2"))
    assert cells_touched(low, high, two, 4).tolist() == [2, 3, 6, 7]  # columns 0 and 1, rows 2 and 3
    nothing = box(parse_template("A1 > 20", two).fill([]), ("A1", "A2"))
    assert cells_touched(*nothing, two, 4).size == 0


def test_ranges_become_subscriptions_to_cells() -> None:
    made = scenario(
        "subscriptions.where=A1 < ? and A2 < ?", "events.cells=5", "nodes.sinks=20", "bundles.interval=10 s"
    )
    published, wanted = drawn(made)
    assert len(published.channels) == 25
    assert published.channels[7] == "A1:1 A2:2"
    has = set(zip(wanted.subscriptions.node.tolist(), wanted.subscriptions.channel.tolist(), strict=True))
    for place, sink in enumerate(wanted.sinks.tolist()):
        for bundle, values in enumerate(published.values):
            if matches(values, wanted.low[place], wanted.high[place]):
                assert (sink, int(published.bundles.channel[bundle])) in has


# ---- files


def test_messages_of_the_one() -> None:
    known = NodeNames(["1", "2", "10"], growing=True)
    made = scenario(text=f'duration = "1 min"\n[bundles]\nfile = "{FILES / "messages.txt"}"')
    published, wanted = drawn(made, known=known)
    assert known.names == ["1", "2", "10", "n77"]
    bundles = published.bundles
    assert bundles.created_s.tolist() == [5.0, 8.0, 9.0]
    assert bundles.source.tolist() == [0, 1, 1]
    assert bundles.size_bytes.tolist() == [10_000, 700, 500]
    assert bundles.lifetime_s.tolist() == [600.0, 300.0, 300.0]
    assert published.channels == ("M1", "M3", "M2")
    rows = wanted.subscriptions
    assert list(zip(rows.node.tolist(), rows.channel.tolist(), strict=True)) == [(0, 1), (2, 0), (3, 2)]
    assert set(rows.from_s.tolist()) == {-math.inf}


def test_events_of_the_one_have_the_lifetime_of_the_scenario() -> None:
    made = scenario(text=f'[bundles]\nlifetime = "5 min"\nfile = "{FILES / "events.txt"}"')
    published, _ = drawn(made, known=NodeNames(["1", "2", "10"]))
    assert published.bundles.created_s.tolist() == [5.0, 7.0]
    assert published.bundles.lifetime_s.tolist() == [300.0, 300.0]
    assert published.targets.tolist() == [2, 0]


def test_messages_and_subscriptions_in_csv() -> None:
    text = f'[bundles]\nfile = "{FILES / "messages.csv"}"\n[subscriptions]\nfile = "{FILES / "subscriptions.csv"}"'
    published, wanted = drawn(scenario(text=text), known=NodeNames(["1", "2", "10"]))
    assert published.channels == ("news", "weather")
    assert published.bundles.channel.tolist() == [0, 1]
    assert published.bundles.lifetime_s.tolist() == [3600.0, 60.0]
    rows = wanted.subscriptions
    assert list(zip(*(column.tolist() for column in rows), strict=True)) == [
        (0, 0, -math.inf, math.inf),
        (2, 1, 2.0, 50.0),
    ]


def test_a_run_that_begins_later_shifts_what_files_say() -> None:
    text = f'[contacts]\nsource = "trace"\nfile = "x"\nbegin = "6 s"\n[bundles]\nfile = "{FILES / "messages.txt"}"'
    published, _ = drawn(scenario(text=text), known=NodeNames(["1", "2", "10"], growing=True))
    assert published.bundles.created_s.tolist() == [2.0, 3.0]


def test_files_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    text = f'[bundles]\nfile = "{FILES / "messages.txt"}"'
    with pytest.raises(BadInput, match='no node is called "n77"'):
        drawn(scenario(text=text), known=NodeNames(["n1", "n2", "n10"]))
    with pytest.raises(BadInput, match="are all outside the run"):
        drawn(scenario(text=f'duration = "1 s"\n{text}'), known=NodeNames(["1", "2", "10"], growing=True))
    path = tmp_path / "s.csv"
    for content, said in [
        ("node;channel\n1;news\n", "missing column node, channel; the header has: node;channel"),
        ("node,channel\n1,gossip\n", "none of its channels is published on; there are news, weather"),
        ("node,channel\n", "no subscription in it"),
    ]:
        path.write_text(content)
        made = scenario(text=f'[bundles]\nfile = "{FILES / "messages.csv"}"\n[subscriptions]\nfile = "{path}"')
        with pytest.raises(BadInput) as caught:
            drawn(made, known=NodeNames(["1", "2", "10"]))
        assert said in str(caught.value)
