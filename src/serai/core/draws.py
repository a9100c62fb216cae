"""Random numbers that need no generator: the nth number of a stream is a fixed mix of (key, stream, n).

A generator gives its numbers in the order in which they are asked for, so that one sensor more would change what all
later ones get. Here each has a stream of its own that costs nothing to begin: two 32-bit words.
"""

from serai.core.order import LOW_32_BITS, mix
from serai.core.rules import rule

_WORDS = float(1 << 32)
_HIGH_BITS, _LOW_BITS = 27, 26  # of the 53 that a fraction between 0 and 1 has room for


@rule
def own_stream(key: int, who: int) -> tuple[int, int]:
    """The stream of one sensor, subscriber, ... (numbered from 0) under a key of at most 62 bits."""
    own = mix(who + 1)
    return mix((key & LOW_32_BITS) ^ own), mix((key >> 32) ^ own)


@rule
def word(stream: tuple[int, int], n: int) -> int:
    """The nth word of a stream: 32 random bits."""
    return mix(mix(n ^ stream[0]) ^ stream[1])


@rule
def fraction(stream: tuple[int, int], n: int) -> float:
    """The nth number of a stream that is read by fractions: in [0, 1), with 53 random bits."""
    high, low = word(stream, 2 * n) >> (32 - _HIGH_BITS), word(stream, 2 * n + 1) >> (32 - _LOW_BITS)
    return ((high << _LOW_BITS) | low) / float(1 << (_HIGH_BITS + _LOW_BITS))


@rule
def exponential(stream: tuple[int, int], n: int) -> tuple[float, int]:
    """A number with exponential distribution and mean 1 out of the words from the nth on; and the first word not used.

    Von Neumann's way (1951): words are drawn as long as they fall. The first of a run of odd length is the fraction,
    and each run of even length before it counts for 1. It compares and nothing else, so every machine gives the same
    bits, which no library promises of a logarithm.
    """
    whole = 0
    while True:
        first = last = word(stream, n)
        length = 1
        n += 1
        while True:
            following = word(stream, n)
            n += 1
            if following >= last:
                break
            last = following
            length += 1
        if length % 2 == 1:
            return whole + first / _WORDS, n
        whole += 1
