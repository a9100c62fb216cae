"""Programs from outside that some tests drive: where one is missing its tests skip with a reason."""

import os
import shutil

import pytest


def program(name: str) -> str:
    """Where a program is; without it the test is skipped, or fails where SERAI_EVERY_PROGRAM is set."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if found:
        return found
    reason = f"{name} is not installed"
    if os.environ.get("SERAI_EVERY_PROGRAM"):
        pytest.fail(reason)
    pytest.skip(reason)
