"""Reading sensor positions: both formats, the projection, and everything that can be wrong with a file."""

import contextlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.world.geography import local_metres
from serai.world.grid import Grid
from serai.world.positions import read_positions

FIELD = Grid(200.0, 100.0, 15, 15)
LARGE = Grid(50_000.0, 50_000.0, 10, 10)


def written(folder: Path, text: str, name: str = "sensors.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def problems(path: Path, grid: Grid = FIELD) -> list[str]:
    """The lines of the message, without the file's name."""
    with pytest.raises(BadInput) as error:
        read_positions(path, grid)
    lines = str(error.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def point(lon: object, lat: object, **more: object) -> dict[str, object]:
    return {"type": "Feature", "geometry": {"type": "Point", "coordinates": [lon, lat]}, "properties": {}} | more


def collection(*features: object, **more: object) -> str:
    return json.dumps({"type": "FeatureCollection", "features": features} | more)


# ---- CSV


def test_csv_in_metres(tmp_path: Path) -> None:
    names, x, y = read_positions(written(tmp_path, "id,x,y\nnorth,10,20.5\nsouth,200,0\n"), FIELD)
    assert names == ["north", "south"]
    assert x.tolist() == [10.0, 200.0]
    assert y.tolist() == [20.5, 0.0]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x,y\n1,2\n3,4\n", ["s0", "s1"]),
        ("Y,height,X\n2,9,1\n4,9,3\n", ["s0", "s1"]),
        ("\n  X , Y , Name \n\n1,2,a\n,,\n3,4,b c\n", ["a", "b c"]),
        ('name,id,x,y\n"n,1",a,1,2\nn2,b,3,4', ["a", "b"]),
        ("\ufeffx,y\r\n1,2\r\n3,4\r\n", ["s0", "s1"]),
        ("x,y,lon,lat\n1,2,9,9\n3,4,9,9\n", ["s0", "s1"]),
    ],
)
def test_csv_of_many_makes(tmp_path: Path, text: str, names: list[str]) -> None:
    found, x, y = read_positions(written(tmp_path, text), FIELD)
    assert found == names
    assert (x.tolist(), y.tolist()) == ([1.0, 3.0], [2.0, 4.0])


def test_csv_in_degrees(tmp_path: Path) -> None:
    text = "id,Longitude,Latitude\na,11.0,48.0\nb,11.001,48.0005\n"
    _, x, y = read_positions(written(tmp_path, text), FIELD)
    assert x.tolist() == pytest.approx([0.0, 74.63], abs=0.01)
    assert y.tolist() == pytest.approx([0.0, 55.60], abs=0.01)


# ---- GeoJSON


