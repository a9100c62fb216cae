"""The calls that a node got, played to a fresh object elsewhere: who answers from what it was told gives the same."""

from importlib import resources
from pathlib import Path

import pytest

from serai.core.errors import BadInput
from serai.field.kit.checks import TRIAL as FIELDS
from serai.field.kit.family import SENSORS
from serai.opportunistic.kit.checks import TRIAL as CONTACTS
from serai.opportunistic.kit.family import ROUTERS
from serai.own.alone import disagreement
from serai.own.checking import Trial, check_protocol, tapes_of
from serai.own.loading import Own, find_own, own_protocol

EXAMPLES = Path(__file__).parents[2] / "examples" / "protocols"
SHARED = """
from serai.opportunistic import Router

class Mine(Router):
    met = []

    def contact_up(self, peer, now):
        self.met.append(peer.id)

    def offers(self, copy, peer, now):
        return len(self.met) % 3 > 0
"""
OF_MODULE = """
from serai.opportunistic import Router
count = 0

class Mine(Router):
    def offers(self, copy, peer, now):
        global count
        count += 1
        return count % 3 > 0
"""
ANSWERS = """
import random, time
from serai.opportunistic import Router

class Mine(Router):
    def offers(self, copy, peer, now):
        return {}
"""
MISTAKES = {
    "state that nodes share": SHARED,
    "a number of the module": OF_MODULE,
    "a clock": ANSWERS.format("time.perf_counter_ns() % 3 > 0"),
    "unseeded draws": ANSWERS.format("random.random() < 0.5"),
}
ONLY_ELSEWHERE = {
    "the order of a set": ANSWERS.format("list({'red', 'green', 'blue', str(copy.id)})[0] != 'red'"),
    "a hash": ANSWERS.format("hash(str(copy.id)) % 3 > 0"),
}
VISITORS = """
from serai.field import Sensor, Visitor

class Mule(Visitor):
    seen = []

    def received(self, copy, sensor, attached, now):
        self.seen.append(copy.event)
        return len(self.seen) % 2 == 0

class Mine(Sensor):
    visitor = Mule
"""
LETS_GO = """
from serai.opportunistic import Router

class Mine(Router):
    sent_by_all = []

    def sent(self, copy, peer, attached, accepted, now):
        self.sent_by_all.append(copy.id)
        if len(self.sent_by_all) % 2:
            self.discard(copy.id)
"""
UNSTABLE = """
from serai.opportunistic import Router

class Mine(Router):
    stable = True

    def start(self):
        self.met = 0

    def contact_up(self, peer, now):
        self.met += 1

    def priority(self, copy, peer, now):
        return (copy.id * self.met) % 5
"""
SAYS_NO = """
from serai.{kind} import {base}

class Mine({base}):
    def offers(self, copy, to, now):
        return False
"""


def mine(folder: Path, text: str, trial: Trial = CONTACTS) -> Own:
    (folder / "mine.py").write_text(text)
    return find_own(folder / "mine.py", "Mine", [trial.family])


def disagreements(own: Own, trial: Trial) -> list[str]:
    """What is found in this very process."""
    tapes = [tape for seed in range(6) for tape in tapes_of(own_protocol(own), own, trial, seed)]
    assert sum(len(tape.calls) for tape in tapes) > 100
    return [found for tape in tapes if (found := disagreement(own, tape))]


def problems(own: Own, trial: Trial, worlds: int = 1) -> dict[str, str]:
    """What is wrong with a protocol, by the first words of each check."""
    return {one.what.split(":")[0].split(",")[0]: one.problem for one in check_protocol(own, trial, worlds)}


@pytest.mark.parametrize("mistake", list(MISTAKES))
def test_what_does_not_follow_from_what_was_told_is_found(mistake: str, tmp_path: Path) -> None:
    found = disagreements(mine(tmp_path, MISTAKES[mistake]), CONTACTS)[0]
    assert "mine.py:" in found
    assert "Mine.offers: alone, told the same, it answers" in found
    assert "node " in found
    assert ", t = " in found


