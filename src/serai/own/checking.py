"""What `serai protocols check` tries a protocol with: known answers, random worlds, and each node alone.

Against mistakes, not against malice.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from serai.core.errors import BadInput
from serai.own.alone import Part, Tape, disagreement, recorded
from serai.own.loading import Family, Own, own_protocol, simulate_executed, simulate_own
from serai.own.spelling import misspelt
from serai.scenario.protocol import Protocol

RANDOM_WORLDS: Final = 200
_ELSEWHERE: Final = 10  # worlds that are played in another process, too
_TAPED: Final = 4  # worlds in which the calls that each node gets are recorded


class Checked(NamedTuple):
    """One check: what was looked at, and what is wrong; empty: nothing."""

    what: str
    problem: str = ""


class Trial(NamedTuple):
    """How protocols of one kind of network are tried."""

    family: Family
    parts: tuple[Part, ...]  # the first one is the protocol's class
    module: str  # where the trial is, under the name TRIAL: another process looks for it there
    holds: str  # what holds in every run, for people
    play: Callable[[Protocol, int], Any]
    """Run a protocol in a random world, that of a seed."""
    broken_rule: Callable[[Any], str]
    """What cannot have happened in a run; empty: all is well."""
    rows: Callable[[Any], Any]
    """What happened, as plain data."""
    known_answers: Callable[[Protocol], str]
    """What comes out wrong in worlds of which the answer is known; empty: nothing."""


def check_protocol(own: Own, trial: Trial, worlds: int = RANDOM_WORLDS) -> Iterator[Checked]:
    """Try a protocol, up to the first call that fails: it is told with its place, and would fail later checks, too."""
    protocol = own_protocol(own)
    checks: dict[str, Callable[[], str]] = {
        "no name that nobody uses, and that looks misspelt": lambda: "\n     ".join(misspelt(own)),
        "small worlds with known answers": lambda: trial.known_answers(protocol),
        f"{worlds} random worlds: {trial.holds}": lambda: _invariants(protocol, trial, worlds),
        "no state that nodes or runs share": lambda: _keeps_to_itself(protocol, own, trial),
        "each node alone, in another process under another hash seed": lambda: _alone(protocol, own, trial),
    }
    if _claims_stable(own):
        checks["stable: the same if it is asked again"] = lambda: _stable(protocol, own, trial, worlds)
    for what, look in checks.items():
        try:
            problem = look()
        except BadInput as error:
            yield Checked(what, str(error))
            return
        yield Checked(what, problem)


def _invariants(protocol: Protocol, trial: Trial, worlds: int) -> str:
    for seed in range(worlds):
        problem = trial.broken_rule(trial.play(protocol, seed))
        if problem:
            return f"random world {seed}: {problem}"
    return ""


def _keeps_to_itself(protocol: Protocol, own: Own, trial: Trial) -> str:
    """Runs one module twice, as no run does: what its module and its class hold must not change."""
    with own.executed() as cls:
        before = _held(cls)
        trial.play(replace(protocol, simulate=partial(simulate_executed, own, cls)), 0)
        after = _held(cls)
    changed = sorted(name for name in before if before[name] != after.get(name))
    if changed:
        return f"{', '.join(changed)} changed during a run: state goes into self, in start()"
    return ""


def _held(cls: type) -> dict[str, str]:
    module = sys.modules[cls.__module__]
    plain = {key: repr(value) for key, value in vars(module).items() if not key.startswith("__")}
    return plain | {f"{cls.__name__}.{key}": repr(value) for key, value in vars(cls).items() if key[:2] != "__"}


# ---- another process


def _alone(protocol: Protocol, own: Own, trial: Trial) -> str:
    tapes = [tape for seed in range(_TAPED) for tape in tapes_of(protocol, own, trial, seed)]
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    there = subprocess.run(
        [sys.executable, "-c", "from serai.own.checking import answer_errand; answer_errand()"],
        env=os.environ | {"PYTHONHASHSEED": "4711", "PYTHONPATH": path},
        input=pickle.dumps((own, trial.module, tapes)),
        capture_output=True,
        check=False,
    )
    if there.returncode:
        return f"it fails there: {there.stderr.decode(errors='replace').strip().splitlines()[-1]}"
    digest, disagrees = pickle.loads(there.stdout)
    if disagrees:
        return f"{disagrees}: {_LIKELY}"
    return "" if digest == _digest(protocol, trial) else f"other results: {_LIKELY}"


_LIKELY: Final = (
    "does it share state with other nodes, or use random, time, id() or the order of a set? There is self.random(now)"
)


def tapes_of(protocol: Protocol, own: Own, trial: Trial, seed: int) -> list[Tape]:
    """The calls that each node gets in the random world of a seed."""
    tapes: dict[int, Tape] = {}
    change = partial(recorded, parts=trial.parts, tapes=tapes)
    trial.play(replace(protocol, simulate=partial(simulate_own, own, change=change)), seed)
    return list(tapes.values())


def answer_errand() -> None:
    """In the other process: play the tapes to fresh objects, and some random worlds."""
    own, module, tapes = pickle.load(sys.stdin.buffer)
    trial: Trial = import_module(module).TRIAL
    found = next(filter(None, (disagreement(own, tape) for tape in tapes)), "")
    sys.stdout.buffer.write(pickle.dumps((_digest(own_protocol(own), trial), found)))


def _digest(protocol: Protocol, trial: Trial) -> str:
    """The results of some random worlds as one word."""
    digest = hashlib.sha256()
    for seed in range(_ELSEWHERE):
        digest.update(pickle.dumps(trial.rows(trial.play(protocol, seed))))
    return digest.hexdigest()


# ---- stable


def _claims_stable(own: Own) -> bool:
    with own.executed() as cls:
        return bool(getattr(cls, "stable", False))


def _stable(protocol: Protocol, own: Own, trial: Trial, worlds: int) -> str:
    asked = replace(protocol, simulate=partial(simulate_own, own, change=_asked_again))
    for seed in range(worlds):
        if trial.rows(trial.play(protocol, seed)) != trial.rows(trial.play(asked, seed)):
            return f"random world {seed}: `offers` or `priority` changed its mind in between; leave out `stable`"
    return ""


def _asked_again(cls: type) -> type:
    return type(cls.__name__, (cls,), {"stable": False, "__module__": cls.__module__})
