"""Readers of traces as one would write them first: line by line, node by node."""

import itertools
import math
import re

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
Contact = tuple[str, str, float, float]


def words_of(line: str) -> list[str]:
    return line.split("#")[0].split()


def is_number(word: str) -> bool:
    return bool(NUMBER.fullmatch(word))


def natural(name: str) -> list[tuple[int, int, str]]:
    return [(0, int(p), p) if p.isdigit() else (1, 0, p) for p in re.split(r"([0-9]+)", name) if p]


def pair_of(one: str, other: str) -> tuple[str, str]:
    first, second = sorted((one, other), key=natural)
    return first, second


def one_contacts(text: str) -> list[Contact]:
    """Links switched on and off one line after the other, in order of time."""
    changes = []
    for line in text.split("\n"):
        words = words_of(line)
        if (
            len(words) == 5
            and words[1] == "CONN"
            and words[4] in ("up", "down")
            and is_number(words[0])
            and words[2] != words[3]
        ):
            changes.append((float(words[0]), pair_of(words[2], words[3]), words[4]))
    changes.sort(key=lambda change: change[0])
    running: dict[tuple[str, str], float] = {}
    done = []
    for time_s, pair, what in changes:
        if what == "up":
            running.setdefault(pair, time_s)
        elif pair in running:
            done.append((*pair, running.pop(pair), time_s))
    done += [(*pair, up_s, changes[-1][0]) for pair, up_s in running.items()]
    return sorted(done, key=lambda row: (row[2], natural(row[0]), natural(row[1]), row[3]))


def step_of(times: list[float]) -> float:
    """The smallest difference between two times that is more than rounding."""
    differences = [
        later - time for time, later in itertools.pairwise(sorted(times)) if later - time > 1e-9 * max(map(abs, times))
    ]
    return min(differences, default=1.0)


def sightings(text: str, first: bool, until: bool = False) -> list[Contact]:
    """Each pair's times in order: one that follows the one before by a step goes on with it."""
    seen: dict[tuple[str, str], list[float]] = {}
    for line in text.split("\n"):
        words = words_of(line)
        if len(words) >= 3:
            time, one, other = (words[0], words[1], words[2]) if first else (words[2], words[0], words[1])
            if is_number(time) and one != other:
                seen.setdefault(pair_of(one, other), []).append(float(time))
    step = step_of([time for times in seen.values() for time in times]) if seen else 1.0
    rows = []
    for pair, times in seen.items():
        runs: list[list[float]] = []
        for time in sorted(times):
            if runs and time - runs[-1][-1] <= 1.001 * step:
                runs[-1].append(time)
            else:
                runs.append([time])
        rows += [(*pair, run[0] - step, run[-1]) if until else (*pair, run[0], run[-1] + step) for run in runs]
    return sorted(rows, key=lambda row: (row[2], natural(row[0]), natural(row[1])))


def crawdad(text: str, durations: bool = False) -> list[Contact]:
    """Rows made one with whatever they overlap or touch, until nothing changes any more."""
    rows = []
    for line in text.split("\n"):
        words = words_of(line)
        if len(words) >= 4 and is_number(words[2]) and is_number(words[3]) and words[0] != words[1]:
            up_s, down_s = float(words[2]), float(words[3])
            down_s = up_s + down_s if durations else down_s
            if up_s <= down_s:
                rows.append((*pair_of(words[0], words[1]), up_s, down_s))
    step = step_of([time for row in rows for time in row[2:]]) if rows else 1.0
    rows = [(*row[:3], row[2] + step if row[3] == row[2] else row[3]) for row in rows]
    changed = True
    while changed:
        changed = False
        for one, other in itertools.combinations(rows, 2):
            if one[:2] == other[:2] and one[2] <= other[3] and other[2] <= one[3]:
                rows.remove(one)
                rows.remove(other)
                rows.append((*one[:2], min(one[2], other[2]), max(one[3], other[3])))
                changed = True
                break
    return sorted(rows, key=lambda row: (row[2], natural(row[0]), natural(row[1])))


def adjusted(rows: list[Contact], only: set[str], gap_s: float, least_s: float) -> list[Contact]:
    """Contacts among some nodes, joined over gaps one after the other, without those that are short then."""
    done: list[Contact] = []
    for row in sorted((row for row in rows if {row[0], row[1]} <= only), key=lambda row: (row[:2], row[2:])):
        if done and done[-1][:2] == row[:2] and gap_s > 0 and row[2] - done[-1][3] <= gap_s:
            done[-1] = (*done[-1][:3], row[3])
        else:
            done.append(row)
    kept = [row for row in done if row[3] - row[2] >= least_s]
    return sorted(kept, key=lambda row: (row[2], natural(row[0]), natural(row[1])))


def ns2_place(commands: list[tuple[float, str, list[float]]], at_s: float) -> tuple[float, float]:
    """Where a node is at a time that follows these commands (time, what, numbers), in steps of its own commands."""
    x, y, now_s = 0.0, 0.0, 0.0
    going: tuple[float, float, float] | None = None
    for time_s, what, numbers in [*sorted(commands, key=lambda c: c[0]), (at_s, "look", [])]:
        if time_s > at_s:
            time_s, what = at_s, "look"
        if going is not None:
            left_m = math.hypot(going[0] - x, going[1] - y)
            walked_m = going[2] * (time_s - now_s)
            share = min(walked_m / left_m, 1.0) if left_m else 1.0
            x, y = x + (going[0] - x) * share, y + (going[1] - y) * share
        now_s = time_s
        if what == "look":
            return x, y
        if what == "setdest":
            going = (numbers[0], numbers[1], numbers[2])
        else:
            going = None
            x, y = (numbers[0], y) if what == "X_" else (x, numbers[0])
    raise AssertionError