def test_geojson(tmp_path: Path) -> None:
    text = collection(
        point(11.0, 48.0, properties={"id": "a", "name": "not this"}),
        point(11.001, 48.0005, id=7, properties={"name": "nor this"}),
        point(11.0, 48.0005, properties={"name": "c"}),
        point(11.0, 48.0002, properties=None),
        crs={"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}},
    )
    names, x, y = read_positions(written(tmp_path, text, "sensors.geojson"), FIELD)
    assert names == ["a", "7", "c", "s3"]
    assert x.tolist() == pytest.approx([0.0, 74.63, 0.0, 0.0], abs=0.01)
    assert y.tolist() == pytest.approx([0.0, 55.60, 55.60, 22.24], abs=0.01)


def test_heights_are_left_out(tmp_path: Path) -> None:
    feature = point(0.0, 0.0)
    feature["geometry"] = {"type": "Point", "coordinates": [8.0, 50.0, 1234.5]}
    _, x, y = read_positions(written(tmp_path, collection(feature), "sensors.JSON"), FIELD)
    assert (x.tolist(), y.tolist()) == ([0.0], [0.0])


# ---- the projection


def test_one_degree_at_the_equator() -> None:
    east, north = local_metres(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.0, 0.0)
    radius, shorter = 6_378_137.0, 6_378_137.0 * (1 - 0.0066943799901413165)
    assert east[0] == pytest.approx(radius * math.sin(math.radians(1)), rel=1e-12)
    assert north[0] == pytest.approx(0.0, abs=1e-6)
    assert east[1] == pytest.approx(0.0, abs=1e-6)
    # At 1 degree north the normal is a little longer than the radius at the equator.
    normal = radius / math.sqrt(1 - 0.0066943799901413165 * math.sin(math.radians(1)) ** 2)
    assert north[1] == pytest.approx(shorter * normal / radius * math.sin(math.radians(1)), rel=1e-12)


def test_the_poles_metres() -> None:
    east, north = local_metres(np.array([0.0, 90.0]), np.array([89.999, 89.999]), 0.0, 90.0)
    # The meridian of 0 lies to the south of somebody who stands at the pole on it; 90 east is to the east.
    assert north.tolist() == pytest.approx([-111.694, 0.0], abs=0.001)
    assert east.tolist() == pytest.approx([0.0, 111.694], abs=0.001)


def arc_of_meridian(lat0: float, lat1: float) -> float:
    """Metres along a meridian, by summing its curvature: M = a (1 - e^2) / (1 - e^2 sin^2)^1.5."""
    steps = np.radians(np.linspace(lat0, lat1, 10_001))
    middle = (steps[1:] + steps[:-1]) / 2
    squared = 0.0066943799901413165
    curvature = 6_378_137.0 * (1 - squared) / (1 - squared * np.sin(middle) ** 2) ** 1.5
    return float((curvature * np.diff(steps)).sum())


@pytest.mark.parametrize("lat", [-60.0, -10.0, 0.0, 45.0, 70.0])
def test_ten_and_twenty_kilometres(lat: float) -> None:
    # Against the arc along the meridian and the parallel, which are the distances on the ground.
    _, north = local_metres(np.array([10.0]), np.array([lat + 0.09]), 10.0, lat)
    arc = arc_of_meridian(lat, lat + 0.09)
    assert north[0] == pytest.approx(arc, abs=0.01)
    metres = 20_000.0
    normal = 6_378_137.0 / math.sqrt(1 - 0.0066943799901413165 * math.sin(math.radians(lat)) ** 2)
    degrees = math.degrees(metres / (normal * math.cos(math.radians(lat))))
    east, north = local_metres(np.array([10.0 + degrees]), np.array([lat]), 10.0, lat)
    # The parallel is no shortest way: at 70 degrees the chord is 7 cm shorter.
    assert math.hypot(east[0], north[0]) == pytest.approx(metres, abs=0.12)


@given(
    lon=st.floats(-180, 180),
    lat=st.floats(-89, 89),
    away=st.lists(st.tuples(st.floats(0, 0.1), st.floats(0, 0.1)), min_size=1, max_size=5),
)
def test_local_metres_keep_distances(lon: float, lat: float, away: list[tuple[float, float]]) -> None:
    lons, lats = np.array([lon + a for a, _ in away]), np.array([lat + b for _, b in away])
    east, north = local_metres(lons, lats, lon, lat)
    # The straight line through the ground is at most what the map drops: height, d^2 / 2 R.
    radius = 6_378_137.0
    for number in range(len(away)):
        a = math.radians(float(lats[number] - lat)) / 2
        b = math.radians(float(lons[number] - lon)) / 2
        haversine = (
            math.sin(a) ** 2 + math.cos(math.radians(lat)) * math.cos(math.radians(lats[number])) * math.sin(b) ** 2
        )
        ball = 2 * radius * math.asin(math.sqrt(haversine))
        assert math.hypot(east[number], north[number]) == pytest.approx(ball, rel=0.01, abs=1e-6)


@pytest.mark.parametrize("lat", [-45.0, 45.0])
@pytest.mark.parametrize("lon", [11.0, 179.95, -180.0])
def test_the_corner_of_all_sensors_is_the_corner_of_the_field(tmp_path: Path, lat: float, lon: float) -> None:
    corners = [(lon + a, lat + b) for a in (0.0, 0.2) for b in (0.0, 0.2)]
    around = [((a + 180) % 360 - 180, b) for a, b in corners]
    text = "lon,lat\n" + "".join(f"{a!r},{b!r}\n" for a, b in around)
    _, x, y = read_positions(written(tmp_path, text), LARGE)
    assert x.min() == y.min() == 0.0
    assert 15_000 < x.max() < 16_000
    assert 22_200 < y.max() < 22_300


# ---- what can be wrong


def test_all_problems_of_a_csv_file_at_once(tmp_path: Path) -> None:
    text = "id,x,y\na,1,2\nb,nan,3\nc,1e999,3\nd,ten,\na,5,5\n,6,6\ne,1,2,3\nf,201,5\ng,-1,100.5\n"
    assert problems(written(tmp_path, text)) == [
        "line 3: x is nan, not a finite number",
        "line 4: x is inf, not a finite number",
        'line 5: x is "ten", not a number',
        'line 5: y is "", not a number',
        "line 7: id is empty",
        "line 8: 4 values, but the header has 3 columns",
        'line 6: id "a" was used before, by line 2',
        "line 9: x = 201 m is outside the field, which reaches from 0 to 200 m",
        "line 10: x = -1 m is outside the field, which reaches from 0 to 200 m",
        "line 10: y = 100.5 m is outside the field, which reaches from 0 to 100 m",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty; expected a header with columns x, y (or lon, lat)"),
        (" \n\n", "the file is empty; expected a header with columns x, y (or lon, lat)"),
        ("x,y\n", "no rows below the header"),
        ("id,x,z\n1,2,3\n", "missing column y (need x, y or lon, lat); the header has: id, x, z"),
        ("id,lat\n1,2\n", "missing column lon (need x, y or lon, lat); the header has: id, lat"),
        ("a;b\n1;2\n", "missing column x, y (need x, y or lon, lat); the header has: a;b"),
        ("x,X,y\n1,2,3\n", "column x stands twice in the header; it has: x, X, y"),
        ('x,y\n"1"2,3\n', "line 2: ',' expected after '\"'"),
        ("lon,lat\n190,5\n", "line 2: lon is 190, outside -180 to 180 degrees"),
        ("lon,lat\n0,-90.5\n", "line 2: lat is -90.5, outside -90 to 90 degrees"),
    ],
)
def test_a_bad_csv_file(tmp_path: Path, text: str, message: str) -> None:
    assert problems(written(tmp_path, text)) == [message]


