"""The first-order radio model, in whole picojoules so that sums do not depend on their order."""

import math
from typing import NamedTuple

import numpy as np

from serai.core.rules import rule


class Radio(NamedTuple):
    """Energy per bit: electronics, and the amplifier in free space (d^2) and beyond d0 (d^4); J, metres."""

    electronics: float
    free_space: float
    multipath: float
    receive_costs: bool


@rule
def transmit_pj(radio: Radio, bits: float, distance_m: float) -> int:
    """What it costs to send so many bits over a distance."""
    square = distance_m * distance_m
    # Free space below d0 = sqrt(free_space / multipath), multipath from there on: at every distance the larger one.
    amplifier = max(radio.free_space * square, radio.multipath * square * square)
    return int(np.rint(bits * (radio.electronics + amplifier) * 1e12))


@rule
def receive_pj(radio: Radio, bits: float) -> int:
    """What it costs to receive so many bits."""
    if not radio.receive_costs:
        return 0
    return int(np.rint(bits * radio.electronics * 1e12))


@rule
def distance(x0: float, y0: float, x1: float, y1: float) -> float:
    """Metres between two points."""
    return math.sqrt((x0 - x1) * (x0 - x1) + (y0 - y1) * (y0 - y1))
