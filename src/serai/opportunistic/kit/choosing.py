"""Which bundle goes to a neighbour next: the best of those that the router offers."""

from __future__ import annotations

import math
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


def choose(link: Link, rules: RouterRules, answers: Answers, key: int, now_s: float, wanted_only: bool) -> Copy | None:
    """The copy that the sender sends next, or None."""
    bits = link.sender.stored & ~link.known
    if rules.seen == LIVE and rules.leaves_out_seen:
        bits &= ~link.receiver.seen
    if not bits:
        return None
    key_of_link = link_key(key, link.sender.number, link.receiver.number)
    selective = wanted_only or rules.wanted_first or rules.skip_late or not link.receiver.carries
    if not selective and not any(answers):
        return link.sender.store[_first_by_rank(bits, rules, key_of_link)]
    best: Copy | None = None
    best_wanted, best_worth, best_rank = False, None, 0
    peer, router = link.peer, link.sender.router
    for id in bits_of(bits):
        copy = link.sender.store[id]
        wanted = _wanted(router, copy, peer, answers) if selective else False
        if (not wanted and (wanted_only or not link.receiver.carries)) or not _is_offered(
            router, copy, peer, rules, answers, now_s
        ):
            continue
        rank, worth = tie_rank(rules.order, key_of_link, id), None
        if answers.priority:
            worth = _worth(router.priority(copy, peer, now_s))
        if best is not None:
            if rules.wanted_first and wanted != best_wanted:
                if best_wanted:
                    continue
            else:
                says = _compared(router, copy, best, worth, best_worth, peer, answers)
                if says < 0 or (says == 0 and rank >= best_rank):
                    continue
        best, best_wanted, best_worth, best_rank = copy, wanted, worth, rank
    return best


def _wanted(router: Router, copy: Copy, peer: Peer, answers: Answers) -> bool:
    if not answers.wanted:
        return peer.wants(copy)
    answer = router.wanted(copy, peer)
    if type(answer) is not bool:
        raise Mistake("wanted", f"answers {answer!r}, not True or False")
    return answer


def _is_offered(
    router: Router, copy: Copy, peer: Peer, rules: RouterRules, answers: Answers, now_s: float
) -> bool:
    if rules.skip_late and is_expired(now_s + transfer_s(copy.size_bytes, peer.rate_bps), copy.expires_s):
        return False
    if not answers.offers:
        return True
    answer = router.offers(copy, peer, now_s)
    if type(answer) is not bool:
        raise Mistake("offers", f"answers {answer!r}, not True or False")
    return answer


def _worth(answer: Any) -> tuple[float, ...]:
    worth = answer if type(answer) is tuple else (answer,)
    for number in worth:
        if type(number) not in (int, float, bool) or math.isnan(number):
            raise Mistake("priority", f"answers {answer!r}, not a number or a tuple of numbers")
    return worth


def _compared(
    router: Router, copy: Copy, best: Copy, worth: Any, best_worth: Any, peer: Peer, answers: Answers
) -> float:
    if answers.before:
        says = router.before(copy, best, peer)
        if type(says) not in (int, float, bool) or math.isnan(says):
            raise Mistake("before", f"answers {says!r}, not a number")
        return says
    return 0 if worth == best_worth else 1 if worth > best_worth else -1


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
    return int(ids[np.argmin(_mixed(np.uint64(key) ^ _mixed(ids + np.uint64(1))))])


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`serai.core.order.mix`, of many numbers below 2**32 at once."""
    low = np.uint64(0xFFFFFFFF)
    h = numbers ^ (numbers >> np.uint64(16))
    h = (h * np.uint64(0x21F0AAAD)) & low
    h ^= h >> np.uint64(15)
    h = (h * np.uint64(0x735A2D97)) & low
    return h ^ (h >> np.uint64(15))
