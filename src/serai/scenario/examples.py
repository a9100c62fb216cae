"""The examples that come with serai: where their folders are."""

from __future__ import annotations

from pathlib import Path

import serai


def example_folders() -> dict[str, Path]:
    """The folders of examples by name: beside the package as it is installed, or in the sources."""
    package = Path(serai.__file__).parent
    for there in (package / "examples", package.parents[1] / "examples"):
        if there.is_dir():
            return {each.name: each for each in sorted(there.iterdir()) if each.is_dir() and each.name[0] not in "._"}
    return {}
