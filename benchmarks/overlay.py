"""How fast and how large: TinyMQ and PUB-2-SUB+ in key-based overlays.

    make bench                 everything, some minutes
    python benchmarks/overlay.py --quick

CPU time, after compilation; every size in a process of its own, so that its peak memory is its own. Prints what it ran.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from typing import Any

import numpy as np
from field import machine, peak_mib  # benchmarks/field.py, beside this file

import serai
from serai.overlay.engine import run as overlay
from serai.overlay.engine.rendezvous import route_events
from serai.overlay.engine.state import NONE
from serai.overlay.engine.trees import plant
from serai.overlay.simulation import build_network
from serai.overlay.tinymq import MOST_BITS, STRICT

SYSTEMS = ("tinymq", "pub2sub")
TREES = range(1, 11)
SIZES = ((1_500, 100, 10_000), (10_000, 1_000, 100_000), (100_000, 10_000, 1_000_000))
LENGTHS = (12, 40, MOST_BITS)
AIM_EVALUATION_S, AIM_DECISIONS, AIM_GIB = 10, 1e7, 4


def warm() -> None:
    """Compile everything."""
    for system in SYSTEMS:
        changes = ["nodes.count=60", "field.width=100 m", "field.height=40 m", "roots.count=2"]
        for queries in (1, 100):  # shortest paths from nodes far apart, and close together
            changed = [*changes, f"subscriptions.count={queries}"]
            serai.measure(serai.simulate(serai.load_scenario("tinymq", changed, system)))


def evaluation() -> None:
    """The paper's whole evaluation on one network: both systems, 1 .. 10 trees."""
    begin = time.process_time()
    for system in SYSTEMS:
        for trees in TREES:
            scenario = serai.load_scenario("tinymq", [f"roots.count={trees}"], system)
            metrics = serai.measure(serai.simulate(scenario, seed=0))
            assert metrics.delivery_ratio == 1.0
    spent = time.process_time() - begin
    print("\nthe paper's evaluation: 1500 nodes, 100 queries, 10,000 events, 1 .. 10 trees, both systems, seed 0")
    print(f"  {spent:.2f} CPU s, network, simulation and metrics of all 20 runs (aim: {AIM_EVALUATION_S})")


def decisions() -> None:
    """Next hops decided each second by the kernel that routes events."""
    print(f"\nnext-hop decisions, one core, best of 5 x 10,000 events (aim: {AIM_DECISIONS:.0e} a second)")
    for system in SYSTEMS:
        scenario = serai.load_scenario("tinymq", [], system)
        network = build_network(scenario, 0)
        tables = overlay._tables(network, scenario.protocol)
        layer = plant(
            network.graph,
            network.roots,
            scenario.protocol.layers(len(network.roots)),
            tables.parameters.routing,
            tables.parameters.bits,
        )[0]
        tree = np.searchsorted(layer.trees, layer.nodes["tree"][network.publisher])
        alive, counts = np.ones(len(network.names), np.bool_), np.zeros((2, len(network.names)), np.int64)
        best = math.inf
        for _ in range(5):
            begin = time.process_time()
            _, hops = route_events(
                layer,
                tables.parameters,
                network.publisher,
                tables.rendezvous_keys,
                tree.astype(np.int32),
                alive,
                *counts,
            )
            best = min(best, time.process_time() - begin)
        made = int(hops.sum()) + len(hops)
        print(f"  {system:8}{made:9,} decisions in {1e3 * best:6.2f} ms: {made / best:.2e} a second")


def sized(system: str, nodes: int, queries: int, events: int) -> dict[str, Any]:
    """One run with so many nodes at the paper's density, ten trees."""
    side = math.sqrt(nodes / 1500)
    changes = [
        f"nodes.count={nodes}",
        f"field.width={500 * side} m",
        f"field.height={200 * side} m",
        f"subscriptions.count={queries}",
        f"events.count={events}",
    ]
    warm()
    begin = time.process_time()
    run = serai.simulate(serai.load_scenario("tinymq", changes, system), seed=0)
    simulated = time.process_time() - begin
    metrics = serai.measure(run)
    return {
        "simulate_s": simulated,
        "measure_s": time.process_time() - begin - simulated,
        "peak_mib": peak_mib(),
        "transmissions": int(run.outcome.load.sent.sum()),
        "delivery_ratio": metrics.delivery_ratio,
        "pairs": metrics.delivered_pairs,
        "degree": float(np.diff(run.network.graph.start).mean()),
        "state": metrics.state_per_node,
    }


