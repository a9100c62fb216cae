"""Makes the files of this folder from the GPS positions of oystercatchers: doi 10.5281/zenodo.5653311 (CC0).

    python make.py O_ASSEN-gps-2018.csv.gz [FOLDER]

One bird spent July to September 2018 on a Wadden island, a position an hour. Its weeks there become eight birds in one
and the same week. Sensors stand where it has been, 250 m apart or more.
"""

import csv
import gzip
import math
import sys
from datetime import datetime, timedelta
from pathlib import Path

BIRD = "5515867"
SOUTH, APART_M = 53.494, 250.0
WEST, NORTH, EAST = 6.480, 53.553, 6.568
FIRST = datetime(2018, 7, 30)  # a Monday
WEEKS = 8
SENSORS = 30


def main(source: Path, folder: Path) -> None:
    """Write the files."""
    with gzip.open(source, "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["individual-local-identifier"] == BIRD]
    weeks: list[list[tuple[datetime, float, float, str]]] = [[] for _ in range(WEEKS)]
    for row in rows:
        time = datetime.fromisoformat(row["timestamp"])
        week = (time - FIRST).days // 7
        if time < FIRST or week >= WEEKS or not row["location-long"] or row["visible"] != "true":
            continue
        lon, lat = float(row["location-long"]), float(row["location-lat"])
        if WEST <= lon <= EAST and SOUTH <= lat <= NORTH:
            weeks[week].append((time - timedelta(days=7 * week), lon, lat, row["external-temperature"]))
    with (folder / "birds.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(
            ["timestamp", "location-long", "location-lat", "external-temperature", "individual-local-identifier"]
        )
        for week, fixes in enumerate(weeks):
            out.writerows(
                [f"{time:%Y-%m-%d %H:%M:%S}", lon, lat, warm, f"week {week + 1}"] for time, lon, lat, warm in fixes
            )
    places: list[tuple[float, float]] = []
    for _, lon, lat, _ in (fix for fixes in weeks for fix in fixes):
        if len(places) < SENSORS and all(apart_m((lon, lat), place) >= APART_M for place in places):
            places.append((lon, lat))
    lines = [f"shore-{number:02d},{lon:.5f},{lat:.5f}" for number, (lon, lat) in enumerate(places, 1)]
    (folder / "sensors.csv").write_text("\n".join(["id,lon,lat", *lines, ""]), encoding="utf-8")


def apart_m(one: tuple[float, float], other: tuple[float, float]) -> float:
    """How far apart two places are, near enough for a choice."""
    east = (one[0] - other[0]) * 111_320 * math.cos(math.radians(one[1]))
    return math.hypot(east, (one[1] - other[1]) * 111_195)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent)
