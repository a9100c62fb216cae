"""The questions behind `serai doctor`: is this machine ready to run serai, and if not, what is to be done?"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import dataclass
from importlib import metadata
from typing import Final

from serai.core.errors import CannotRun
from serai.spark.machine import free_memory_bytes

_PACKAGES: Final = ("numpy", "numba", "pydantic", "pyarrow", "pandas", "pyspark", "typer", "rich")
_MEMORY_WANTED: Final = 1 << 30  # Spark needs about 700 MiB of it; compiling about half


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found, and what to do if it is not `ok`."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def check_machine() -> list[Check]:
    """Everything that serai needs, checked."""
    return [_python(), *map(_package, _PACKAGES), _java(), _kernels(), _memory()]


def _python() -> Check:
    version = platform.python_version()
    return Check("python", sys.version_info >= (3, 11), version, "serai needs Python 3.11 or later")


def _package(name: str) -> Check:
    try:
        return Check(name, True, metadata.version(name))
    except metadata.PackageNotFoundError:
        return Check(name, False, "missing", "pip install 'serai[lab]'")


def _java() -> Check:
    try:
        from serai.spark.java import choose_java
    except ImportError as error:
        return Check("java", False, f"cannot be looked for: {error}", "install what is missing: see above")
    try:
        java = choose_java()
    except CannotRun as error:
        return Check("java", False, "missing, or too old for Spark", str(error))
    return Check("java", True, f"{java.version}, {java.origin}")


def _kernels() -> Check:
    try:
        from serai.core.jit import cache_folder, kernels_are_warm
        from serai.kinds import PROTOCOLS
    except ImportError as error:
        return Check("kernels", False, f"cannot be compiled: {error}", "install what is missing: see above")
    folder = cache_folder()
    warm = [name for name in PROTOCOLS if kernels_are_warm(name)]
    found = f"{' '.join(warm) or 'none'} compiled, in {folder}"
    return Check("kernels", os.access(folder, os.W_OK), found, "set SERAI_CACHE_DIR to a folder you may write to")


def _memory() -> Check:
    free = free_memory_bytes()
    if free is None:
        return Check("memory", True, "free memory unknown on this system")
    return Check("memory", free >= _MEMORY_WANTED, f"{free / 2**30:.1f} GiB free", "serai wants 1 GiB of free memory")
