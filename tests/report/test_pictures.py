"""The pictures that open a report: their numbers are those of the results and runs, their words those of the tests."""

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import serai
from serai.core.statistics import Estimate
from serai.field.losses import losses_of
from serai.log.metrics import declared
from serai.log.svg import AMOUNTS, INKS, Drawing, on_paper, ticks
from serai.opportunistic.metrics import OpportunisticMetrics
from serai.report.answer import headline
from serai.report.fates import edge_share, fates, fates_of, where_lost, why_lost
from serai.report.figures import Series, curves, stacked, steps
from serai.report.gather import typical_seed
from serai.report.heat import heat_maps, two_axes
from serai.report.maps import discs, energy_map, field_map, lives, loss_map, typical_life
from serai.report.panel import Mark
from serai.report.results import Case, Point
from serai.report.sections import _prices
from serai.report.tradeoff import trade_off, unbeaten
from serai.report.wording import in_time, scale_of
from tests.report.hand_made import ALPHAS, HEADLINES, results

SVG = "{http://www.w3.org/2000/svg}"


@cache
def run_of(protocol: str, **reach: Any) -> serai.FieldRun:
    changes = {"duration": "20 min", "events.lifetime": "5 min", "sensors.count": 40} | reach
    run = serai.simulate(serai.load_scenario("field", changes, protocol=protocol), seed=4, full_log=True)
    assert isinstance(run, serai.FieldRun)
    return run


def parsed(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in parsed(svg).iter(f"{SVG}text")]


# --- The answer in one sentence


def test_the_sentence_is_worded_by_the_tests() -> None:
    """88.0 ± 1.8 and 85.0 ± 1.8 overlap, and no paired test parts them; the lifetimes are apart."""
    assert headline(results()) == (
        "CET (88 %) and CED (85 %) deliver most, with no certain difference between them, ahead of DG (48 %). CET's"
        " first battery is empty after 2.5 days; with CED that takes 3.4."
    )
    found = results()
    sure = {key: Estimate(one.mean, one.mean / 1000, one.count) for key, one in found.estimates.items()}
    assert headline(replace(found, estimates=sure)).startswith(
        "CET delivers most, 88 % of what subscribers want, ahead of CED (85 %) and DG (48 %)."
    )
    assert headline(results(ALPHAS)).startswith("Between 48 % (DG · alpha 2) and 114 % (CET · alpha 20)")


# --- What it costs


def test_every_seed_and_every_mean_has_its_place() -> None:
    found = results()
    picture = trade_off(found, "mean_delay_s")
    assert picture is not None
    circles = list(parsed(picture.svg).iter(f"{SVG}circle"))
    dots, means = [c for c in circles if c.get("r") == "3.4"], [c for c in circles if c.get("r") == "4"]
    assert (len(dots), len(means)) == (30, 3)
    x = {mean[0].text: float(mean.get("cx", "nan")) for mean in means}
    per_second = (x["DG"] - x["CET"]) / (611.1 - 216.3)
    assert x["CED"] - x["CET"] == pytest.approx(per_second * (232.6 - 216.3), abs=0.02)
    assert {"CED 233 s", "CET 216 s", "DG 611 s"} <= set(texts(picture.svg))
    assert "better: up and left" in texts(picture.svg)
    longer = trade_off(found, "lifetime_days")
    assert longer is not None
    assert "better: up and right" in texts(longer.svg)


def test_who_is_beaten_in_both_is_hollow() -> None:
    """Points rise by a tenth in everything: more is delivered, and later. CET beats CED at each point, DG anywhere."""
    found = results(ALPHAS)
    front = unbeaten(found, "mean_delay_s", list(found.cases))
    assert [case for case in front if case.protocol == "dg"] == []
    assert Case(0, "cet") in front  # the quickest
    assert Case(3, "cet") in front  # delivers most
    assert Case(0, "ced") not in front  # less than CET at the same point, and later
    picture = trade_off(found, "mean_delay_s")
    assert picture is not None
    fills = [c.get("fill") for c in parsed(picture.svg).iter(f"{SVG}circle")]
    assert fills.count("var(--s-ground)") == len(found.cases) - len(front)