def growth(sizes: tuple[tuple[int, int, int], ...]) -> None:
    """The same density, more of everything."""
    print(f"\ngrowth at constant density, ten trees, seed 0, one process each (aim: within {AIM_GIB} GiB)")
    print(
        f"{'':9}{'nodes':>8}{'queries':>9}{'events':>11}{'simulate s':>12}{'measure s':>11}{'peak MiB':>10}"
        f"{'delivered':>11}{'pairs':>11}{'degree':>8}{'state/node':>12}"
    )
    for system in SYSTEMS:
        for size in sizes:
            command = [sys.executable, __file__, "--sized", system, *map(str, size)]
            row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(
                f"{system:9}{size[0]:8,}{size[1]:9,}{size[2]:11,}{row['simulate_s']:12.2f}{row['measure_s']:11.2f}"
                f"{row['peak_mib']:10.0f}{row['delivery_ratio']:11.3f}{row['pairs']:11,}{row['degree']:8.1f}"
                f"{row['state']:12.1f}",
                flush=True,
            )


def zones(trees: int, by_subtree: bool, nodes: int) -> tuple[Any, Any]:
    """Of keys without end: the share of all events that meets at each node, and the length of the node's key."""
    side = math.sqrt(nodes / 1500)
    changes = [
        f"nodes.count={nodes}",
        f"field.width={500 * side} m",
        f"field.height={200 * side} m",
        f"roots.count={trees}",
        "subscriptions.count=1",
        "events.count=1",
    ]
    scenario = serai.load_scenario("tinymq", changes)
    network = build_network(scenario, 0)
    layers = scenario.protocol.layers(trees)
    grown = plant(network.graph, network.roots, layers, STRICT, MOST_BITS, by_subtree)[0].nodes
    length, parent = grown["length"].astype(np.float64), grown["parent"]
    # Values are even, so a key of n bits begins 2^-n of all rendezvous keys of its tree; children take theirs from it.
    share = np.exp2(-length)
    np.subtract.at(share, parent[parent != NONE], np.exp2(-length[parent != NONE]))
    return share * np.bincount(grown["tree"])[grown["tree"]] / nodes, grown["length"]


def spread(nodes: int) -> None:
    """How many events meet at which nodes, and how many of them meet elsewhere if rendezvous keys are longer."""
    print(f"\nwhere the events of {nodes:,} nodes meet, seed 0, if rendezvous keys had no end; exact, for even values")
    print("  trees  zones     busiest, %  half meet at  longest key  meet at keys of more bits than", *LENGTHS)
    for trees in (10, 1):
        for by_subtree in (False, True):
            share, length = zones(trees, by_subtree, nodes)
            half = int(np.searchsorted(np.cumsum(np.sort(share)[::-1]), 0.5)) + 1
            beyond = "  ".join(f"{100 * share[length > bits].sum():.2g} %" for bits in LENGTHS)
            name = "subtree" if by_subtree else "arrival"
            print(f"  {trees:5}  {name}{100 * share.max():12.2f}{half:14,}{length.max():13,}  {beyond}", flush=True)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--quick", action="store_true", help="sizes up to 10,000 nodes only")
    words.add_argument("--sized", nargs=4, metavar=("SYSTEM", "NODES", "QUERIES", "EVENTS"), help=argparse.SUPPRESS)
    asked = words.parse_args()
    if asked.sized:
        print(json.dumps(sized(asked.sized[0], *map(int, asked.sized[1:]))))
        return
    print(machine())
    warm()
    evaluation()
    decisions()
    spread(SIZES[1][0] if asked.quick else SIZES[-1][0])
    growth(SIZES[:2] if asked.quick else SIZES)


if __name__ == "__main__":
    main()
