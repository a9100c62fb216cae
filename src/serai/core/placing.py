"""Whether something can be written at a place: asked before any work is done, and nothing is left there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from serai.core.errors import BadInput

_REMEDY: Final = "choose another place with --out"


def check_can_hold(folder: Path, named: str | Path, remedy: str = _REMEDY) -> None:
    """Refuse a folder that cannot be written to, or be made: `named` is what the user asked for."""
    try:
        nearest = nearest_folder(folder)
        if not nearest.is_dir():
            raise BadInput(f"{named}: {nearest} is a file, not a folder; {remedy}")
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise BadInput(f"{named}: no permission to write in {nearest}; {remedy}")
    except OSError as error:  # a name that is too long
        raise BadInput(f"{named}: {error.strerror}; {remedy}") from None
    try:  # some places let nobody write, whatever their permissions say
        tempfile.TemporaryDirectory(prefix=".serai-", dir=nearest).cleanup()
    except OSError as error:
        raise BadInput(f"{named}: nothing can be written in {nearest} ({error.strerror}); {remedy}") from error


def check_new(place: Path, named: str | Path, taken: str, remedy: str = _REMEDY) -> None:
    """Refuse a place at which something is already (then `taken` is said) or nothing can be."""
    try:
        is_there = place.exists()
    except OSError as error:  # a name that is too long
        raise BadInput(f"{named}: {error.strerror}; {remedy}") from None
    if is_there:
        raise BadInput(f"{named}{taken}")
    check_can_hold(place.absolute().parent, named, remedy)


def nearest_folder(place: Path) -> Path:
    """The closest of the folder and those above it that exists."""
    return next(above for above in (place, *place.parents) if above.exists())