def test_where_all_deliver_the_same_costs_are_set_against_each_other() -> None:
    found = results()
    same = {key: Estimate(1.0, 0.0, 20) if key[1] == "delivery_ratio" else one for key, one in found.estimates.items()}
    alike = replace(found, estimates=same)
    assert headline(alike) == (
        "CED, CET and DG all deliver 100 % of what subscribers want. They differ in delay: CET 216 s and DG 611 s."
    )
    drawn = [picture.name for picture in _prices(alike)]
    assert drawn == ["price-lifetime-days"]  # copies are not counted alike
    picture = trade_off(alike, "lifetime_days", "mean_delay_s")
    assert picture is not None
    assert {"delay, s", "days until the first battery is empty", "better: down and right"} <= set(texts(picture.svg))


def test_names_say_what_differs() -> None:
    points = [
        Point("field", {"sensors.count": n, "subscribers.count": "5", "radio.rate": r}) for n in "12" for r in "34"
    ]
    found = results(tuple(points))
    assert found.name(Case(1, "cet")) == "CET · count 1, rate 4"
    both = [Point("field", {"sensors.count": n, "subscribers.count": m}) for n in "12" for m in "34"]
    assert results(tuple(both)).name(Case(0, "dg")) == "DG · sensors.count 1, subscribers.count 3"


def test_the_seed_nearest_to_the_means() -> None:
    one, two = (Case(0, "ced"), "delivery_ratio"), (Case(0, "ced"), "mean_delay_s")
    dots = {one: (0.1, 0.52, 0.9), two: (10.0, 21.0, 30.0)}
    means = {one: Estimate(0.5, 0.1, 3), two: Estimate(20.0, 1.0, 3)}
    assert typical_seed(means, dots) == 1
    assert typical_seed({}, {}) == 0


# --- Fields


def test_slow_walkers_are_shown_for_longer() -> None:
    assert (
        "in the first 15 min, " in field_map(run_of("dg")).caption
    )  # ten walkers at 3 m/s: 27 km, the outline is 0.8 km
    slow = {"subscribers.count": 1, "subscribers.speed_max": "0.2 m/s", "subscribers.speed_min": "0.15 m/s"}
    slow["subscribers.pause_max"] = "0 s"  # 135 to 180 m in the first quarter of an hour
    assert "in the first 20 min, " in field_map(run_of("dg", **slow)).caption, "the run is over first"
    assert (
        "in the first 30 min, "
        in field_map(
            run_of(
                "dg",
                **slow,
                **{"duration": "100 min", "field.width": "50 m", "field.height": "50 m", "field.cells": 4},
            )
        ).caption
    )


def test_the_map_has_every_sensor_and_every_subscriber() -> None:
    run = run_of("cet")
    picture = parsed(field_map(run).svg)
    sensors = len(list(picture.iter(f"{SVG}circle"))) + len(list(picture.iter(f"{SVG}path")))
    assert sensors == len(run.world.sensor_x)
    assert len(list(picture.iter(f"{SVG}polyline"))) == len(run.world.low) + 1  # and the bar of the scale


def test_who_comes_later_is_drawn_from_where_it_comes() -> None:
    """A subscriber that is nowhere at first and for a while: two lines; the first to be somewhere is in strong ink."""
    run = run_of("cet")
    tracks = run.world.tracks
    own = np.flatnonzero(tracks.time_s[: tracks.start[1]] < 900)
    assert len(own) > 9
    x_m = tracks.x_m.copy()
    x_m[own[[0, 1, 5]]] = np.nan
    nowhere = x_m.copy()
    nowhere[: tracks.start[1]] = np.nan
    for places, lines in ((x_m, len(run.world.low) + 1), (nowhere, len(run.world.low) - 1)):
        world = run.world._replace(tracks=tracks._replace(x_m=places))
        picture = field_map(replace(run, world=world))
        drawn = parsed(picture.svg)
        found = [line for line in drawn.iter(f"{SVG}polyline") if line.get("stroke-opacity")]
        assert len(found) == lines
        assert "nan" not in " ".join(line.get("points", "") for line in found)
        assert found[0].get("stroke-width") == "1.8"
        assert "in the first 15 min, " in picture.caption


