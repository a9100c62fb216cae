"""Makes the files of this folder: a park that does not exist, with sensors, readings, and the rounds of its vehicles.

    python make.py [FOLDER]

The same numbers each time: everything is drawn from one seed. Paths are a net of junctions; sensors stand beside paths,
some in the woods; each vehicle goes round by the shortest ways between the places where it has something to do.
"""

import heapq
import json
import math
import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

SEED = 7
LON, LAT = 11.0500, 47.9900  # of the lower left corner
WIDTH_M, HEIGHT_M = 1600.0, 1200.0
COLUMNS, ROWS = 6, 5  # of junctions
SENSORS = 40
DAYS, HOURS = 28, 3  # of readings, and between two of them
MIDNIGHT = datetime(2026, 5, 4)
MORNING = datetime(2026, 5, 4, 6, 30)
VEHICLES = (  # name, km/h, when it sets off (minutes), rounds, places on a round, minutes at each
    ("v1 waste", 12, 0, 3, 7, (1, 4)),
    ("v2 mowing", 8, 30, 2, 5, (10, 25)),
    ("v3 watering", 10, 15, 3, 6, (4, 9)),
    ("v4 post", 18, 90, 4, 5, (1, 3)),
    ("v5 wardens", 15, 60, 4, 6, (2, 8)),
    ("v6 playgrounds", 12, 120, 2, 6, (8, 20)),
    ("v7 evening", 12, 600, 3, 7, (2, 6)),
    ("v8 spare", 12, 240, 3, 6, (2, 8)),
)


def degrees(x: float, y: float) -> tuple[float, float]:
    """Longitude and latitude of a place in metres from the lower left corner: good to centimetres over a park."""
    north = LAT + y / 111_194.0
    return LON + x / (111_412.0 * math.cos(math.radians(LAT)) - 93.5 * math.cos(3 * math.radians(LAT))), north


def junctions(rng: random.Random) -> tuple[list[tuple[float, float]], dict[int, list[int]]]:
    """Where paths meet, and which junctions a path joins: a net with some meshes missing, none of them cut off."""
    places = []
    for row in range(ROWS):
        for column in range(COLUMNS):
            x = WIDTH_M * (0.08 + 0.84 * column / (COLUMNS - 1)) + rng.uniform(-60, 60)
            y = HEIGHT_M * (0.09 + 0.82 * row / (ROWS - 1)) + rng.uniform(-50, 50)
            places.append((x, y))
    paths: dict[int, list[int]] = {node: [] for node in range(len(places))}
    for node in range(len(places)):
        column, row = node % COLUMNS, node // COLUMNS
        outer_row, outer_column = row in (0, ROWS - 1), column in (0, COLUMNS - 1)
        for other, there, keeps in (
            (node + 1, column + 1 < COLUMNS, outer_row),
            (node + COLUMNS, row + 1 < ROWS, outer_column),
        ):
            if there and (keeps or rng.random() < 0.72):
                paths[node].append(other)
                paths[other].append(node)
    return places, paths


def shortest(places: list[tuple[float, float]], paths: dict[int, list[int]], here: int, there: int) -> list[int]:
    """The junctions on the shortest way."""
    waiting, seen = [(0.0, here, [here])], set()
    while waiting:
        metres, node, way = heapq.heappop(waiting)
        if node == there:
            return way
        if node in seen:
            continue
        seen.add(node)
        for other in paths[node]:
            heapq.heappush(waiting, (metres + math.dist(places[node], places[other]), other, [*way, other]))
    raise ValueError("the net of paths has fallen apart")


def stand(
    rng: random.Random, places: list[tuple[float, float]], paths: dict[int, list[int]]
) -> list[dict[str, object]]:
    """Sensors: two of three beside a path, the others somewhere in the woods or meadows."""
    features = []
    for number in range(SENSORS):
        if number % 3 < 2:
            node = rng.randrange(len(places))
            here, there = places[node], places[rng.choice(paths[node])]
            along, aside = rng.random(), rng.uniform(-35, 35)
            x, y = here[0] + (there[0] - here[0]) * along + aside, here[1] + (there[1] - here[1]) * along - aside
        else:
            x, y = rng.uniform(60, WIDTH_M - 60), rng.uniform(60, HEIGHT_M - 60)
        x, y = min(max(x, 20.0), WIDTH_M - 20), min(max(y, 20.0), HEIGHT_M - 20)
        lon, lat = degrees(x, y)
        geometry = {"type": "Point", "coordinates": [round(lon, 6), round(lat, 6)]}
        features.append({"type": "Feature", "properties": {"id": f"soil-{number + 1:02d}"}, "geometry": geometry})
    return features


