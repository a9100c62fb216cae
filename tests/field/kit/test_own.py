"""A field protocol in a file of the user's: run, kept, checked, and stopped where it breaks a rule."""

from pathlib import Path

import numpy as np
import pytest

from serai.core.errors import BadInput
from serai.field.kit.checks import TRIAL, play, rows
from serai.field.kit.family import SENSORS
from serai.lab import load_scenario, read_run, simulate, write_run
from serai.own.checking import check_protocol
from serai.own.loading import Own, find_own, own_protocol
from tests.adopted import forget_adopted as forget_adopted

EXAMPLES = Path(__file__).parents[3] / "examples" / "protocols" / "sensors.py"
SMALL = ["duration=5 min", "events.quiet=0 s", "events.interval=30 s", "sensors.count=30", "subscribers.count=4"]
HEAD = "from serai.field import Sensor, Visitor, setting\n\n\nclass Mine(Sensor):\n"


def mine(folder: Path, body: str) -> Path:
    """A protocol with this body, in a file; its body begins in line 5."""
    file = folder / "mine.py"
    file.write_text(HEAD + body)
    return file


def own_in(file: Path, name: str) -> Own:
    return find_own(file, name, [SENSORS])


def test_from_the_file_to_the_folder_and_back(tmp_path: Path) -> None:
    file = mine(tmp_path, "    limit: int = setting(3, ge=1, doc='How many.')\n")
    run = simulate(load_scenario("field", [*SMALL, "protocol.limit=5"], str(file)), seed=2, full_log=True)
    write_run(run, tmp_path / "run")
    file.unlink()
    kept = read_run(tmp_path / "run")
    assert kept.metrics == run.metrics
    assert kept.scenario.protocol.limit == 5


def test_another_relay_is_another_way_and_the_same_deliveries_are_possible() -> None:
    scenario = load_scenario("field", [*SMALL, "sensors.count=60"])
    ced, rested = (simulate(scenario, f"{EXAMPLES}:{name}", seed=1, full_log=True) for name in ("Ced", "Rested"))
    assert ced.full.transfers.receiver.tolist() != rested.full.transfers.receiver.tolist()
    assert abs(ced.metrics.delivery_ratio - rested.metrics.delivery_ratio) < 0.05


def test_visitors_carry_events_to_sensors_that_never_had_them() -> None:
    own = own_protocol(find_own(EXAMPLES, "Carried", [SENSORS]))
    flood = own_protocol(find_own(EXAMPLES, "CommunityFlood", [SENSORS]))
    returned = 0
    for seed in range(20):
        _, _, ledger, full = play(own, seed)
        sensors = len(ledger.sent)
        back = full.transfers.sender >= sensors
        assert (full.transfers.receiver[back] < sensors).all()
        returned += int(full.transfers.stored[back].sum())
        assert not (play(flood, seed)[3].transfers.sender >= sensors).any()
    assert returned > 20


def test_events_of_small_communities_are_returned_to_others() -> None:
    scenario = load_scenario("field", [*SMALL, "duration=20 min", "sensors.count=60"])
    run = simulate(scenario, f"{EXAMPLES}:Returned", seed=1, full_log=True)
    community, transfers = run.world.communities.of_sensor, run.full.transfers
    takers = transfers.receiver[transfers.sender >= len(run.world.sensor_x)]
    assert len(takers) > 10
    assert (np.bincount(community)[community[takers]] > 1).all()
    assert run.metrics.delivered_pairs > simulate(scenario, f"{EXAMPLES}:Ced", seed=1).metrics.delivered_pairs


def test_what_is_told_is_heard_and_paid_for(tmp_path: Path) -> None:
    body = """    every_s = 60

    def start(self):
        self.heard = {}

    def tell(self, now):
        return {"left": self.left_j, "known": tuple(sorted(self.heard))}

    def reply(self, visitor, now):
        return len(self.queue)

    def hear(self, sender, content, now):
        self.heard[sender] = content["left"]

    def offers(self, copy, to, now):
        return to.is_visitor and self.heard.keys() >= self.neighbors.keys()
"""
    scenario = load_scenario("field", SMALL, str(mine(tmp_path, body)))
    run = simulate(scenario, seed=1)
    assert run.ledger.control_messages["notice"] == 5 * 30
    assert run.ledger.control_bits["notice"] > 5 * 30 * (scenario.control.notice_bits + 8 * 10)
    assert run.ledger.control_bits["reply"] > run.ledger.control_messages["reply"] * scenario.control.reply_bits
    assert run.metrics.delivery_ratio > 0


@pytest.mark.parametrize(
    ("body", "place", "message"),
    [
        ("    def offers(self, copy, to, now):\n        return None\n", "mine.py:5", "answers None, not True or False"),
        ("    def priority(self, copy, now):\n        return float('nan')\n", "mine.py:5", "answers nan, not a number"),
        ("    def created(self, copy, now):\n        1 / 0\n", "mine.py:6", "ZeroDivisionError: division by zero"),
        ("    def created(self, copy, now):\n        copy.hops = 9\n", "mine.py:6", "copy.hops cannot be changed"),
        ("    def attach(self, copy, to, now):\n        return self\n", "mine.py:5", "a Mine cannot be told"),
        ("    def evict(self, copies, now):\n        return self\n", "mine.py:5", "none of the copies it was given"),
        (
            "    communities = True\n\n    def relay(self, copy, session, now):\n        return self.node\n",
            "mine.py:7",
            "none of session.closer",
        ),
        ("    def created(self, copy, now):\n        self.discard(copy)\n", "mine.py:6", "not in the queue"),
    ],
)
def test_whoever_breaks_a_rule_is_told_which_and_where(tmp_path: Path, body: str, place: str, message: str) -> None:
    scenario = load_scenario("field", [*SMALL, "sensors.queue=3", "sensors.count=60"], str(mine(tmp_path, body)))
    with pytest.raises(BadInput) as error:
        simulate(scenario, seed=0)
    assert message in str(error.value)
    assert place in str(error.value)
    assert "sensor " in str(error.value)
    assert "t = " in str(error.value)


def test_a_field_protocol_runs_on_fields_only(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="runs on networks of another kind"):
        load_scenario("dpsp", (), f"{EXAMPLES}:Ced")


def test_checks_find_what_runs_do_not_show(tmp_path: Path) -> None:
    assert [one.problem for one in check_protocol(own_in(EXAMPLES, "Carried"), TRIAL, worlds=20)] == [""] * 5
    shared = mine(tmp_path, "    met = []\n\n    def contact_up(self, peer, now):\n        self.met.append(peer.id)\n")
    found = {one.what: one.problem for one in check_protocol(own_in(shared, "Mine"), TRIAL, worlds=2)}
    assert "Mine.met changed during a run" in found["no state that nodes or runs share"]


def test_what_nobody_wrote_may_be_left_out(tmp_path: Path) -> None:
    """Visitors' turns are quicker without `attach` and the like: with one that does nothing they are the same."""
    (tmp_path / "sensors.py").write_text(EXAMPLES.read_text())
    own = mine(tmp_path, "    def attach(self, copy, to, now):\n        return None\n")
    own.write_text(
        own.read_text().replace("from serai.field import Sensor", "from sensors import DirectGathering as Sensor")
    )
    long_way, short_way = own_protocol(own_in(own, "Mine")), own_protocol(own_in(EXAMPLES, "DirectGathering"))
    played = [[rows(play(protocol, seed)) for seed in range(20)] for protocol in (long_way, short_way)]
    assert played[0] == played[1]
    assert sum(len(one[0]) for one in played[0]) > 500
