"""Which bundle goes to a neighbour next: the best of those that the router offers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.order import key_in_slot
from serai.opportunistic.kit.lists import bits_of
from serai.opportunistic.kit.mistakes import Mistake
from serai.opportunistic.kit.nodes import Link
from serai.opportunistic.kit.router import Copy, Peer, Router
from serai.opportunistic.rules import (
    LIVE,
    NEWEST,
    OLDEST,
    RouterRules,
    is_expired,
    link_key,
    tie_rank,
    transfer_s,
)

_FEW = 20  # candidates that are ranked one by one; more at once


class Answers(NamedTuple):
    """Which of the questions the author's class answers itself: the others are not asked."""

    wanted: bool
    offers: bool
    priority: bool
    before: bool

    @classmethod
    def of(cls, router: type[Router]) -> Answers:
        """What a class overrides."""
        return cls(*(getattr(router, name) is not getattr(Router, name) for name in cls._fields))


class Choosing(NamedTuple):
    """What choices depend on besides the link."""

    rules: RouterRules
    answers: Answers
    on_channel: dict[int, int]
    """The bundles born on each channel, as bits."""


def choose(link: Link, how: Choosing, key: int, now_s: float, wanted_only: bool) -> Copy | None:
    """The copy that the sender sends next, or None."""
    rules, carries = how.rules, link.receiver.carries
    bits = link.sender.stored & ~link.known
    if rules.seen == LIVE and rules.leaves_out_seen:
        bits &= ~link.receiver.seen
    if not bits:
        return None
    if wanted_only or rules.wanted_first or not carries:
        wanted = _wanted(link, bits, how)
        if wanted_only or not carries:
            return _best(link, wanted, how, key, now_s)
        # Bundles that the neighbour wants go before all others.
        return _best(link, wanted, how, key, now_s) or _best(link, bits & ~wanted, how, key, now_s)
    return _best(link, bits, how, key, now_s)


def _wanted(link: Link, bits: int, how: Choosing) -> int:
    """Those that the receiver wants itself."""
    if how.answers.wanted:
        store, router, wanted = link.sender.store, link.sender.router, 0
        for id in bits_of(bits):
            answer = router.wanted(store[id], link.peer)
            if type(answer) is not bool:
                raise Mistake("wanted", f"answers {answer!r}, not True or False")
            wanted |= answer << id
        return wanted
    if link.peer.live is not None:
        return bits & link.receiver.asked
    asked = 0
    for channel in link.peer.channels:
        asked |= how.on_channel.get(channel, 0)
    return bits & asked


def _best(link: Link, bits: int, how: Choosing, key: int, now_s: float) -> Copy | None:
    """The one that goes first of these: looked at in order of creation, each that beats the best so far is it."""
    rules, answers, store = how.rules, how.answers, link.sender.store
    if not bits:
        return None
    key = link_key(key, link.sender.number, link.receiver.number)
    if not (answers.offers or answers.priority or answers.before or rules.skip_late):
        return store[_first_by_rank(bits, rules, key)]
    peer, router = link.peer, link.sender.router
    best: Copy | None = None
    best_worth: tuple[float, ...] = ()
    best_rank = 0
    for id in bits_of(bits):
        copy = store[id]
        if not _is_offered(router, copy, peer, how, now_s):
            continue
        rank = tie_rank(rules.order, key, id)
        worth = _worth(router.priority(copy, peer, now_s)) if answers.priority else ()
        if best is not None:
            if answers.before:
                says = _number(router.before(copy, best, peer))
            else:
                says = (worth > best_worth) - (worth < best_worth)
            if says < 0 or (says == 0 and rank >= best_rank):
                continue
        best, best_worth, best_rank = copy, worth, rank
    return best


def _is_offered(router: Router, copy: Copy, peer: Peer, how: Choosing, now_s: float) -> bool:
    if how.rules.skip_late and is_expired(now_s + transfer_s(copy.size_bytes, peer.rate_bps), copy.expires_s):
        return False
    if not how.answers.offers:
        return True
    answer = router.offers(copy, peer, now_s)
    if type(answer) is not bool:
        raise Mistake("offers", f"answers {answer!r}, not True or False")
    return answer


def _worth(answer: Any) -> tuple[float, ...]:
    worth: tuple[float, ...] = answer if type(answer) is tuple else (answer,)
    for number in worth:
        if type(number) not in (int, float, bool) or number != number:
            raise Mistake("priority", f"answers {answer!r}, not a number or a tuple of numbers")
    return worth


def _number(answer: Any) -> float:
    if type(answer) not in (int, float, bool) or answer != answer:
        raise Mistake("before", f"answers {answer!r}, not a number")
    return float(answer)


# ---- where nothing but the order decides


def _first_by_rank(bits: int, rules: RouterRules, key: int) -> int:
    if rules.order == OLDEST:
        return (bits & -bits).bit_length() - 1
    if rules.order == NEWEST:
        return bits.bit_length() - 1
    if bits.bit_count() <= _FEW:
        return min(bits_of(bits), key=lambda id: key_in_slot(key, id))
    first = (bits & -bits).bit_length() - 1
    window = bits >> first
    octets = np.frombuffer(window.to_bytes((window.bit_length() + 7) // 8, "little"), np.uint8)
    ids = np.flatnonzero(np.unpackbits(octets, bitorder="little")).astype(np.uint64) + np.uint64(first)
    return int(ids[np.argmin(keys_in_slot(key, mixed(ids + np.uint64(1))))])


def keys_in_slot(key: int, mixed_numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`serai.core.order.key_in_slot` of many, whose numbers plus 1 were mixed before."""
    return mixed(np.uint64(key) ^ mixed_numbers)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`serai.core.order.mix`, of many numbers below 2**32 at once."""
    low = np.uint64(0xFFFFFFFF)
    h = numbers ^ (numbers >> np.uint64(16))
    h = (h * np.uint64(0x21F0AAAD)) & low
    h ^= h >> np.uint64(15)
    h = (h * np.uint64(0x735A2D97)) & low
    return h ^ (h >> np.uint64(15))
