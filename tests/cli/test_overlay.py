"""What the command line answers about key-based overlays."""

import json
from collections.abc import Callable

import pytest

from serai.kinds import OVERLAY

SMALL = [
    word
    for change in ("nodes.count=60", "field.width=100 m", "field.height=40 m", "roots.count=3", "events.count=400")
    for word in ("--set", change)
]


@pytest.mark.parametrize("protocol", ["tinymq", "pub2sub"])
def test_run_as_json(serai: Callable, protocol: str) -> None:
    answer = serai("run", "tinymq", "--protocol", protocol, "--seed", "1", *SMALL, "--json")
    assert answer.code == 0
    metrics = json.loads(answer.out)
    assert list(metrics) == list(OVERLAY.definitions)
    assert metrics["protocol"] == protocol
    assert metrics["delivery_ratio"] == 1.0


def test_run_for_people(serai: Callable) -> None:
    answer = serai("run", "tinymq", *SMALL, "--set", "failures.fraction=0.1", "--out", "runs/one")
    assert answer.code == 0
    assert answer.out.startswith("TINYMQ · seed 0 · 60 nodes · 3 trees · 100 queries · 400 events")
    assert "once all queries are renewed" in answer.out
    assert "written to runs/one" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80


def test_a_network_in_parts(serai: Callable) -> None:
    apart = [*SMALL, "--set", "radio.range=8 m", "--set", "nodes.draws=2"]
    answer = serai("run", "tinymq", *apart)
    assert answer.code == 2
    assert "the network is in" in answer.err
    assert "--largest" in answer.err
    assert answer.out == ""
    assert serai("run", "tinymq", *apart, "--largest").code == 0


def test_only_an_overlay_has_a_largest_part(serai: Callable) -> None:
    answer = serai("run", "ced", "--largest")
    assert answer.code == 2
    assert "nodes" in answer.err


def test_an_upper_bound_is_for_fields(serai: Callable) -> None:
    answer = serai("run", "tinymq", *SMALL, "--upper-bound")
    assert answer.code == 2
    assert "only for networks of kind field, and this scenario is of kind overlay" in answer.err


def test_other_readings_of_the_paper_are_not_asked_for(serai: Callable) -> None:
    answer = serai("paper", "tinymq", "--ablate")
    assert answer.code == 2
    assert "readings are always run" in answer.err


def test_both_protocols_are_listed(serai: Callable) -> None:
    listed = serai("protocols").out
    assert "tinymq" in listed
    assert "pub2sub" in listed
    assert "as-printed" in serai("protocols", "tinymq").out
