"""Files that somebody could misread: told apart, or asked about, and never changed by one odd line."""

import re
from pathlib import Path

import numpy as np
import pytest

from serai.core.errors import BadInput
from serai.traces import detect_format, read_trace

RNG = np.random.default_rng(11)
TIMES = np.sort(RNG.integers(0, 9000, 200))
PAIRS = np.array([RNG.choice(30, 2, replace=False) for _ in TIMES])
LENGTHS = RNG.integers(5, 300, 200)


def lines(*columns: object) -> str:
    return "".join(" ".join(map(str, row)) + "\n" for row in zip(*columns, strict=True))  # type: ignore[call-overload]


LIMITS = "0 9 0 9 0 9\n"
ODD = ("", LIMITS, "1 2 3 4 5 6 7 8 9\n", "1 2 3\n", "5 CONN 1 2 up\n", "what is this\n", "\n", "$ns_ at\n")
A, B = PAIRS.T
BY_NODE = np.argsort(A, kind="stable")
CASES = {
    "t i j": (lines(TIMES, A, B), "sightings"),
    "a b t": (lines(A, B, TIMES), "sightings-time-last"),
    "names, unsorted": (lines([f"n{a}" for a in A], [f"n{b}" for b in B], TIMES[::-1]), "sightings-time-last"),
    "begin end": (lines(A, B, TIMES, TIMES + LENGTHS), "crawdad"),
    "begin end, six columns, by node": (
        lines(A[BY_NODE], B[BY_NODE], TIMES[BY_NODE], (TIMES + LENGTHS)[BY_NODE], A * 0 + 1, A * 0), "crawdad"
    ),
    "begin duration": (lines(A, B, TIMES + 300, LENGTHS), "begin-duration"),
    "begin duration, unsorted": (lines(A, B, (TIMES + 300)[BY_NODE], LENGTHS), "begin-duration"),
    "classes": (lines(TIMES, A, B, [f"{a}A" for a in A], [f"{b}B" for b in B]), "sociopatterns"),
    "nodes that stand": (lines([0.0] * 200, TIMES / 7 + 0.5, LENGTHS / 7 + 0.5), "bonnmotion"),
    "two waypoints": (lines([0.0] * 200, TIMES + 0.5, LENGTHS + 0.5, [60.5] * 200, A + 0.5, B + 0.5), "bonnmotion"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_can_be_told_is_told_whatever_one_line_says(case: str, tmp_path: Path) -> None:
    path = tmp_path / "trace"
    text, form = CASES[case]
    rows = text.splitlines(keepends=True)
    for odd in ODD:
        for place in (0, 7, 200):
            if (odd, place) != (LIMITS, 0):  # that would be the header of positions, so there is a doubt
                path.write_text("".join([*rows[:place], odd, *rows[place:]]))
                assert detect_format(path) == form, (odd, place)


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        (lines(A[BY_NODE], B[BY_NODE], TIMES[BY_NODE]), {"sightings", "sightings-time-last"}),  # by node, then time
        (lines(TIMES[::-1], A, B), {"sightings", "sightings-time-last"}),
        (lines([0] * 200, A, B), {"bonnmotion", "sightings", "sightings-time-last"}),
        (lines(A, B, TIMES // 45, LENGTHS), {"begin-duration", "crawdad"}),
        (lines(TIMES, A, LENGTHS, LENGTHS[::-1]), {"begin-duration", "one-movement"}),  # a header is missing
    ],
)
def test_what_cannot_be_told_is_asked(text: str, candidates: set[str], tmp_path: Path) -> None:
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        detect_format(path)
    assert set(re.findall(r"--format ([a-z-]+)", str(caught.value))) == candidates
    assert "\n" not in str(caught.value)


def test_durations_that_show_only_further_down_are_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    times = np.arange(20_000) // 100
    path.write_text(lines(times % 7, times % 7 + 1, np.where(times < 80, 0, times + 500), times * 0 + 300))
    assert detect_format(path) == "crawdad"
    with pytest.raises(BadInput, match="--format begin-duration or --format crawdad"):
        read_trace(path)
    assert read_trace(path, "begin-duration").lines == 20_000