def test_the_number_at_a_ring_is_where_it_covers_no_node() -> None:
    middle, right, left, above = (100.0, 100.0), (120.0, 100.0), (80.0, 100.0), (100.0, 85.0)
    for others, anchor, side in (
        ([left, above], "start", (15.0, 4.0)),
        ([right, above], "end", (-15.0, 4.0)),
        ([right, left], "middle", (0.0, -15.0)),
        ([right, left, above], "middle", (0.0, 23.0)),
    ):
        drawing = Drawing(200, 200)
        places = [middle, *others]
        discs(drawing, places, np.array([1.0] + [0.5] * len(others)), [""] * len(places), 0, "99 mJ")
        (word,) = parsed(drawing.svg("")).iter(f"{SVG}text")
        assert word.get("text-anchor") == anchor
        assert (float(word.get("x", 0)) - 100, float(word.get("y", 0)) - 100) == side


def test_in_metres_sensors_stand_in_circles_of_half_the_range() -> None:
    run = run_of("cet", **{"radio.range": "30 m"})
    groups = np.bincount(run.world.communities.of_sensor)
    drawn = field_map(run)
    patches = [path for path in parsed(drawn.svg).iter(f"{SVG}path") if "a" in path.get("d", "")]
    assert len(patches) == min(int((groups > 1).sum()), 8) + (1 in groups)
    assert sum(path.get("d", "").count("M") for path in patches) == len(run.world.sensor_x)
    assert all(f"a{15 * 360 / 200:.1f} " in path.get("d", "") for path in patches)
    assert "circles (half the radio range)" in drawn.caption


def test_the_busiest_sensor_is_ringed_with_its_energy() -> None:
    run = run_of("cet")
    spent = run.ledger.event_pj
    picture = energy_map(run, int(spent.max()), "p1")
    assert f"{spent.max() / 1e9:,.0f} mJ" in texts(picture.svg)
    ring = [c for c in parsed(picture.svg).iter(f"{SVG}circle") if c.get("fill") == "none"]
    busiest = int(spent.argmax())
    assert float(ring[0].get("cx", "nan")) == pytest.approx(9 + run.world.sensor_x[busiest] * 240 / 200, abs=0.01)


def test_losses_are_those_of_the_metrics() -> None:
    run = run_of("cet")
    picture = loss_map(run, 10, "p1")
    assert picture is not None
    lost = sum(getattr(run.metrics, name) for name in run.metrics.as_dict() if name.startswith("lost_"))
    assert f"{lost:,} of {run.metrics.wanted_pairs:,} pairs lost" in picture.caption
    assert loss_map(replace(run, full=None), 10, "p1") is None


def test_where_nothing_is_lost_no_sensor_fares_worst() -> None:
    picture = loss_map(run_of("ced", **{"duration": "5 min", "events.quiet": "1 min"}), 0, "p1")
    assert picture is not None
    assert re.fullmatch(r"CED: 0 of [\d,]+ pairs lost\.", picture.caption)
    assert not [circle for circle in parsed(picture.svg).iter(f"{SVG}circle") if circle.get("fill") == "none"]


def test_a_life_is_that_of_the_tables() -> None:
    run = run_of("ced")
    life = typical_life(run)
    assert life is not None
    born = run.tables["events"]["time_s"][life.event].as_py()
    rows = [row for row in run.tables["deliveries"].to_pylist() if row["event"] == life.event and row["wanted"]]
    assert [wait for wait in life.waits_s if not math.isnan(wait)] == sorted(row["time_s"] - born for row in rows)
    assert 2 <= len(life.waits_s) <= 8
    picture = lives([(run, "p0")])
    assert picture is not None
    assert f"{len(rows)} of {len(life.waits_s)}" in texts(picture.svg)


# --- What becomes of all that is wanted


def test_every_pair_has_one_fate() -> None:
    run = run_of("cet")
    known = fates_of(run)
    assert known is not None
    assert sum(known.values()) == run.metrics.wanted_pairs
    picture = fates([run, run_of("dg")])
    assert picture is not None
    bars = [bar for bar in parsed(picture.svg).iter(f"{SVG}rect") if len(bar)]
    for name, count in known.items():
        share = 100 * count / run.metrics.wanted_pairs
        said = [bar for bar in bars if (bar[0].text or "").startswith(f"CET, {name}: ")]
        assert [float(bar[0].text.rpartition(" ")[2]) for bar in said] == pytest.approx([share], rel=0.01) or not count
    whole = sum(float(bar.get("width", "nan")) + 0.6 for bar in bars if (bar[0].text or "").startswith("CET"))
    assert whole == pytest.approx(sum(float(bar.get("width", "nan")) + 0.6 for bar in bars) / 2, abs=1.0)
    assert fates_of(replace(run, full=None)) is None


