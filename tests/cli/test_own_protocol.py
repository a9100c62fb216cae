"""A protocol of the user's own: the skeleton, its settings, and what is refused."""

import sys
from typing import Any

from tests.adopted import forget_adopted as forget_adopted


def test_a_skeleton_is_written_once_and_listed(serai: Any) -> None:
    assert serai("protocols", "--new", "mine.py").code == 0
    again = serai("protocols", "--new", "mine.py")
    assert (again.code, again.err) == (2, "mine.py is there already; choose another name\n")
    assert "copies = 3" in serai("protocols", "mine.py").out
    assert serai("protocols", "check").code == 2
    assert "name one protocol of your own" in serai("protocols", "check", "dpsp").err
    assert sys.modules.get("mine") is None