@pytest.mark.parametrize("mistake", list(ONLY_ELSEWHERE))
def test_in_another_process_it_is_found_with_another_hash_seed(mistake: str, tmp_path: Path) -> None:
    found = problems(mine(tmp_path, ONLY_ELSEWHERE[mistake]), CONTACTS)["each node alone"]
    assert "Mine.offers: alone, told the same, it answers" in found
    assert "the order of a set?" in found


def test_visitors_too(tmp_path: Path) -> None:
    assert "Mule.received: alone" in disagreements(mine(tmp_path, VISITORS, FIELDS), FIELDS)[0]


@pytest.mark.parametrize("name", ["Flooding", "SprayAndWait", "FirstContact", "Prophet2", "Dpsp"])
def test_good_routers_agree_with_themselves(name: str) -> None:
    assert disagreements(find_own(EXAMPLES / "routers.py", name, [ROUTERS]), CONTACTS) == []


@pytest.mark.parametrize("name", ["DirectGathering", "CommunityFlood", "Ced", "Returned", "Carried"])
def test_good_sensors_agree_with_themselves(name: str) -> None:
    assert disagreements(find_own(EXAMPLES / "sensors.py", name, [SENSORS]), FIELDS) == []


@pytest.mark.parametrize("trial", [CONTACTS, FIELDS], ids=["opportunistic", "field"])
def test_skeletons_are_good(trial: Trial, tmp_path: Path) -> None:
    kind = trial.module.split(".")[1]
    own = mine(tmp_path, (resources.files(f"serai.{kind}.kit") / "skeleton.txt").read_text("utf-8"), trial)
    assert disagreements(own, trial) == []
    assert trial.known_answers(own_protocol(own)) == ""
    assert [found for seed in range(20) if (found := trial.broken_rule(trial.play(own_protocol(own), seed)))] == []


def test_what_an_object_asks_the_engine_is_on_the_tape(tmp_path: Path) -> None:
    """A router that lets go of what it has sent, if a list of all nodes is short: in a fresh one it always is."""
    assert "discard" in disagreements(mine(tmp_path, LETS_GO), CONTACTS)[0]


def test_who_claims_to_be_stable_is_asked_again(tmp_path: Path) -> None:
    found = problems(mine(tmp_path, UNSTABLE), CONTACTS, worlds=100)
    assert "changed its mind in between" in found["stable"]
    assert found["each node alone"] == ""


def test_who_never_hands_anything_over_fails_in_a_small_world(tmp_path: Path) -> None:
    for trial, kind, base, what in (
        (CONTACTS, "opportunistic", "Router", "was not handed the bundle"),
        (FIELDS, "field", "Sensor", "received none of its"),
    ):
        own = mine(tmp_path, SAYS_NO.format(kind=kind, base=base), trial)
        assert what in trial.known_answers(own_protocol(own))


def test_what_nobody_looks_at_may_be_anything(tmp_path: Path) -> None:
    text = ANSWERS.replace("def offers(self, copy, peer, now)", "def contact_up(self, peer, now)")
    own = mine(tmp_path, text.format("object()"))
    assert disagreements(own, CONTACTS) == []


def test_a_visitors_mistake_has_its_own_line(tmp_path: Path) -> None:
    text = VISITORS.replace("self.seen.append(copy.event)", "return object()")
    own = mine(tmp_path, text.replace("received(self, copy, sensor, attached, now)", "tell(self, now)"), FIELDS)
    with pytest.raises(BadInput, match=r"mine.py:7: Mule.tell: a object cannot be told"):
        tapes_of(own_protocol(own), own, FIELDS, 0)


def test_a_mistake_has_its_line_in_whichever_check_it_is_met(tmp_path: Path) -> None:
    text = ANSWERS.replace("return {}", "return 1 / (copy.id < 0)")  # no random world is played before
    *passed, last = check_protocol(mine(tmp_path, text), CONTACTS._replace(known_answers=lambda _: ""), worlds=0)
    assert [one.problem for one in passed] == [""] * 3
    assert last.what.startswith("no state")
    assert "mine.py:7: Mine.offers: ZeroDivisionError: division by zero (node " in last.problem
