"""Which bundle goes to a neighbour next: the best of those that the router offers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from serai.opportunistic.kit.lists import bits_of
from serai.opportunistic.kit.nodes import Asked, Link
from serai.opportunistic.kit.places import Places
from serai.opportunistic.kit.router import Copy, Peer, Router
from serai.opportunistic.rules import (
    NEWEST,
    OLDEST,
    RANDOM,
    RouterRules,
    is_expired,
    tie_rank,
    transfer_s,
)
from serai.own.mistakes import Mistake

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
    nodes: Places
    bundles: Places
    on_channel: dict[int, int]
    """The bundles born on each channel, as bits."""


def choose(link: Link, how: Choosing, key: int, now_s: float, wanted_only: bool, too_old: int) -> Copy | None:
    """The copy that the sender sends next, or None; `too_old`: bits of bundles that are for subscribers only."""
    rules, carries = how.rules, link.receiver.carries
    bits = link.candidates(rules)
    if not bits:
        return None
    if wanted_only or rules.wanted_first or not carries or bits & too_old:
        wanted = _wanted(link, bits, how)
        bits &= wanted | ~too_old
        if wanted_only or not carries:
            return _best(link, wanted, how, key, now_s)
        if not rules.wanted_first:
            return _best(link, bits, how, key, now_s)
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
    """The one that goes first of these."""
    if not bits:
        return None
    answers, store = how.answers, link.sender.store
    if answers.offers or answers.priority or how.rules.skip_late:
        if link.asked is not None and not how.rules.skip_late:
            bits = _first_as_asked(link, link.asked, bits, how, now_s)
        else:
            bits = _first_of_offered(link, bits, how, now_s)
        if not bits:
            return None
    key = how.nodes.of(how.nodes.of(key, link.sender.number), link.receiver.number)
    if answers.before:
        return _first_by_votes(link, bits, how.rules, key)
    return store[_first_by_rank(bits, how, key, store)]


def _first_of_offered(link: Link, bits: int, how: Choosing, now_s: float) -> int:
    """Those of the highest priority among all that are offered, as bits."""
    store, router, peer = link.sender.store, link.sender.router, link.peer
    first, best_worth = 0, None
    for id in bits_of(bits):
        copy = store[id]
        if not _is_offered(router, copy, peer, how, now_s):
            continue
        worth = _worth(router.priority(copy, peer, now_s)) if how.answers.priority else ()
        if best_worth is None or worth > best_worth:
            first, best_worth = 1 << id, worth
        elif worth == best_worth:
            first |= 1 << id
    return first


def _first_as_asked(link: Link, asked: Asked, bits: int, how: Choosing, now_s: float) -> int:
    """The same, where the router's answers hold until it hears a list or the copy is transferred."""
    store, router, peer = link.sender.store, link.sender.router, link.peer
    for id in bits_of(bits & ~asked.ids):
        offered = _is_offered(router, store[id], peer, how, now_s)
        if not offered:
            asked.note(id, None)
        else:
            asked.note(id, _worth(router.priority(store[id], peer, now_s)) if how.answers.priority else ())
    return asked.first(bits, link.candidates(how.rules))


def _first_by_votes(link: Link, bits: int, rules: RouterRules, key: int) -> Copy:
    """Of these, looked at in order of creation, each that beats the best so far takes its place."""
    store, router, peer = link.sender.store, link.sender.router, link.peer

    def rank(copy: Copy) -> tuple[float, int]:
        return tie_rank(rules.order, key, copy.id, copy.size_bytes, copy.expires_s)

    ids = bits_of(bits)
    best = store[ids[0]]
    for id in ids[1:]:
        copy = store[id]
        says = _number(router.before(copy, best, peer))
        if says > 0 or (says == 0 and rank(copy) < rank(best)):
            best = copy
    return best


def _is_offered(router: Router, copy: Copy, peer: Peer, how: Choosing, now_s: float) -> bool:
    if how.rules.skip_late and is_expired(now_s + transfer_s(copy.size_bytes, peer.rate_bps), copy.expires_s):
        return False
    if not how.answers.offers:
        return True
    answer = router.offers(copy, peer, now_s)
    if answer is not True and answer is not False:
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


def _first_by_rank(bits: int, how: Choosing, key: int, store: Mapping[int, Copy]) -> int:
    rules = how.rules
    if rules.order == OLDEST or not bits & (bits - 1):
        return (bits & -bits).bit_length() - 1
    if rules.order == NEWEST:
        return bits.bit_length() - 1
    if rules.order != RANDOM:
        return min(
            bits_of(bits), key=lambda id: tie_rank(rules.order, 0, id, store[id].size_bytes, store[id].expires_s)
        )
    if bits.bit_count() <= _FEW:
        return min(bits_of(bits), key=partial(how.bundles.of, key))
    first = (bits & -bits).bit_length() - 1
    window = bits >> first
    octets = np.frombuffer(window.to_bytes((window.bit_length() + 7) // 8, "little"), np.uint8)
    return how.bundles.first(key, np.flatnonzero(np.unpackbits(octets, bitorder="little")) + first)
