"""What this machine has to give: cores and memory, within the limits of a container if there are any."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def usable_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_memory_bytes() -> int | None:
    """Memory that new work can have; None where the system does not say (macOS)."""
    free = [found for found in (_free_on_the_machine(), _free_in_the_container()) if found is not None]
    return min(free, default=None)


def _free_on_the_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None
    return int(available.split()[1]) * 1024


def _free_in_the_container() -> int | None:
    """What the control group of this process leaves; None without a limit."""
    try:
        limit, used = ((_CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        cached = next(line for line in (_CGROUP / "memory.stat").read_text().splitlines() if line.startswith("file "))
    except (OSError, StopIteration):
        return None
    # Pages of files are given up when memory is asked for.
    return None if limit == "max" else int(limit) - int(used) + int(cached.split()[1])
