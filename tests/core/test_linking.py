"""Steps are optimized with the kernel that they are inlined into, and only there."""

import os

import numba
import pytest
from numba.core import codegen

from serai.core.jit import engine, kernel, rule, step

compiled_only = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")


@step
def halve(number: int) -> int:
    return number // 2


@step
def halve_until(number: int, least: int) -> int:
    times = 0
    while number > least:
        number = halve(number)
        times += 1
    return times


@step
def ratio(a: float, b: float) -> float:
    return a / b


@rule
def plus_one(number: int) -> int:
    return number + 1


def optimized(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all that is optimized from now on."""
    names: list[str] = []
    optimize = codegen.CPUCodeLibrary._optimize_final_module

    def noted(library: codegen.CPUCodeLibrary) -> None:
        names.append(library.name)
        optimize(library)

    monkeypatch.setattr(codegen.CPUCodeLibrary, "_optimize_final_module", noted)
    return names


def test_a_step_in_a_step_in_a_kernel_computes() -> None:
    def halvings(last: int) -> int:
        total = 0
        for number in range(last + 1):
            total += halve_until(number, 1)
        return total

    assert engine(halvings)(8) == halvings(8) == 0 + 0 + 1 + 1 + 2 + 2 + 2 + 2 + 3


def test_an_error_in_a_step_reaches_the_caller() -> None:
    @kernel
    def through(a: float, b: float) -> float:
        return ratio(a, b)

    assert through(3.0, 2.0) == 1.5
    with pytest.raises(ZeroDivisionError):
        through(3.0, 0.0)


@compiled_only
def test_steps_are_optimized_with_their_kernel_only(monkeypatch: pytest.MonkeyPatch) -> None:
    names = optimized(monkeypatch)

    @numba.njit
    def halvings_of_next(number: int) -> int:
        return halve_until(plus_one(number), 1)

    assert halvings_of_next(7) == 3
    assert [name for name in names if "halve" in name or "plus_one" in name] == ["plus_one"]
    assert sum("halvings_of_next" in name for name in names) == 1