def drive(
    rng: random.Random, places: list[tuple[float, float]], paths: dict[int, list[int]], vehicle: tuple
) -> list[tuple[float, float, float]]:
    """The track of one vehicle over its day: seconds since the morning, x, y; a point at least each 40 s on the way."""
    _, kmh, begins_min, rounds, stops, (least_min, most_min) = vehicle
    depot, at_s = 0, begins_min * 60.0
    track = [(at_s, *places[depot])]
    for _ in range(rounds):
        targets = [rng.randrange(1, len(places)) for _ in range(stops)]
        here = depot
        for target in [*targets, depot]:
            for node in shortest(places, paths, here, target)[1:]:
                (x0, y0), (x1, y1) = track[-1][1:], places[node]
                metres = math.dist((x0, y0), (x1, y1))
                speed = kmh / 3.6 * rng.uniform(0.8, 1.1)
                pieces = max(1, math.ceil(metres / speed / 40))
                for piece in range(1, pieces + 1):
                    at_s += metres / pieces / speed
                    bend = rng.uniform(-6, 6) if piece < pieces else 0.0
                    share = piece / pieces
                    track.append((at_s, x0 + (x1 - x0) * share + bend, y0 + (y1 - y0) * share - bend))
            at_s += 60 * (rng.uniform(least_min, most_min) if target != depot else rng.uniform(5, 20))
            track.append((at_s, *track[-1][1:]))
            here = target
    return track


def gpx(tracks: dict[str, list[tuple[float, float, float]]]) -> str:
    """Tracks as GPX."""
    lines = ['<gpx version="1.1" creator="make.py" xmlns="http://www.topografix.com/GPX/1/1">']
    for name, track in tracks.items():
        lines.append(f"<trk><name>{name}</name><trkseg>")
        for at_s, x, y in track:
            lon, lat = degrees(x, y)
            time = (MORNING + timedelta(seconds=round(at_s))).strftime("%Y-%m-%dT%H:%M:%SZ")
            lines.append(f'<trkpt lat="{lat:.6f}" lon="{lon:.6f}"><time>{time}</time></trkpt>')
        lines.append("</trkseg></trk>")
    return "\n".join([*lines, "</gpx>", ""])


def measure(rng: random.Random) -> list[str]:
    """Four weeks of soil: the time, the sensor, its moisture and temperature, and what grows there, as rows of CSV.

    Weather comes and goes over days, nights are cold; rain wets the soil, warm days dry it. Woods are cool and wet.
    """
    rows, weather, rain_at = ["time,sensor,moisture,temperature,site"], 0.0, {5, 6, 11, 17, 18, 25}
    site = ["path" if number % 3 < 2 else "woods" for number in range(SENSORS)]
    wet = [rng.uniform(24, 34) + (6 if place == "woods" else 0) for place in site]
    offset = [rng.gauss(0, 0.6) - (1.5 if place == "woods" else 0) for place in site]
    for step in range(DAYS * 24 // HOURS):
        day, hour = divmod(step * HOURS, 24)
        weather = 0.96 * weather + rng.gauss(0, 0.8)
        air = 11 + day / 4 + weather - 6 * math.cos(2 * math.pi * (hour - 3) / 24)
        rain = rng.uniform(1, 3) if day in rain_at and 6 <= hour <= 18 else 0.0
        at = (MIDNIGHT + timedelta(hours=step * HOURS)).strftime("%Y-%m-%dT%H:%M")
        for number in range(SENSORS):
            here = air + offset[number] + rng.gauss(0, 0.3)
            drying = max(here - 2, 0) * (0.006 if site[number] == "woods" else 0.01) * HOURS / 3
            wet[number] = min(max(wet[number] + 2 * rain - drying * wet[number] / 25, 4.0), 48.0)
            rows.append(f"{at},soil-{number + 1:02d},{wet[number]:.0f},{here:.0f},{site[number]}")
    return rows


def main(folder: Path) -> None:
    """Write the files."""
    rng = random.Random(SEED)
    places, paths = junctions(rng)
    features = stand(rng, places, paths)
    rows = ",\n".join(json.dumps(feature) for feature in features)
    (folder / "sensors.geojson").write_text(f'{{"type": "FeatureCollection", "features": [\n{rows}\n]}}\n')
    tracks = {vehicle[0]: drive(rng, places, paths, vehicle) for vehicle in VEHICLES}
    (folder / "vehicles.gpx").write_text(gpx(tracks))
    readings = measure(random.Random(SEED + 1))
    (folder / "readings.csv").write_text("\n".join([*readings, ""]))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
