"""A protocol in a file of the user's: loaded, run, swept, checked, and stopped where it breaks a rule."""

from pathlib import Path
from typing import Any

import pytest

from serai.core.errors import BadInput
from serai.lab import load_scenario, read_run, simulate, write_run
from serai.opportunistic import Router, setting
from serai.opportunistic.kit.checks import TRIAL
from serai.opportunistic.kit.family import ROUTERS as FAMILY
from serai.opportunistic.testing import world
from serai.own.checking import check_protocol
from serai.own.loading import Own, find_own
from tests.adopted import forget_adopted as forget_adopted

ROUTERS = Path(__file__).parents[3] / "examples" / "protocols" / "routers.py"
SMALL = ["duration=30 min", "nodes.count=20", "bundles.quiet=0 s", "bundles.lifetime=10 min"]
HEAD = "from serai.opportunistic import Router, setting\n\n\nclass Mine(Router):\n"


def mine(folder: Path, body: str) -> Path:
    """A protocol with this body, in a file; its body begins in line 5."""
    file = folder / "mine.py"
    file.write_text(HEAD + body)
    return file


def own_in(file: Path, name: str) -> Own:
    return find_own(file, name, [FAMILY])


class Chatty(Router):
    """Tells what it has heard of."""

    lists = True
    limit: int = setting(2, ge=1, doc="How many.")

    def start(self):
        self.heard = ()

    def tell(self, peer, now):
        return (self.node, *self.heard)[: self.limit]

    def hear(self, peer, content, now):
        self.heard = content


def test_small_worlds_in_one_line() -> None:
    line = world("0-1 @ 0..10, 1-2 @ 20..30", publish="0 news @ 5 100 B", subscribe="2 news")
    ran = line.run(Router)
    assert ran.deliveries == [(20.1, 0, 2, 2)]
    assert ran.transfers == [(5.0, 5.1, 0, 0, 1, "relayed"), (20.0, 20.1, 0, 1, 2, "relayed")]
    assert line.run(Chatty).lists == 4
    broken = world("0-1 @ 0..5.05", publish="0 news @ 5 100 B", subscribe="1 news").run(Router)
    assert broken.transfers == [(5.0, 5.05, 0, 0, 1, "broken")]
    full = world("0-1 @ 8..9", publish="0 a @ 1 60 B, 0 b @ 2 60 B", store_bytes=100).run(Router)
    assert full.drops == [(2.0, 0, 0, "evicted")]
    late = world("0-1 @ 0..9", publish="0 a @ 1 100 B for 0.1 s", subscribe="1 a").run(Router)
    assert late.transfers == [(1.0, 1.1, 0, 0, 1, "late")]
    with pytest.raises(BadInput, match='write it like "0-1 @'):
        world("0 meets 1")


def test_the_same_as_a_built_in_protocol_from_the_scenario_to_the_folder(tmp_path: Path) -> None:
    scenario = load_scenario("dpsp", SMALL)
    own = simulate(scenario, f"{ROUTERS}:SprayAndWait", seed=1)
    built_in = simulate(scenario, "spray", seed=1)
    assert own.protocol == "SprayAndWait"
    assert {k: v for k, v in own.metrics.as_dict().items() if k != "protocol"} == {
        k: v for k, v in built_in.metrics.as_dict().items() if k != "protocol"
    }
    file = mine(tmp_path, "    limit: int = setting(3, doc='How many.')\n")
    scenario = load_scenario("dpsp", [*SMALL, "protocol.limit=5"], f"{file}")
    assert scenario.protocol.limit == 5
    run = simulate(scenario, seed=2)
    write_run(run, tmp_path / "run")
    file.unlink()
    kept = read_run(tmp_path / "run")
    assert kept.metrics == run.metrics
    assert kept.scenario.protocol.limit == 5


def test_a_scenario_may_name_the_file_from_its_own_folder(tmp_path: Path) -> None:
    mine(tmp_path, "    limit: int = setting(3, ge=1)\n")
    (tmp_path / "own.toml").write_text('[protocol]\nname = "mine.py"\nlimit = 0\n')
    with pytest.raises(BadInput, match=r"protocol.limit: must be at least 1 .*own.toml:3"):
        load_scenario(tmp_path / "own.toml")
    (tmp_path / "own.toml").write_text('[protocol]\nfile = "mine.py"\nname = "Mine"\nlimit = 4\n')
    assert load_scenario(tmp_path / "own.toml").protocol.limit == 4