def test_the_edge_is_the_half_of_the_sensors_that_is_nearest_to_it() -> None:
    run = run_of("dg")
    lost = losses_of(run)
    assert lost is not None
    sensors = [row for row in run.tables["nodes"].to_pylist() if row["role"] == "sensor"]
    far = sorted((min(row["x_m"], 200 - row["x_m"], row["y_m"], 200 - row["y_m"]), row["node"]) for row in sensors)
    outer = {node for _, node in far[:20]}
    share = np.mean([run.world.event_sensor[event] in outer for event in lost.event])
    assert edge_share(run) == pytest.approx(share)
    said = f"the outer half of the sensors accounts for {100 * share:.0f} % under DG."
    assert where_lost([run]) == f"Most losses occur at the edge of the field: {said}"
    assert " ".join(why_lost([run])).startswith("Why pairs are lost: DG: ")
    short = serai.load_scenario("field", {"duration": "36 min", "sensors.count": 40}, protocol="ced")
    few = serai.simulate(short, seed=2, full_log=True)
    missed = losses_of(few)
    assert missed is not None
    assert 0 < len(missed.event) < 20  # too few to say where
    assert (edge_share(few), where_lost([few])) == (None, "")


# --- Figures


def curve() -> Series:
    dots = ((7.0, 8.0, 12.0), (20.0, 22.0))
    return Series("CET", Mark("p1", "square"), [2.0, 5.0], [9.0, 21.0], [2.0, math.nan], dots, {5.0: 24.0})


def test_a_curve_goes_through_its_means() -> None:
    """Ten units of the axis are as far apart everywhere: means, interval, seeds and the printed number."""
    svg = parsed(curves("one", [curve()], "alpha", "copies", "A curve.").svg)
    lines = [
        [tuple(map(float, point.split(","))) for point in (line.get("points") or "").split()]
        for line in svg.iter(f"{SVG}polyline")
    ]
    (mean,) = [
        line
        for line, element in zip(lines, svg.iter(f"{SVG}polyline"), strict=True)
        if element.get("stroke-width") == "1.7"
    ]
    unit = (mean[0][1] - mean[1][1]) / 12
    seeds = sorted(float(dot.get("cy", "nan")) for dot in svg.iter(f"{SVG}circle"))
    assert seeds == pytest.approx(
        sorted([*(mean[0][1] + unit * (9 - v) for v in (7, 8, 12)), *(mean[1][1] + unit * (21 - v) for v in (20, 22))]),
        abs=0.02,
    )
    whisker = [line for line in lines if line[0][0] == line[1][0] == mean[0][0] and line[0][1] != line[1][1]]
    assert abs(whisker[0][0][1] - whisker[0][1][1]) == pytest.approx(4 * unit, abs=0.02)
    star = next(path for path in svg.iter(f"{SVG}path") if len(path) and "published: 24" in (path[0].text or ""))
    x, y = map(float, re.findall(r"[\d.]+", star.get("transform", "")))
    assert (x, y) == pytest.approx((mean[1][0], mean[1][1] - 3 * unit), abs=0.02)


def test_steps_end_at_the_last_share_and_bars_at_the_sum() -> None:
    rising = Series("DG", Mark("p2", "triangle"), [10.0, 20.0, 40.0], [25.0, 50.0, 60.0], ())
    svg = parsed(steps("one", [rising], "delay, s", "served", "Steps.").svg)
    (way,) = [line for line in svg.iter(f"{SVG}polyline") if line.get("stroke-width") == "1.7"]
    points = [tuple(map(float, point.split(","))) for point in (way.get("points") or "").split()]
    foot, unit = points[0][1], (points[0][1] - points[1][1]) / 25
    assert [round((foot - y) / unit) for _, y in points] == [0, 25, 25, 50, 50, 60, 60]
    drawn = stacked("bars", ["a", "b"], {"x": [1.0, 3.0], "y": [2.0, 0.0], "none": [0.0, 0.0]}, "copies", "Bars.")
    bars = [bar for bar in parsed(drawn.svg).iter(f"{SVG}rect") if len(bar)]
    ends = [float(bar.get("x", "nan")) + float(bar.get("width", "nan")) for bar in bars]
    assert ends[1] == pytest.approx(ends[2], abs=0.02)  # 1 + 2 == 3
    assert "none" not in texts(drawn.svg)


