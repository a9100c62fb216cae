"""Where protocols of the user's come from: files, the modules beside them, installed packages; and what stops them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from serai.cli import execute
from serai.core.errors import BadInput
from serai.kinds import CATALOGUE, PROTOCOLS
from serai.lab import load_scenario, read_run, simulate, write_run
from serai.own.texts import remember_texts, texts_of
from serai.sweeping.plan import plan_sweep
from serai.sweeping.run import run_sweep
from tests.adopted import forget_adopted as forget_adopted

SMALL = ["duration=30 min", "nodes.count=20", "bundles.quiet=0 s", "bundles.lifetime=10 min"]
USES_ANOTHER = """
from serai.opportunistic import Router
from tastes import likes

class Mine(Router):
    def offers(self, copy, peer, now):
        return likes(copy)
"""
TASTES = """
calls = []

def likes(copy):
    calls.append(1)
    return copy.channel % 2 == 0
"""
WITH_DATACLASS = """
from __future__ import annotations
from dataclasses import dataclass
from serai.opportunistic import Router

@dataclass
class Known:
    number: int = 0

class Mine(Router):
    def start(self):
        self.known = Known()
"""
GOSSIP = """
from serai.opportunistic import Router, setting
from gossiping import count
from gossiping.chance import SHARE

class Gossip(Router):
    share: float = setting(SHARE, ge=0, le=1, doc="Of whom.")

    def offers(self, copy, peer, now):
        count[0] += 1
        return self.random(0, copy.id, peer.id) < self.share
"""
LOOPS = """
from serai.opportunistic import Router

class Mine(Router):
    def contact_up(self, peer, now):
        while True:
            try:
                sorted(range(1000))
            except Exception:
                pass
"""
IN_C = """
from itertools import count

def never():
    max(count())
"""
NEVER_IN_C = """
import sys
from mine import never
from serai.own import mistakes
from serai.own.origins import File
mistakes._IN_C_S = 0.5
with mistakes.no_endless_calls(File("mine.py")):
    never()