@pytest.mark.parametrize(
    ("body", "place", "message"),
    [
        (
            "    def offers(self, copy, peer, now):\n        return None\n",
            "mine.py:5",
            "answers None, not True or False",
        ),
        (
            "    def priority(self, copy, peer, now):\n        return float('nan')\n",
            "mine.py:5",
            "answers nan, not a number",
        ),
        ("    def contact_up(self, peer, now):\n        1 / 0\n", "mine.py:6", "ZeroDivisionError: division by zero"),
        ("    def created(self, copy, now):\n        copy.hops = 9\n", "mine.py:6", "copy.hops cannot be changed"),
        ("    def attach(self, copy, peer, now):\n        return self\n", "mine.py:5", "a Mine cannot be told"),
        ("    def evict(self, copies, now):\n        return self\n", "mine.py:5", "none of the copies it was given"),
        (
            "    def tell(self, peer, now):\n        return ('x' * 1000,)\n",
            "mine.py:5",
            "1004 bytes in 1 entries, for which 72 are charged",
        ),
    ],
)
def test_whoever_breaks_a_rule_is_told_which_and_where(tmp_path: Path, body: str, place: str, message: str) -> None:
    scenario = load_scenario("dpsp", [*SMALL, "nodes.store=150 kB"], str(mine(tmp_path, body)))
    with pytest.raises(BadInput) as error:
        simulate(scenario, seed=0)
    assert message in str(error.value)
    assert place in str(error.value)
    assert "node " in str(error.value)
    assert "t = " in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = (", "mine.py:1: not valid Python"),
        ("import nothing_of_that_name", "mine.py:1: ModuleNotFoundError"),
        ("x = 1", "no protocol in it; write a class derived from serai.opportunistic.Router"),
        (HEAD + "    seen: str = setting('live')\n", "Mine.seen: every protocol of its kind has this setting"),
        (HEAD + "    x: object = setting(None)\n", "Mine.x: the default of a setting is a number"),
        (HEAD + "    def __init__(self): pass\n", "write start() instead of __init__()"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(text)
    with pytest.raises(BadInput) as error:
        load_scenario("dpsp", (), str(file))
    assert message in str(error.value)


def test_what_was_told_is_frozen(tmp_path: Path) -> None:
    told: list[Any] = []

    class Sly(Router):
        lists = True

        def start(self):
            self.numbers = {1}

        def tell(self, peer, now):
            return self.numbers

        def hear(self, peer, content, now):
            told.append(content)
            self.numbers.add(len(told) + 1)

    world("0-1 @ 0..10, 1-2 @ 20..30").run(Sly)
    assert told == [{1}, {1}, {1}, {1, 2, 3}] or told[0] == {1}
    assert all(isinstance(content, frozenset) for content in told)


def test_checks_find_what_runs_do_not_show(tmp_path: Path) -> None:
    assert [one.problem for one in check_protocol(own_in(ROUTERS, "SprayAndWait"), TRIAL, worlds=20)] == [""] * 6
    shared = mine(tmp_path, "    met = []\n\n    def contact_up(self, peer, now):\n        self.met.append(peer.id)\n")
    found = {one.what: one.problem for one in check_protocol(own_in(shared, "Mine"), TRIAL, worlds=2)}
    assert "Mine.met changed during a run" in found["no state that nodes or runs share"]


def test_a_node_may_ask_what_it_wants_itself() -> None:
    asked: list[tuple[int, int, bool]] = []

    class Asks(Router):
        def received(self, copy, peer, attached, now):
            asked.append((self.node, copy.id, self.wants(copy)))

    world("0-1 @ 0..9, 1-2 @ 20..29", publish="0 a @ 1 9 B, 0 b @ 2 9 B", subscribe="2 b").run(Asks)
    assert sorted(asked) == [(1, 0, False), (1, 1, False), (2, 0, False), (2, 1, True)]