def test_a_file_of_a_figure_needs_no_browser() -> None:
    svg = on_paper(curves("one", [curve()], "alpha", "copies", "A curve.").svg)
    assert "var(" not in svg
    assert "@media" not in svg
    assert "#b84700" in svg


# --- Drawing


def test_round_numbers_along_an_axis() -> None:
    assert ticks(0, 100) == [0, 20, 40, 60, 80, 100]
    assert ticks(44.3, 51) == [45, 46, 47, 48, 49, 50, 51] or ticks(44.3, 51) == [46, 48, 50]
    for low, high in ((0.001, 0.0042), (3, 3.2), (-5, 1e6)):
        found = ticks(low, high)
        assert 2 <= len(found) <= 7
        assert all(low - 1e-9 <= value <= high + 1e-9 for value in found)


def test_words_on_amounts_can_be_read() -> None:
    def light(colour: str) -> float:
        parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
        red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    for amount in range(AMOUNTS):
        for ground, words in zip(INKS[f"a{amount}"], INKS[f"t{amount}"], strict=True):
            low, high = sorted((light(ground), light(words)))
            assert (high + 0.05) / (low + 0.05) >= 4.5


def test_amounts_of_data_have_the_unit_that_fits() -> None:
    """Those of a table the same one, that of the largest; NaN, where nothing was delivered, is no amount."""
    metrics = declared(OpportunisticMetrics)
    payload = metrics["payload_bytes"]
    assert scale_of(payload, [3.5e6, math.nan, 12.0])[1:] == ("MB", 1e-6)
    assert scale_of(payload, [999.0])[1:] == scale_of(payload, [math.nan])[1:] == ("B", 1.0)
    assert scale_of(payload, [1000.0]).heading == "payload bytes, kB"
    assert scale_of(metrics["delivery_ratio"], [5e6])[1:] == ("%", 100.0)
    assert [in_time(value) for value in (89, 7200, 7560, 172_800)] == ["89 s", "2 h", "2.1 h", "2 days"]


def test_text_is_escaped_and_colours_are_named() -> None:
    drawing = Drawing(10, 10)
    drawing.text(1, 2.345, "<&>", fill="red")
    svg = drawing.svg('a "label"')
    assert '<text x="1" y="2.35" fill="red">&lt;&amp;&gt;</text>' in svg or 'y="2.34"' in svg
    assert parsed(svg).get("aria-label") == 'a "label"'
    assert "screen and (prefers-color-scheme:dark)" in svg


# --- Two swept settings


def test_two_swept_settings_are_a_table_of_colours() -> None:
    """Six points of 2 x 3 values: every mean stands in its cell, the least and the most have the ends of the scale."""
    pairs = [(alpha, queue) for alpha in ("10", "2") for queue in ("50", "100", "200")]
    found = results(tuple(Point("field", {"protocol.alpha": a, "sensors.queue": q}) for a, q in pairs))
    assert two_axes(found) == ("protocol.alpha", "sensors.queue")
    pictures = {picture.name: picture for picture in heat_maps(found, found.headlines)}
    assert len(pictures) == 4 * 3
    svg = pictures["heat-delivery-ratio-cet"].svg
    assert texts(svg) == [
        "CET", "up: sensors.queue", "200", "132", "106", "100", "123", "96.8", "50", "114", "88.0",
        "2", "10", "protocol.alpha",
    ]  # fmt: skip
    shades = [cell.get("fill") for cell in parsed(svg).iter(f"{SVG}rect") if cell.get("class") == "cell"]
    least = [cell.get("fill") for cell in parsed(pictures["heat-delivery-ratio-dg"].svg).iter(f"{SVG}rect")]
    assert shades[0] == "var(--s-a6)"
    assert least[-1] == "var(--s-a0)"


def test_one_swept_setting_or_three_are_no_such_table() -> None:
    assert list(heat_maps(results(ALPHAS), HEADLINES)) == []
    three = [Point("field", {"a": a, "b": b, "c": c}) for a in "12" for b in "12" for c in "12"]
    assert two_axes(results(tuple(three))) is None
    holes = results((Point("field", {"a": "1", "b": "x"}), Point("field", {"a": "2", "b": "y"})))
    assert texts(next(iter(heat_maps(holes, HEADLINES))).svg).count("–") == 2