def test_only_twenty_problems_are_told(tmp_path: Path) -> None:
    told = problems(written(tmp_path, "x,y\n" + "a,1\n" * 33))
    assert len(told) == 21
    assert told[19] == 'line 21: x is "a", not a number'
    assert told[20] == "and 13 more problems"


def test_all_problems_of_a_geojson_file_at_once(tmp_path: Path) -> None:
    line = {"type": "Feature", "geometry": {"type": "LineString", "coordinates": []}}
    text = collection(
        point(11.0, 48.0, id="a"),
        point("11", 48.0),
        point(None, True),
        point(math.nan, 10**400),
        point(500, -91),
        line,
        {"type": "Feature", "geometry": None},
        "no feature",
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1]}},
        point(11.0, 48.0, id="a"),
        point(11.0, 48.0, id=["b"]),
        point(11.0, 48.0, id=" "),
        crs={"type": "name", "properties": {"name": "EPSG:3857"}},
    )
    assert problems(written(tmp_path, text, "sensors.geojson")) == [
        "crs: only longitude and latitude in degrees (WGS 84) can be read; for metres use CSV with x, y",
        'feature 2: lon is "11", not a number',
        "feature 3: lon is null, not a number",
        "feature 3: lat is true, not a number",
        "feature 4: lon is nan, not a finite number",
        f"feature 4: lat is 1{'0' * 39}, not a number",
        "feature 5: lon is 500, outside -180 to 180 degrees",
        "feature 5: lat is -91, outside -90 to 90 degrees",
        'feature 6: geometry must be a "Point", found "LineString"',
        'feature 7: geometry must be a "Point", found null',
        'feature 8: geometry must be a "Point", found null',
        "feature 9: coordinates must be [longitude, latitude]",
        'feature 11: id is ["b"], neither text nor a number',
        "feature 12: id is empty",
        'feature 10: id "a" was used before, by feature 1',
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: not JSON: Expecting value"),
        ('{"type":\n oops}', "line 2, column 2: not JSON: Expecting value"),
        ("[" * 100_000, "not JSON that can be read: maximum recursion depth exceeded"),
        ("[]", 'expected a GeoJSON object with "type": "FeatureCollection"'),
        ('{"type": "Feature"}', 'expected a GeoJSON object with "type": "FeatureCollection"'),
        ('{"type": "FeatureCollection"}', '"features" must be a list'),
        ('{"type": "FeatureCollection", "features": []}', "no features in it"),
    ],
)
def test_a_bad_geojson_file(tmp_path: Path, text: str, message: str) -> None:
    (told,) = problems(written(tmp_path, text, "sensors.geojson"))
    assert told.startswith(message)


def test_sensors_farther_apart_than_the_field_is_wide(tmp_path: Path) -> None:
    text = collection(point(11.0, 48.0), point(11.1, 48.0))
    (told,) = problems(written(tmp_path, text, "sensors.geojson"))
    assert told.startswith("feature 2: x = 7462.")
    assert told.endswith("m is outside the field, which reaches from 0 to 200 m")


def test_a_given_name_may_not_be_a_made_up_one(tmp_path: Path) -> None:
    text = collection(point(11.0, 48.0), point(11.0, 48.0, id="s0"))
    assert problems(written(tmp_path, text, "sensors.geojson")) == ['feature 2: id "s0" was used before, by feature 1']


def test_unreadable_files(tmp_path: Path) -> None:
    assert problems(tmp_path / "none.csv") == ["cannot be read: No such file or directory"]
    assert problems(tmp_path) == ["cannot be read: Is a directory"]
    (tmp_path / "binary.csv").write_bytes(b"x,y\n\xff\xfe\n")
    assert problems(tmp_path / "binary.csv") == ["not a text file in UTF-8 (byte 4)"]


def read_or_refused(path: Path) -> None:
    """Nothing but a `BadInput` may come out of a bad file."""
    with contextlib.suppress(BadInput):
        names, x, y = read_positions(path, FIELD)
        assert len(names) == len(x) == len(y) > 0


@given(text=st.text(max_size=200), name=st.sampled_from(["a.csv", "a.geojson"]))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str, name: str) -> None:
    path = tmp_path_factory.mktemp("any") / name
    path.write_text(text, encoding="utf-8", newline="")
    read_or_refused(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "type", "geometry"]), inner),
    max_leaves=10,
)


@given(features=json_values, lon=json_values, name=json_values)
def test_any_json_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, features: object, lon: object, name: object
) -> None:
    path = tmp_path_factory.mktemp("any") / "a.geojson"
    for content in (features, [features], [point(lon, 1.0, id=name)]):
        path.write_text(json.dumps({"type": "FeatureCollection", "features": content}), encoding="utf-8")
        read_or_refused(path)
