"""How fast and how large: one run of each field protocol, and its growth at constant density.

    make bench                 everything, a few minutes
    python benchmarks/field.py --quick

CPU time, after compilation; every size in a process of its own, so that its peak memory is its own. Prints what it ran.
"""

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import serai
from serai.field.log import FieldRun
from serai.field.simulation import build_world, order_key, run_protocol

PROTOCOLS = ("dg", "ced", "cet", "serai")
AIMS_MS = {"dg": 10, "ced": 20, "cet": 28, "serai": 60}
AIM_GROWTH = 1.3  # cost of a transfer among the most sensors, in that among a thousand
SEEDS = 40
HARVEST_SEEDS, HARVEST_ROUNDS = 10, 5
SIZES = (100, 1_000, 5_000, 20_000)
LARGEST = {"serai": 5_000}  # 20,000 take about half an hour


def cpu_s(action: Callable[[], Any]) -> float:
    """CPU seconds of this process that an action takes."""
    begin = time.process_time()
    action()
    return time.process_time() - begin


def scenario_of(name: str, sets: Sequence[str] = ()) -> Any:
    """The papers' protocols in their own set-ups, ours in the one for all."""
    return serai.load_scenario("field" if name == "serai" else name, sets, name)


def machine() -> str:
    """What this ran on."""
    model = platform.processor() or "unknown processor"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, serai {serai.__version__}"


def one_run() -> None:
    """Default scenarios, ledger only: the mean over seeds, beside what we aim at."""
    print(f"\none 2 h run at defaults, ledger only, mean of {SEEDS} seeds, CPU ms on one core")
    print(
        f"{'':6}{'world':>8}{'protocol':>10}{'measure':>9}{'simulate':>10}{'aim':>6}{'transfers':>11}{'ns/transfer':>13}"
    )
    for name in PROTOCOLS:
        scenario = scenario_of(name)
        serai.measure(serai.simulate(scenario))
        world_s = protocol_s = measure_s = 0.0
        transfers = 0
        for seed in range(SEEDS):
            begin = time.process_time()
            world = build_world(scenario, seed)
            built = time.process_time()
            ledger, _ = run_protocol(world, scenario, order_key(seed), False)
            done = time.process_time()
            run = FieldRun(scenario, name, seed, world, ledger, None)
            measured = cpu_s(lambda run=run: serai.measure(run))
            world_s, protocol_s, measure_s = world_s + built - begin, protocol_s + done - built, measure_s + measured
            transfers += int(ledger.transmissions.sum())
        total_ms = 1e3 * (world_s + protocol_s) / SEEDS
        print(
            f"{name:6}{1e3 * world_s / SEEDS:8.2f}{1e3 * protocol_s / SEEDS:10.2f}{1e3 * measure_s / SEEDS:9.2f}"
            f"{total_ms:10.2f}{AIMS_MS[name]:6}{transfers / SEEDS:11.0f}{1e9 * protocol_s / transfers:13.1f}",
            flush=True,
        )


def harvest() -> None:
    """What sun costs where no battery is ever empty, so that it changes nothing: with and without it in turn."""
    print(f"\nsensors harvest, batteries last: 2 h, {HARVEST_SEEDS} seeds, least of {HARVEST_ROUNDS} rounds, CPU ms")
    print(f"{'':6}{'without':>9}{'with':>9}{'more':>9}")
    for name in PROTOCOLS:
        scenarios = scenario_of(name), scenario_of(name, ["sensors.harvest=1 mW"])
        rounds = []
        for _ in range(HARVEST_ROUNDS + 1):  # the first one compiles
            spent = [0.0, 0.0]
            for seed in range(HARVEST_SEEDS):
                for i, scenario in enumerate(scenarios):
                    spent[i] += cpu_s(lambda scenario=scenario, seed=seed: serai.simulate(scenario, seed=seed))
            rounds.append(spent)
        without, sunny = (1e3 * min(spent[i] for spent in rounds[1:]) / HARVEST_SEEDS for i in range(2))
        print(f"{name:6}{without:9.1f}{sunny:9.1f}{100 * (sunny / without - 1):+8.0f}%", flush=True)


