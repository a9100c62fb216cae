"""The questions behind `serai doctor`: is this machine ready to run serai, and if not, what is to be done?"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import Final

_PACKAGES: Final = ("numpy", "numba", "pydantic", "pyarrow", "typer", "rich")
_MEMORY_WANTED: Final = 1 << 30  # a run at the papers' size needs a small part of it; compiling needs about half


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found, and what to do if it is not `ok`."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def check_machine() -> list[Check]:
    """Everything that serai needs, checked."""
    return [_python(), *map(_package, _PACKAGES), _kernels(), _memory()]


def _python() -> Check:
    version = platform.python_version()
    return Check("python", sys.version_info >= (3, 11), version, "serai needs Python 3.11 or later")


def _package(name: str) -> Check:
    try:
        return Check(name, True, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check(name, False, "missing", "install serai again: pip install -e .")


def _kernels() -> Check:
    try:
        from serai._jit import cache_folder, kernels_are_warm
        from serai.protocols import PROTOCOLS
    except ImportError as error:
        return Check("kernels", False, f"cannot be compiled: {error}", "install numba: see above")
    folder = cache_folder()
    warm = [name for name in PROTOCOLS if kernels_are_warm(name)]
    found = f"{' '.join(warm) or 'none'} compiled, in {folder}"
    return Check("kernels", os.access(folder, os.W_OK), found, "set SERAI_CACHE_DIR to a folder you may write to")


def _memory() -> Check:
    free = _free_bytes()
    if free is None:
        return Check("memory", True, "free memory unknown on this system")
    return Check("memory", free >= _MEMORY_WANTED, f"{free / 2**30:.1f} GiB free", "serai wants 1 GiB of free memory")


def _free_bytes() -> int | None:
    """Memory that new work can have; None where the system does not say (macOS)."""
    try:
        with open("/proc/meminfo") as lines:  # noqa: PTH123
            available = next(line for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None
    return int(available.split()[1]) * 1024
