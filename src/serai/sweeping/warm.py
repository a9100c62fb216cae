"""Kernels compiled before the workers want them, who would each compile them for themselves."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import serai
from serai.core.errors import CannotRun
from serai.core.jit import COMPILING_S, compilation_notice, kernels_are_warm
from serai.core.stopping import removed_if_stopped
from serai.kinds import kernels_of
from serai.scenario.section import Scenario
from serai.scenario.write import to_toml
from serai.spark.machine import usable_cores


def warm_kernels(scenarios: Iterable[Scenario], on_notice: Callable[[str], None]) -> None:
    """Compile the kernels of the scenarios' protocols that are not compiled yet, several at a time."""
    one_each = {kernels_of(scenario): scenario for scenario in scenarios}
    cold = {name: scenario for name, scenario in one_each.items() if not kernels_are_warm(name)}
    if not cold:
        return
    on_notice(compilation_notice(cold, COMPILING_S * -(-len(cold) // usable_cores())))
    waiting = list(cold.values())
    with tempfile.TemporaryDirectory(prefix="serai-") as folder, removed_if_stopped(Path(folder)):
        while waiting:
            now, waiting = waiting[: usable_cores()], waiting[usable_cores() :]
            # A process each: compiling does not share one with others.
            processes = [_compile(scenario, Path(folder)) for scenario in now]
            try:
                for process in processes:
                    _, said = process.communicate()
                    if process.returncode:
                        raise CannotRun(f"compiling kernels failed: {said.strip().splitlines()[-1]}")
            finally:  # whoever is stopped by Ctrl-C or fails leaves nobody behind who goes on compiling
                for process in processes:
                    process.kill()


def _compile(scenario: Scenario, folder: Path) -> subprocess.Popen[str]:
    """A process that runs the scenario once, and so leaves its compiled kernels in the cache."""
    file = folder / f"{scenario.protocol.name}.toml"
    file.write_text(to_toml(scenario), encoding="utf-8")
    paths = [str(Path(serai.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "serai", "run", str(file), "--json"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
