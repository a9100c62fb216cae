"""How fast traces are read, and who meets whom is found.

    python benchmarks/traces.py            a minute
    python benchmarks/traces.py --quick    a tenth of it

CPU time of one core after compilation; files are made in a temporary folder. Prints what it ran.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from serai.traces import read_trace
from serai.world.contacts import Journeys, at_ticks, contacts_by_range
from serai.world.grid import Grid
from serai.world.mobility import random_waypoint

WALKERS, SIDE_M, RANGE_M, DURATION_S = 1_000, 603.0, 20.0, 7_200.0
AIM_LINES, AIM_CONTACTS_S = 1.5e6, 1.5


def cpu_s(action: Callable[[], Any]) -> float:
    """CPU seconds that an action takes when it is done for the second time."""
    action()
    begin = time.process_time()
    action()
    return time.process_time() - begin


def one_contacts(rng: np.random.Generator, lines: int) -> Iterator[str]:
    pairs = rng.integers(0, 1000, (lines // 2, 2))
    for row, (a, b) in enumerate(pairs.tolist()):
        yield f"{row}.00 CONN {a} {b + 1000} up\n{row + 0.5:.2f} CONN {a} {b + 1000} down\n"


def crawdad(rng: np.random.Generator, lines: int) -> Iterator[str]:
    pairs = rng.integers(0, 1000, (lines, 2))
    for row, (a, b) in enumerate(pairs.tolist()):
        yield f"{a} {b + 1000} {row} {row + 30} 1 0\n"


def begin_duration(rng: np.random.Generator, lines: int) -> Iterator[str]:
    pairs = rng.integers(0, 1000, (lines, 2))
    for row, (a, b) in enumerate(pairs.tolist()):
        yield f"{a} {b + 1000} {row} {row % 7 + 30}\n"


def sightings(rng: np.random.Generator, lines: int) -> Iterator[str]:
    pairs = rng.integers(0, 1000, (lines, 2))
    for row, (a, b) in enumerate(pairs.tolist()):
        yield f"{row // 500 * 20} {a} {b + 1000}\n"


def sightings_time_last(rng: np.random.Generator, lines: int) -> Iterator[str]:
    pairs = rng.integers(0, 1000, (lines, 2))
    for row, (a, b) in enumerate(pairs.tolist()):
        yield f"{a} {b + 1000} {row // 500 * 20}\n"


def sociopatterns(rng: np.random.Generator, lines: int) -> Iterator[str]:
    pairs = rng.integers(0, 1000, (lines, 2))
    for row, (a, b) in enumerate(pairs.tolist()):
        yield f"{row // 500 * 20}\t{a}\t{b + 1000}\t1A\t2B\n"


def one_movement(rng: np.random.Generator, lines: int) -> Iterator[str]:
    yield f"0 {lines} 0 1000 0 1000\n"
    for row, (x, y) in enumerate(rng.random((lines, 2)).tolist()):
        yield f"{row // 1000} {row % 1000} {1000 * x:.2f} {1000 * y:.2f}\n"


def bonnmotion(rng: np.random.Generator, lines: int) -> Iterator[str]:
    """A line for each of a thousand nodes; what counts are its points, of which there are as many as asked for."""
    for _ in range(1000):
        places = rng.random((lines // 1000, 2)).tolist()
        yield " ".join(f"{row}.0 {1000 * x:.2f} {1000 * y:.2f}" for row, (x, y) in enumerate(places)) + "\n"


def gpx(rng: np.random.Generator, lines: int) -> Iterator[str]:
    yield '<?xml version="1.0"?>\n<gpx version="1.1" creator="benchmark" xmlns="http://www.topografix.com/GPX/1/1">\n'
    for row, (x, y) in enumerate(rng.random((lines, 2)).tolist()):
        if row % 1000 == 0:
            yield f"{'</trkseg></trk>' if row else ''}<trk><name>walker {row // 1000}</name><trkseg>\n"
        clock = f"{row % 1000 // 60:02}:{row % 60:02}"
        yield f'<trkpt lat="{53 + y:.7f}" lon="{6 + x:.7f}"><time>2026-05-01T12:{clock}Z</time></trkpt>\n'
    yield "</trkseg></trk></gpx>\n"


def ns2(rng: np.random.Generator, lines: int) -> Iterator[str]:
    for row, (x, y) in enumerate(rng.random((lines, 2)).tolist()):
        yield f'$ns_ at {row // 1000}.0 "$node_({row % 1000}) setdest {1000 * x:.4f} {1000 * y:.4f} {1 + x:.4f}"\n'


def movebank(rng: np.random.Generator, lines: int) -> Iterator[str]:
    yield "event-id,visible,timestamp,location-long,location-lat,ground-speed,individual-local-identifier,study-name\n"
    for row, (x, y) in enumerate(rng.random((lines, 2)).tolist()):
        day, second = divmod(row // 20, 86_400)
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.000"
        yield f'{row},true,2026-05-{1 + day:02} {clock},{6 + x:.7f},{53 + y:.7f},0.5,"bird {row % 20}","A study"\n'


def sumo(rng: np.random.Generator, lines: int) -> Iterator[str]:
    yield "<fcd-export>\n"
    for row, (x, y) in enumerate(rng.random((lines, 2)).tolist()):
        if row % 1000 == 0:
            yield f'{"</timestep>" if row else ""}<timestep time="{row // 1000}.00">\n'
        yield f'<vehicle id="v{row % 1000}" x="{1000 * x:.2f}" y="{1000 * y:.2f}" angle="90.00" speed="13.89"/>\n'
    yield "</timestep></fcd-export>\n"


WRITERS = (
    one_contacts,
    crawdad,
    begin_duration,
    sightings,
    sightings_time_last,
    sociopatterns,
    one_movement,
    bonnmotion,
    ns2,
    gpx,
    movebank,
    sumo,
)


def reading(lines: int) -> None:
    """Lines per second of each format."""
    print(f"\nreading {lines:,} lines, CPU time of one core; aim {AIM_LINES / 1e6:.1f} million lines/s")
    print(f"{'':20}{'MB':>8}{'CPU s':>8}{'lines/s':>14}")
    with tempfile.TemporaryDirectory() as folder:
        for write in WRITERS:
            path = Path(folder) / "trace"
            path.write_text("".join(write(np.random.default_rng(1), lines)))
            form = write.__name__.replace("_", "-")
            spent_s = cpu_s(lambda path=path, form=form: read_trace(path, form))
            missed = "" if lines / spent_s >= AIM_LINES else "  (missed)"
            print(
                f"{form:20}{path.stat().st_size / 1e6:8.1f}{spent_s:8.2f}{lines / spent_s:14,.0f}{missed}", flush=True
            )


def contacts(walkers: int) -> None:
    """Movement and contacts of walkers at the density of 1,000 in 603 x 603 m."""
    side_m = SIDE_M * (walkers / WALKERS) ** 0.5
    grid = Grid(side_m, side_m, 1, 1)

    def move() -> Journeys:
        seed = np.random.SeedSequence([1, 1])
        return Journeys(random_waypoint(grid, walkers, DURATION_S, (0.5, 1.5), (0.0, 120.0), seed=seed))

    journeys = move()
    exact = contacts_by_range(journeys, RANGE_M, DURATION_S)
    moved_s = cpu_s(move)
    exact_s = cpu_s(lambda: contacts_by_range(journeys, RANGE_M, DURATION_S))
    ticks_s = cpu_s(lambda: at_ticks(exact, 1.0, DURATION_S))
    print(
        f"{walkers:10,}{side_m:8.0f}{exact.a.size:12,}{moved_s:10.2f}{exact_s:10.2f}{ticks_s:10.2f}"
        f"{moved_s + exact_s + ticks_s:10.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the lines, 1,000 walkers only")
    quick = parser.parse_args().quick
    reading(100_000 if quick else 1_000_000)
    print(f"\nrandom waypoint for {DURATION_S:g} s, range {RANGE_M:g} m; aim {AIM_CONTACTS_S} s for 1,000 walkers")
    print(f"{'walkers':>10}{'side m':>8}{'contacts':>12}{'move':>10}{'exact':>10}{'ticks':>10}{'CPU s':>10}")
    for walkers in (WALKERS,) if quick else (WALKERS, 4 * WALKERS):
        contacts(walkers)


if __name__ == "__main__":
    main()
