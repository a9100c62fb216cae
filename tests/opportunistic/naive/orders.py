"""The seeded orders, written again: a 32-bit mix of who, when and the run's key."""

WORD = 2**32


def mix(number: int) -> int:
    """Shift and multiply twice, and shift once more."""
    for shift, factor in ((16, 0x21F0AAAD), (15, 0x735A2D97)):
        number = (number ^ (number >> shift)) * factor % WORD
    return number ^ (number >> 15)


def with_who(key: int, who: int) -> int:
    """A key for somebody, from the key of something larger."""
    return mix(key ^ mix(who + 1))


def of_instant(key: int, now_s: float) -> int:
    """The key of an instant, in microseconds."""
    both_halves = mix(mix(key % WORD) ^ (key // WORD))
    return mix(both_halves ^ int(now_s * 1e6))


def of_link(key: int, now_s: float, sender: int, receiver: int) -> int:
    """The key of a link at an instant."""
    return with_who(with_who(of_instant(key, now_s), sender), receiver)


def bloom_places(salt: int, number: int, hashes: int, size: int) -> set[int]:
    """Where a Bloom filter of so many bits has a bundle's: at a start, and on from there in odd steps."""
    start = with_who(salt, number)
    step = mix(start + 1) | 1
    return {(start + turn * step) % size for turn in range(hashes)}