"""


@pytest.fixture
def two_files(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(USES_ANOTHER)
    (tmp_path / "tastes.py").write_text(TASTES)
    return tmp_path / "mine.py"


def test_modules_of_its_folder_belong_to_a_protocol(two_files: Path) -> None:
    run = simulate(load_scenario("dpsp", SMALL, str(two_files)), seed=1)
    assert run.outcome.transfers["relayed"] > 0
    assert (run.world.bundles.channel[run.outcome.relays > 0] % 2 == 0).all()
    assert "tastes" not in sys.modules
    assert list(texts_of(str(two_files))) == [str(two_files), str(two_files.parent / "tastes.py")]
    write_run(run, two_files.parent / "run")
    two_files.unlink()
    (two_files.parent / "tastes.py").unlink()
    assert read_run(two_files.parent / "run").metrics == run.metrics


def test_a_sweep_takes_them_along_and_knows_them(spark: Any, two_files: Path) -> None:
    before = plan_sweep("dpsp", SMALL, [str(two_files), "flooding"], 1)
    beside = two_files.parent / "tastes.py"
    beside.write_text(beside.read_text().replace("== 0", "== 1"))
    plan = plan_sweep("dpsp", SMALL, [str(two_files), "flooding"], 1)
    assert plan.cells[0].id != before.cells[0].id
    assert plan.cells[1].id == before.cells[1].id
    done = run_sweep(plan, two_files.parent / "out", spark)
    assert done.estimates[0, "Mine"]["transfers_relayed"].mean > 0
    assert done.estimates[0, "Mine"]["bundles"] == done.estimates[0, "flooding"]["bundles"]


def test_field_protocols_are_known_by_their_text(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("from serai.field import Sensor\n\n\nclass Mine(Sensor):\n    pass\n")
    (tmp_path / "own.toml").write_text('[protocol]\nname = "Mine"\nfile = "mine.py"\n')
    before = plan_sweep(str(tmp_path / "own.toml"), {}, [], 1).cells[0]
    assert before.scenario.protocol.file == file
    file.write_text(file.read_text() + "\n    # another version\n")
    assert plan_sweep(str(tmp_path / "own.toml"), {}, [], 1).cells[0].id != before.id


def test_what_is_wrong_in_a_module_beside_it_is_told_with_its_line(two_files: Path) -> None:
    beside = two_files.parent / "tastes.py"
    beside.write_text("def likes(copy):\n    return copy.colour\n")
    with pytest.raises(BadInput, match=r"tastes.py:2: Mine.likes: AttributeError: .*\(node \d+, t = "):
        simulate(load_scenario("dpsp", SMALL, str(two_files)), seed=1)
    beside.write_text("x = 1 / 0\n")
    with pytest.raises(BadInput, match=r"tastes.py:1: ZeroDivisionError"):
        load_scenario("dpsp", SMALL, str(two_files))
    beside.write_text("def likes(:\n")
    with pytest.raises(BadInput, match=r"tastes.py:1: not valid Python"):
        load_scenario("dpsp", SMALL, str(two_files))


def test_what_a_worker_was_told_counts_and_not_what_stands_there(two_files: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("serai.own.texts._PINNED", {})
    said = texts_of(str(two_files))
    two_files.write_text("from serai.opportunistic import Router\n")
    remember_texts(said, pinned=True)
    assert texts_of(str(two_files)) == said


def test_dataclasses_and_late_annotations_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(WITH_DATACLASS)
    run = simulate(load_scenario("dpsp", SMALL, str(tmp_path / "mine.py")), seed=1)
    assert run.metrics.delivered_pairs > 0


# ---- installed packages


@pytest.fixture
def package(tmp_path: Path, monkeypatch: Any) -> Path:
    """A package with two modules, as pip leaves it."""
    files = {
        "gossiping/__init__.py": "count = [0]\n",
        "gossiping/chance.py": "SHARE = 0.5\n",
        "gossiping/routers.py": GOSSIP,
        "gossiping-1.2.dist-info/METADATA": "Metadata-Version: 2.1\nName: gossiping\nVersion: 1.2\n",
        "gossiping-1.2.dist-info/entry_points.txt": "[serai.protocols]\ngossip = gossiping.routers:Gossip\n"
        "broken = gossiping.routers:Nobody\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path / "gossiping"


def test_a_protocol_of_an_installed_package(package: Path, tmp_path: Path) -> None:
    scenario = load_scenario("dpsp", [*SMALL, "protocol.share=0.4"], "gossip")
    assert PROTOCOLS["gossip"].paper == "gossiping.routers (gossiping 1.2)"
    first, second = (simulate(scenario, seed=3) for _ in range(2))
    assert first.metrics == second.metrics
    assert "gossiping" not in sys.modules
    assert 0 < first.outcome.transfers["relayed"] < simulate(scenario, "flooding", 3).outcome.transfers["relayed"]
    write_run(first, tmp_path / "run")
    assert read_run(tmp_path / "run").metrics == first.metrics
    before = plan_sweep(scenario, {}, [], 1).cells[0].id
    (package / "routers.py").write_text((package / "routers.py").read_text() + "# another version\n")
    assert plan_sweep(scenario, {}, [], 1).cells[0].id != before


def test_installed_protocols_are_listed(package: Path, capfd: Any) -> None:
    assert execute(["protocols"]) == 0
    said = capfd.readouterr()
    assert "share = 0.5" in said.out
    assert "broken: gossiping.routers (gossiping 1.2): no protocol Nobody in it" in said.err


def test_offers_that_cannot_be_used(package: Path) -> None:
    with pytest.raises(
        BadInput, match=r"gossiping.routers \(gossiping 1.2\): no protocol Nobody in it; it has: Gossip"
    ):
        CATALOGUE.known("broken")
    (package / "chance.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(BadInput, match="cannot be imported: No module named 'nothing_of_that_name'"):
        CATALOGUE.known("gossip")


# ---- calls that never end


def test_a_call_that_never_ends_is_stopped_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(LOOPS)
    with pytest.raises(BadInput, match=r"mine.py:\d+: Mine.contact_up: this call takes more than two seconds; does it"):
        simulate(load_scenario("dpsp", SMALL, str(tmp_path / "mine.py")), seed=1)


def test_a_call_that_never_ends_in_c_ends_the_process_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(IN_C)
    command = [sys.executable, "-c", NEVER_IN_C]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == -27  # by the profiling timer
    assert 'mine.py", line 5 in never' in done.stderr