def grown(name: str, sensors: int) -> dict[str, float]:
    """One run with so many sensors (and a tenth of it subscribers) at the density of the papers."""
    side = math.sqrt(sensors / 100)
    sets = [
        f"sensors.count={sensors}",
        f"subscribers.count={sensors // 10}",
        f"field.width={200 * side} m",
        f"field.height={200 * side} m",
        f"field.cells={round(15 * side)}",
    ]
    serai.simulate(scenario_of(name))
    scenario = scenario_of(name, sets)
    begin = time.process_time()
    run = serai.simulate(scenario)
    spent = time.process_time() - begin
    return {
        "cpu_s": spent,
        "events": len(run.world.event_sensor),
        "transfers": int(run.ledger.transmissions.sum()),
        "peak_mib": peak_mib(),
        "control_bits": run.ledger.control_bits,
        "largest": int((run.world.communities.member_start[1:] - run.world.communities.member_start[:-1]).max()),
    }


def peak_mib() -> float:
    """The most memory this process has used: of itself alone, where the system tells it apart from its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return int(lines["VmHWM"].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def growth(asked: tuple[int, ...]) -> None:
    """The same density, more of everything: time, memory, and the exponents between the first and last size."""
    print("\ngrowth at constant density, a tenth as many subscribers as sensors, 2 h, seed 0, one process each")
    print(
        f"{'':6}{'sensors':>8}{'CPU s':>9}{'events':>10}{'transfers':>12}{'us/event':>10}{'ns/transfer':>13}"
        f"{'peak MiB':>10}{'largest community':>19}"
    )
    for name in PROTOCOLS:
        sizes = tuple(size for size in asked if size <= LARGEST.get(name, size))
        rows = []
        for sensors in sizes:
            command = [sys.executable, __file__, "--grown", name, str(sensors)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            row = json.loads(answer)
            rows.append(row)
            print(
                f"{name:6}{sensors:8}{row['cpu_s']:9.3f}{row['events']:10}{row['transfers']:12}"
                f"{1e6 * row['cpu_s'] / row['events']:10.1f}{1e9 * row['cpu_s'] / row['transfers']:13.1f}"
                f"{row['peak_mib']:10.0f}{row['largest']:19}",
                flush=True,
            )
        scale = math.log(sizes[-1] / sizes[0])
        exponents = {key: math.log(rows[-1][key] / rows[0][key]) / scale for key in ("cpu_s", "events", "transfers")}
        print(
            f"{name:6}grows as n^{exponents['cpu_s']:.2f} in CPU time, n^{exponents['transfers']:.2f} in transfers: "
            f"CPU per event n^{exponents['cpu_s'] - exponents['events']:.2f}, "
            f"per transfer n^{exponents['cpu_s'] - exponents['transfers']:.2f}"
        )
        each = {sensors: row["cpu_s"] / row["transfers"] for sensors, row in zip(sizes, rows, strict=True)}
        ratio = each[sizes[-1]] / each[1_000]
        print(
            f"{name:6}a transfer among {sizes[-1]:,} sensors costs {ratio:.2f} times as much as among 1,000"
            f" (aim: {AIM_GROWTH})"
        )
        if name == "serai":
            control_bits(sizes, rows)


def control_bits(sizes: tuple[int, ...], rows: Sequence[dict[str, Any]]) -> None:
    """What each kind of control message comes to, for each sensor: what stays the same grows no faster than sensors."""
    print("\ncontrol bits of SERAI per sensor\n" + " " * 14 + "".join(f"{sensors:>10,}" for sensors in sizes))
    for kind in rows[0]["control_bits"]:
        per_sensor = [row["control_bits"][kind] / sensors for sensors, row in zip(sizes, rows, strict=True)]
        print(f"{kind:14}" + "".join(f"{bits:10.0f}" for bits in per_sensor))


def start_up() -> None:
    """What a user waits for before anything happens: CPU of whole processes, the interpreter's own beside them."""
    print("\nstart-up, CPU s of a whole process, best of 5")
    for label, words in (
        ("python -c pass", ["-c", "pass"]),
        ("import serai", ["-c", "import serai"]),
        ("serai --help", ["-c", "import sys; from serai.cli import main; sys.argv = ['serai', '--help']; main()"]),
    ):
        best = min(child_cpu_s([sys.executable, *words]) for _ in range(5))
        print(f"  {label:16}{best:6.3f}")


def child_cpu_s(command: list[str]) -> float:
    """CPU seconds of a child process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--quick", action="store_true", help="sizes up to 1,000 sensors only")
    words.add_argument("--grown", nargs=2, metavar=("PROTOCOL", "SENSORS"), help=argparse.SUPPRESS)
    asked = words.parse_args()
    if asked.grown:
        print(json.dumps(grown(asked.grown[0], int(asked.grown[1]))))
        return
    print(machine())
    start_up()
    one_run()
    harvest()
    growth(SIZES[:2] if asked.quick else SIZES)


if __name__ == "__main__":
    main()
