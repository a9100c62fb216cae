"""A protocol of the user's own: the skeleton, its settings, and what is refused."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adopted import forget_adopted as forget_adopted

HEAD = "from serai.opportunistic import Router, setting\n\n\nclass Bad(Router):\n"
SMALL = ("dpsp", "--set", "duration=5 min", "--set", "nodes.count=10", "--set", "bundles.quiet=0 s")


def bad(body: str) -> None:
    """A protocol with this body, in the folder of the test; its body begins in line 5."""
    Path("bad.py").write_text(HEAD + body)


def test_a_skeleton_is_written_once_and_listed(serai: Any) -> None:
    assert serai("protocols", "--new", "mine.py").code == 0
    again = serai("protocols", "--new", "mine.py")
    assert (again.code, again.err) == (2, "mine.py is there already; choose another name\n")
    assert "copies = 3" in serai("protocols", "mine.py").out
    assert serai("protocols", "check").code == 2
    assert "name one protocol of your own" in serai("protocols", "check", "dpsp").err
    assert sys.modules.get("mine") is None


@pytest.mark.parametrize(
    ("body", "passed", "told"),
    [
        ("    def offers(self, copy, peer, now):\n        pass\n", 1, "5: Bad.offers: answers None, not True or False"),
        (
            "    def hear(self, peer, content, now):\n        peer.x = 1\n",
            1,
            "6: Bad.hear: AttributeError: peer.x cannot",
        ),
        (  # only in some random world
            "    def contact_down(self, peer, now):\n        1 / (peer.id < 4)\n",
            2,
            "6: Bad.contact_down: ZeroDivisionError: division by zero",
        ),
    ],
)
def test_check_tells_the_authors_mistake_after_what_passed(serai: Any, body: str, passed: int, told: str) -> None:
    bad(body)
    answer = serai("protocols", "check", "bad.py")
    assert answer.code == 2
    assert (answer.out.count(" ok "), answer.out.count(" !! ")) == (passed, 1)
    assert answer.out.splitlines()[passed].startswith(" !! ")
    problem = answer.out.splitlines()[passed + 1]
    assert told in problem
    assert "bad.py:" in problem
    assert "(node " in problem
    assert ", t = " in problem
    assert "bug in serai" not in answer.err


def test_a_misspelt_method_is_told_by_run_and_fails_the_check(serai: Any) -> None:
    bad("    def ofers(self, copy, peer, now):\n        return False\n")
    told = 'bad.py:5: Bad.ofers is never used; did you mean "offers"?'
    ran = serai("run", *SMALL, "--protocol", "bad.py", "--json")
    assert ran.code == 0
    assert [line.endswith(told) for line in ran.err.splitlines() if "notice" in line] == [True]
    assert json.loads(ran.out)["protocol"] == "Bad"
    checked = serai("protocols", "check", "bad.py", "--json")
    assert checked.code == 2
    found = json.loads(checked.out)
    assert not found["ok"]
    assert [one["what"] for one in found["checks"] if one["problem"]] == [found["checks"][0]["what"]]
    assert found["checks"][0]["problem"].endswith(told)


def test_settings_of_its_own_come_first(serai: Any) -> None:
    bad("    limit: int = setting(3, ge=1, doc='How many.')\n")
    lines = serai("protocols", "bad.py").out.splitlines()
    assert lines[2:5] == [" of its own:", "  limit = 3", "      How many."]
    assert lines[5] == " as every protocol of its kind:"
    assert any(line.startswith("  seen = ") for line in lines[6:])
    bad("    pass\n")
    assert serai("protocols", "bad.py").out.splitlines()[2:4] == [
        " of its own: no settings",
        " as every protocol of its kind:",
    ]
