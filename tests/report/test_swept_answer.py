"""The answer of a sweep in words: who delivers most where, and protocols that do not have what was swept."""

from dataclasses import replace

from serai.report.answer import headline, opening
from serai.report.gather import ignored_in
from serai.report.results import Case, Difference, Point, Results
from serai.report.sections import _main_table
from serai.report.tradeoff import trade_off
from serai.sweeping.plan import plan_sweep
from tests.report.hand_made import ALPHAS, results


def test_of_a_sweep_it_says_who_delivers_most_at_which_points() -> None:
    found = results(ALPHAS, ("ced", "dg"))
    assert headline(found).endswith("CED delivers most at every point (paired tests under common seeds).")
    swapped = {
        (case._replace(protocol={"ced": "dg", "dg": "ced"}[case.protocol]) if case.point == 3 else case, metric): one
        for (case, metric), one in found.estimates.items()
    }
    level = Difference(0.0, 0.1, 0.4)
    unsure = found.differences | {(Case(1, "ced"), Case(1, "dg"), "delivery_ratio"): level}
    assert headline(replace(found, estimates=swapped, differences=unsure)).partition("delivered.")[2] == (
        " CED delivers most at alpha 2 and alpha 10. CED and DG deliver most at alpha 5, with no certain difference"
        " between them. DG delivers most at alpha 20 (paired tests under common seeds)."
    )
    assert headline(results(ALPHAS, ("ced",))).endswith("of what subscribers want is delivered.")


def test_points_that_share_a_setting_are_named_by_it() -> None:
    speeds = ("1 m/s", "4 m/s", "9 m/s")
    settings = [{"protocol.alpha": alpha, "subscribers.speed_max": speed} for alpha in ("2", "5") for speed in speeds]
    found = results(tuple(Point("field", one) for one in settings), ("ced", "dg"))

    def said(points: set[int]) -> str:
        other = {"ced": "dg", "dg": "ced"}
        swapped = {
            (case._replace(protocol=other[case.protocol]) if case.point in points else case, metric): one
            for (case, metric), one in found.estimates.items()
        }
        return headline(replace(found, estimates=swapped)).partition("delivered.")[2]

    tested = " (paired tests under common seeds)."
    assert said({0, 1, 2}) == (
        " DG delivers most at alpha 2, whatever else is set."
        f" CED delivers most at alpha 5, whatever else is set{tested}"
    )
    assert said({0, 3}).startswith(" DG delivers most at speed_max 1 m/s, whatever else is set. CED")
    assert said({0, 4}).startswith(" DG delivers most at alpha 2, speed_max 1 m/s; and alpha 5, speed_max 4 m/s. CED")
    assert said({0, 1}).startswith(" DG delivers most at alpha 2, speed_max 1 m/s; and alpha 2, speed_max 4 m/s. CED")
    assert said({5}).endswith(f" DG delivers most at alpha 5, speed_max 9 m/s{tested}")


def test_a_protocol_without_the_swept_setting_is_named_once() -> None:
    found = without_alpha()
    assert [found.name(case) for case in found.distinct] == [
        *("CED · alpha 2", "DG", "CED · alpha 5", "CED · alpha 10", "CED · alpha 20"),
    ]
    said = f"{headline(found)} {opening(found)}"
    assert headline(found).startswith("Between 48 % (DG) and 110 % (CED · alpha 20)")
    assert "DG · alpha" not in said
    picture = trade_off(found, "mean_delay_s")
    assert picture is not None
    assert picture.svg.count("<circle") == 5
    (table,) = _main_table(found).tables
    assert len(table.rows) == 8  # beside each of the other's points
    assert "DG does not have protocol.alpha: lines that differ only there are the same." in table.remarks
    assert "does not have" not in str(_main_table(results(ALPHAS)))


def test_two_ends_that_are_the_same_are_no_span() -> None:
    found = results(ALPHAS, ("ced",))
    same = {(case, metric): found.estimates[Case(0, "ced"), metric] for case, metric in found.estimates}
    assert "Delay: 232.6 ± 4.9 s, the same for all." in opening(replace(found, estimates=same))
    close = {
        key: replace(one, mean=one.mean * (1 - key[0].point / 1000)) if key[1] == "mean_delay_s" else one
        for key, one in same.items()
    }
    said = opening(replace(found, estimates=close))
    assert "Delay: from CED · alpha 2 (" in said
    assert "with no certain difference between them." in said


def test_which_settings_a_protocol_does_not_have_is_known_from_the_plan() -> None:
    plan = plan_sweep("dpsp", {"protocol.copies": [2, 4], "nodes.count": [10, 20]}, ["spray", "dpsp"], seeds=1)
    assert ignored_in(plan) == {"dpsp": frozenset({"protocol.copies"})}
    assert ignored_in(plan_sweep("dpsp", {"nodes.count": [10, 20]}, ["spray", "dpsp"], seeds=1)) == {}


def without_alpha() -> Results:
    """CED with four values of alpha, and DG, which has none."""
    found = results(ALPHAS, ("ced", "dg"))
    first = {
        key: found.estimates[key[0]._replace(point=0), key[1]] if key[0].protocol == "dg" else one
        for key, one in found.estimates.items()
    }
    return replace(found, estimates=first, ignored={"dg": frozenset({"protocol.alpha"})})
