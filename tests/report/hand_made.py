"""Results made by hand, whose every number is known."""

import math

from serai.core.statistics import Estimate
from serai.kinds import FIELD
from serai.report.results import Case, DelayCurve, Difference, Point, Results, Served

HEADLINES = ("delivery_ratio", "mean_delay_s", "copies_per_event", "lifetime_days")
LEVEL = {
    "delivery_ratio": {"ced": 0.85, "cet": 0.88, "dg": 0.48},
    "mean_delay_s": {"ced": 232.6, "cet": 216.3, "dg": 611.1},
    "copies_per_event": {"ced": 3.87, "cet": 5.18, "dg": 78.17},
    "lifetime_days": {"ced": 3.39, "cet": 2.48, "dg": 3.39},
    "transmissions_per_event": {"ced": 31.0, "cet": 42.0, "dg": 78.2},
    "energy_j": {"ced": 40.0, "cet": 55.0, "dg": 31.0},
    "drops_expired": {"ced": 4000.0, "cet": 4500.0, "dg": 5200.0},
    "drops_spent": {"ced": 0.0, "cet": 12.0, "dg": 0.0},
    "drops_full": {"ced": 100.0, "cet": 300.0, "dg": 20.0},
    "drops_stranded": {"ced": 9000.0, "cet": 9900.0, "dg": 0.0},
    "fairness_communities": {"ced": 0.97, "cet": 0.98, "dg": 0.93},
    "upper_bound_direct": dict.fromkeys(("ced", "cet", "dg"), math.nan),
}
COUNT = 20


def level(metric: str, protocol: str, point: int) -> Estimate:
    """Rises by a tenth from point to point; the standard error is a hundredth of the mean."""
    mean = LEVEL[metric][protocol] * (1 + 0.1 * point)
    return Estimate(mean, mean / 100, COUNT)


def results(points: tuple[Point, ...] = (Point("field", {}),), protocols=("ced", "cet", "dg")) -> Results:
    cases = tuple(Case(point, protocol) for point in range(len(points)) for protocol in protocols)
    estimates = {(case, metric): level(metric, case.protocol, case.point) for case in cases for metric in LEVEL}
    differences = {
        (case, Case(case.point, "dg"), metric): Difference(0.0, 0.0, 0.5 if metric == "lifetime_days" else 0.001)
        for case in cases
        if case.protocol != "dg"
        for metric in HEADLINES
    }
    return Results(
        title="A comparison made by hand",
        points=points,
        cases=cases,
        definitions=FIELD.definitions,
        headlines=HEADLINES,
        estimates=estimates,
        seeds=COUNT,
        differences=differences,
        delays={case: DelayCurve((10, 100, 1000), (0.1, 0.4, 0.8)) for case in cases},
        dots={
            (case, metric): tuple(estimates[case, metric].mean * (0.9 + 0.02 * seed) for seed in range(10))
            for case in cases
            for metric in HEADLINES
        },
        served={case: {"1 sensor": Served(10, 8, 2), "more": Served(90, 0, 0)} for case in cases},
        served_seeds=5,
        scenarios={case: f'title = "<{case.protocol} & others>"\n' for case in cases},
        provenance={"command": "serai sweep field", "seeds": "0 to 19", "serai": "0.1.0"},
    )


ALPHAS = tuple(Point("field", {"protocol.alpha": str(alpha)}) for alpha in (2, 5, 10, 20))
