"""Rules are plain Python until the laboratory is loaded; then kernels call them, whenever they were marked."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from serai.core.jit import kernel
from serai.core.order import mix
from serai.core.rules import bit_length, lowest_bit, rule, step

SOURCES = Path(__file__).parents[2] / "src"

BEFORE_AND_AFTER = """
import sys
from serai.core.order import mix
from serai.core.rules import rule
plain = mix(5)
assert not {"numba", "numpy"} & set(sys.modules)
from serai.core.jit import kernel

@rule
def twice(number):
    return 2 * number

def both(number):
    return twice(mix(number))

assert kernel(both)(5) == 2 * plain == both(5)
"""


def test_rules_marked_before_numba_is_loaded_are_known_to_it_like_later_ones(tmp_path: Path) -> None:
    file = tmp_path / "both.py"
    file.write_text(BEFORE_AND_AFTER)
    environment = os.environ | {"PYTHONPATH": str(SOURCES), "SERAI_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, str(file)], env=environment, check=True)


@pytest.mark.parametrize("mark", [rule, step])
def test_a_marked_function_is_the_function_itself(mark: object) -> None:
    def some(number: int) -> int:
        return number

    assert callable(mark)
    assert mark(some) is some


@pytest.mark.parametrize("number", [0, 1, 77, 2**31 - 1, 2**50 + 3])
def test_a_mix_is_the_same_compiled_and_for_every_width(number: int) -> None:
    compiled = kernel(_mixed)
    widths = [np.int64] if number >= 2**31 else [np.int32, np.int64]
    assert {int(mix(width(number))) for width in widths} == {mix(number)}
    assert {int(compiled(width(number))) for width in widths} == {mix(number)}


def _mixed(number: int) -> int:
    return mix(number)


def test_the_mix_is_the_published_one() -> None:
    """Two multiplications by constants of a good 32-bit mix, worked out step by step for 1."""
    first = 0x21F0AAAD  # 1 * constant; 1 >> 16 is nothing
    second = ((first ^ first >> 15) * 0x735A2D97) & 0xFFFFFFFF
    assert mix(1) == second ^ second >> 15


@pytest.mark.parametrize(("bits", "lowest", "length"), [(1, 0, 1), (0b1011000, 3, 7), (1 << 61, 61, 62)])
def test_bits(bits: int, lowest: int, length: int) -> None:
    assert (lowest_bit(bits), bit_length(bits)) == (lowest, length)
