"""Lifetimes extrapolated from a run, beside those of the same worlds simulated until the first death.

    python -m tests.field.lifetimes ced 10000 100 [protocol.hops=one ...]    a protocol, its first seed, how many

The numbers of docs/metrics.md.
"""

import sys
from collections.abc import Iterable

import serai
from serai.core.statistics import Estimate, estimate


def ratio_of_lifetimes(protocol: str, seeds: Iterable[int], sets: Iterable[str] = ()) -> tuple[Estimate, Estimate]:
    """Simulated over extrapolated: the mean of the seeds' ratios, and the ratio of the means."""
    scenario = serai.load_scenario(protocol, list(sets))
    pairs = [
        (
            serai.measure(serai.simulate(scenario, seed=seed)).lifetime_days,
            serai.measure(serai.simulate(scenario, seed=seed, until_death=True)).lifetime_days,
        )
        for seed in seeds
    ]
    extrapolated, simulated = (sum(days) / len(pairs) for days in zip(*pairs, strict=True))
    ratio = simulated / extrapolated
    left_over = estimate([(late - ratio * early) / extrapolated for early, late in pairs])
    return estimate([late / early for early, late in pairs]), Estimate(ratio, left_over.standard_error, len(pairs))


if __name__ == "__main__":
    protocol, first, count, *sets = sys.argv[1:]
    of_runs, of_means = ratio_of_lifetimes(protocol, range(int(first), int(first) + int(count)), sets)
    print(f"{protocol} {' '.join(sets)}: simulated / extrapolated, {count} seeds from {first}, 95 %")
    for name, found in (("mean ratio", of_runs), ("ratio of means", of_means)):
        print(f"  {name:15} {found.mean:.4f} ± {found.half_width():.4f}")
