"""How fast opportunistic networks run: transfers per CPU second, and what a large network takes.

    python benchmarks/opportunistic.py [FOLDER]

FOLDER holds contacts.txt.gz and messages.txt.gz of a run of The ONE (110 nodes, 2 h); without it that part is left out.
Everything is CPU time of this process after the kernels are compiled; each part is run three times, the best counts.
"""

import math
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from serai.kinds import PROTOCOLS
from serai.lab import load_scenario, simulate
from serai.opportunistic.engine.state import Medium, Outcome
from serai.opportunistic.world import Bundles, ContactWorld, Subscriptions
from serai.traces import read_trace
from serai.world.contacts import Contacts, merged

ROUNDS = 3
LARGE_NODES, LARGE_CONTACTS, LARGE_BUNDLES, LARGE_S = 10_000, 10_000_000, 2_000, 86_400.0
THE_ONE_S = 39.6  # CPU seconds of The ONE for the same run, best setting, one core (measured elsewhere)


def best(run: Callable[[], Any]) -> tuple[float, Any]:
    """The least CPU time of a few rounds, and the last answer."""
    least, answer = math.inf, None
    for _ in range(ROUNDS):
        begin = time.process_time()
        answer = run()
        least = min(least, time.process_time() - begin)
    return least, answer


def report(what: str, cpu_s: float, transfers: int) -> None:
    """One line."""
    print(
        f" {what:<46} {cpu_s:>7.3f} s CPU  {transfers:>10,} transfers  {transfers / cpu_s:>12,.0f} a second", flush=True
    )


def the_one(folder: Path) -> None:
    """The run of The ONE, with ticks and without."""
    contacts = folder / "contacts.txt.gz"
    reading_s, _ = best(lambda: read_trace(contacts, "auto"))
    text = f"""
duration = "2 h"
step = "1 s"
contacts = {{source = "trace", file = "{contacts}"}}
bundles = {{file = "{folder / "messages.txt.gz"}"}}
nodes = {{store = "5 MB"}}
radio = {{rate = "2 Mbps", single = true}}
protocol = {{name = "flooding", seen = "live", wanted_first = true, consume = true}}
"""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "one.toml"
        file.write_text(text)
        scenario = load_scenario(str(file))
    exact = scenario.model_copy(update={"step_s": 0.0})
    simulate(scenario)
    print(f" contacts of The ONE read in {reading_s:.3f} s CPU; below, read before")
    for what, chosen in (("The ONE's run, ticks of 1 s, one at a time", scenario), ("the same, event-driven", exact)):
        cpu_s, run = best(lambda chosen=chosen: simulate(chosen))
        report(what, cpu_s, sum(run.outcome.transfers.values()))
        if chosen is scenario:
            total_s = cpu_s + reading_s
            times = f"{THE_ONE_S / total_s:,.0f} times as long"
            print(f"   with reading {total_s:.3f} s; The ONE itself: {THE_ONE_S} s, {times}")


def large_world(number: int) -> ContactWorld:
    """Ten thousand nodes that meet at random for a minute on average, a few thousand bundles for everybody."""
    rng = np.random.default_rng(1)
    up_s = np.sort(rng.uniform(0, LARGE_S, number))
    a = rng.integers(0, LARGE_NODES - 1, number, dtype=np.int32)
    b = (a + 1 + rng.integers(0, LARGE_NODES - 1 - a)).astype(np.int32)
    down_s = up_s + rng.exponential(60.0, number)
    contacts = merged(Contacts(a, b, up_s, down_s))
    count = LARGE_BUNDLES
    bundles = Bundles(
        rng.integers(0, LARGE_NODES, count).astype(np.int32),
        rng.integers(0, 100, count).astype(np.int32),
        np.sort(rng.uniform(0, LARGE_S * 0.9, count)),
        rng.integers(1_000, 45_000, count),
        np.full(count, 3600.0),
    )
    wishes = 8 * LARGE_NODES
    subscriptions = Subscriptions(
        np.repeat(np.arange(LARGE_NODES, dtype=np.int32), 8),
        rng.integers(0, 100, wishes).astype(np.int32),
        np.full(wishes, -math.inf),
        np.full(wishes, math.inf),
    )
    return ContactWorld(LARGE_NODES, 100, contacts, bundles, subscriptions, np.ones(LARGE_NODES, bool))


def large() -> None:
    """A large network, once: time and memory."""
    world = large_world(LARGE_CONTACTS)
    medium = Medium(rate_bps=2e6, duration_s=LARGE_S, capacity_bytes=20_000_000)
    settings = PROTOCOLS["flooding"].settings(seen="live")
    begin = time.process_time()
    outcome: Outcome = PROTOCOLS["flooding"].simulate(world, medium, settings)
    cpu_s = time.process_time() - begin
    report(f"{LARGE_NODES:,} nodes, {len(world.contacts.a):,} contacts", cpu_s, sum(outcome.transfers.values()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"   {len(outcome.delivery_s):,} deliveries; peak memory of this process {peak:.2f} GiB")


def main() -> None:
    """All parts."""
    print("opportunistic networks, CPU time of one process, kernels compiled before")
    if len(sys.argv) > 1:
        the_one(Path(sys.argv[1]))
    for protocol in ("flooding", "dpsp", "spray", "prophet"):
        scenario = load_scenario("dpsp", protocol=protocol)
        simulate(scenario, seed=1)
        cpu_s, run = best(lambda scenario=scenario: simulate(scenario, seed=1))
        report(f"built-in dpsp under {protocol}, 100 nodes, 6 h", cpu_s, sum(run.outcome.transfers.values()))
    large()


if __name__ == "__main__":
    main()
