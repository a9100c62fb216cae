"""Rules: small functions that Python calls as they are, and kernels call compiled.

A node in the field runs them as plain Python, so this module imports nothing that is heavy. In the laboratory
`serai.core.jit` passes every rule to numba: those marked before it was loaded when it is loaded, later ones at once.
"""

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Register = Callable[[Callable[..., Any], bool], None]

_marked: list[tuple[Callable[..., Any], bool]] = []
_registers: list[_Register] = []


def rule(function: _Function) -> _Function:
    """Mark a pure function of scalars or arrays that kernels may call; from Python it stays plain Python."""
    _mark(function, is_step=False)
    return function


def step(function: _Function) -> _Function:
    """Mark a rule that works on an engine's state, allocates nothing, and is inlined where it is called."""
    _mark(function, is_step=True)
    return function


def pass_on_to(register: _Register) -> None:
    """Call `register(function, is_step)` for all functions marked so far, and for each that will be."""
    _registers.append(register)
    for function, is_step in _marked:
        register(function, is_step)


def _mark(function: Callable[..., Any], is_step: bool) -> None:
    _marked.append((function, is_step))
    for register in _registers:
        register(function, is_step)


def lowest_bit(bits: int) -> int:
    """The number of the lowest bit that is set; compiled, one instruction."""
    return (int(bits) & -int(bits)).bit_length() - 1


def bit_length(bits: int) -> int:
    """How many bits it takes to write a number that is not negative; compiled, one instruction."""
    return int(bits).bit_length()
