"""A protocol of the user's own, from a skeleton to a run."""

import sys
from typing import Any

from tests.adopted import forget_adopted as forget_adopted

SMALL = ("duration=30 min", "nodes.count=20", "bundles.quiet=0 s", "bundles.lifetime=10 min")


def test_from_a_skeleton_to_a_run(serai: Any) -> None:
    assert serai("protocols", "--new", "mine.py").code == 0
    again = serai("protocols", "--new", "mine.py")
    assert (again.code, again.err) == (2, "mine.py is there already; choose another name\n")
    listed = serai("protocols", "mine.py").out
    assert "copies = 3" in listed
    small = [word for text in SMALL for word in ("--set", text)]
    assert "MINE" in serai("run", "dpsp", "--protocol", "mine.py", "--set", "protocol.copies=2", *small).out
    checked = serai("protocols", "check", "mine.py")
    assert checked.code == 0, checked.out
    assert checked.out.count(" ok ") == 3
    assert serai("protocols", "check").code == 2
    assert sys.modules.get("mine") is None
