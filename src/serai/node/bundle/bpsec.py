"""Integrity of bundles: BIB-HMAC-SHA2 (RFC 9172 and 9173), with the key of the network.

It proves that a bundle was made by a node that has the key, whoever carried it; not which node that was.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from serai.core.errors import PeerError
from serai.node.bundle.bpv7 import ASSIGNED_FLAGS, CONFIDENTIALITY, INTEGRITY, NO_CRC, Block, Bundle, encode_primary
from serai.node.bundle.cbor import ARRAY, Reader, encode, head, octets, uint
from serai.node.bundle.eid import eid_value, read_eid

CONTEXT: Final = 1
SHA256: Final = 5
EVERYTHING: Final = 7
"""Scope: with each target also the primary block, the target's header and the header of the integrity block itself."""

_HASHES: Final = {SHA256: "sha256", 6: "sha384", 7: "sha512"}
_WITH_PRIMARY, _WITH_TARGET, _WITH_BIB = 1, 2, 4
_RESULT: Final = b"\x81\x82\x01"
"""What the only result for a target begins with: it is its MAC."""
_SIZE: Final = len(_RESULT) + 2 + 32
_LONGEST: Final = 256  # what is remembered of integrity blocks


class Integrity(NamedTuple):
    """What an integrity block says: the numbers of its targets (0: the primary block), and for each its MAC."""

    targets: Sequence[int]
    source: str
    results: Sequence[bytes]
    variant: int = SHA256
    scope: int = EVERYTHING


def sign(
    bundle: Bundle, key: bytes, source: str, targets: Sequence[int], variant: int = SHA256, scope: int = EVERYTHING
) -> Bundle:
    """The bundle with an integrity block over these of its blocks, whose CRCs are then left out (RFC 9173, 3.8.1)."""
    blocks = tuple(block._replace(crc=NO_CRC) if block.number in targets else block for block in bundle.blocks)
    primary = bundle.primary._replace(crc=NO_CRC) if 0 in targets else bundle.primary
    bundle = Bundle(primary, blocks)
    empty = Block(INTEGRITY, bundle.free_number(), b"")
    protected = encode_primary(primary)
    results = [_mac(bundle, protected, empty, target, key, variant, scope) for target in targets]
    signed = empty._replace(data=encode_integrity(Integrity(targets, source, results, variant, scope)))
    return bundle._replace(blocks=(signed, *bundle.blocks))


def verify(bundle: Bundle, key: bytes, required: Sequence[int]) -> bool:
    """Whether integrity blocks made with this key cover all required blocks, and none of theirs is wrong.

    None may be covered twice (RFC 9172, 3.2).
    """
    covered: set[int] = set()
    primary = encode_primary(bundle.primary)
    for block in bundle.blocks:
        if block.type != INTEGRITY:
            continue
        said = decode_integrity(block.data)
        if not covered.isdisjoint(said.targets):
            return False
        for target, result in zip(said.targets, said.results, strict=True):
            expected = _mac(bundle, primary, block, target, key, said.variant, said.scope)
            if not hmac.compare_digest(expected, result):
                return False
        covered.update(said.targets)
    return covered.issuperset(required)


def covers_primary(bundle: Bundle) -> bool:
    """Whether an integrity block says that it is over the primary block, be it right or not."""
    return any(block.type == INTEGRITY and 0 in decode_integrity(block.data).targets for block in bundle.blocks)


def encode_integrity(said: Integrity) -> bytes:
    """The data of an integrity block: an abstract security block (RFC 9172, 3.6), its fields one after another."""
    begins = _begins(tuple(said.targets), said.source, said.variant, said.scope)
    results = [_RESULT + octets(result) for result in said.results]
    return b"".join((begins, head(ARRAY, len(results)), *results))


@lru_cache(256)
def _begins(targets: tuple[int, ...], source: str, variant: int, scope: int) -> bytes:
    """What it begins with, up to its results: the same for all bundles of a node."""
    fields: tuple[Any, ...] = (list(targets), CONTEXT, 1, eid_value(source), [[1, variant], [3, scope]])
    return b"".join(map(encode, fields))


def decode_integrity(data: bytes) -> Integrity:
    """What an integrity block says."""
    for count in (2, 3):  # the quick way, for those that nodes like ours make: with SHA-256, over two or three blocks
        begins = len(data) - 1 - _SIZE * count
        results = data[begins + 1 :]
        if 0 < begins <= _LONGEST and data[begins] == ARRAY << 5 | count and results[: len(_RESULT)] == _RESULT:
            macs = _macs(results, count)
            if macs is not None and (said := _said(data[:begins], count)) is not None:
                return said._replace(results=macs)
    return _any_integrity(data)


def _macs(results: bytes, count: int) -> list[bytes] | None:
    """The results, if each of them is one MAC of 32 bytes."""
    found = [results[start : start + _SIZE] for start in range(0, _SIZE * count, _SIZE)]
    heads = len(_RESULT) + 2
    if any(one[:heads] != _RESULT + b"\x58\x20" for one in found):
        return None
    return [one[heads:] for one in found]


@lru_cache(256)
def _said(begins: bytes, count: int) -> Integrity | None:
    """What an integrity block that begins so says, but for its results; None: look closer."""
    try:
        said = _any_integrity(begins + head(ARRAY, count) + count * (_RESULT + octets(bytes(32))))
    except PeerError:
        return None
    return said if len(said.results) == count else None  # else a MAC ends with what looks like a shorter array


def _any_integrity(data: bytes) -> Integrity:
    reader = Reader(data, items=1000)
    targets = reader.value(1)
    context, flags, source = reader.value(0), reader.uint(), read_eid(reader)
    if context != CONTEXT:
        raise PeerError(f"security context {context}; we know {CONTEXT}, BIB-HMAC-SHA2")
    parameters = _pairs(reader.value(2)) if flags & 1 else {}
    results = reader.value(3)
    reader.done()
    variant, scope = parameters.get(1, 6), parameters.get(3, EVERYTHING)  # RFC 9173, 3.3.1: without one it is SHA-384
    if type(variant) is not int or variant not in _HASHES or type(scope) is not int or 2 in parameters:
        raise PeerError("an integrity block with a hash, scope or wrapped key that we do not know")
    if not isinstance(targets, list) or not isinstance(results, list) or len(targets) != len(results) or not targets:
        raise PeerError("an integrity block needs one result for each target")
    if not all(type(target) is int and target >= 0 for target in targets) or len(set(targets)) != len(targets):
        raise PeerError("the targets of an integrity block are block numbers, each once")
    macs = [_pairs(result).get(1) for result in results]
    if not all(isinstance(mac, bytes) for mac in macs):
        raise PeerError("an integrity block without a MAC")
    return Integrity(targets, source, macs, variant, scope)  # type: ignore[arg-type]


def _pairs(value: Any) -> dict[Any, Any]:
    """Parameters or results by their ids."""
    match value:
        case [*pairs] if all(isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is int for pair in pairs):
            return dict(pairs)
    raise PeerError("parameters and results of security are pairs of a number and a value")


def _mac(bundle: Bundle, primary: bytes, bib: Block, target: int, key: bytes, variant: int, scope: int) -> bytes:
    """The MAC of one target, over the integrity-protected plaintext of RFC 9173, 3.7."""
    if target == 0:
        block, protected = None, octets(primary)  # as a byte string: so does the RFC in A.3.3.1
    else:
        block = next((block for block in bundle.blocks if block.number == target), None)
        if block is None:
            raise PeerError(f"an integrity block over block {target}, which is not there")
        if block.type in (INTEGRITY, CONFIDENTIALITY):  # RFC 9172, 3.7
            raise PeerError(f"an integrity block over block {target}, a security block")
        protected = octets(block.data)
    parts = [uint(scope)]
    if scope & _WITH_PRIMARY and block:
        parts.append(primary)
    if scope & _WITH_TARGET and block:
        parts.append(_header(block))
    if scope & _WITH_BIB:
        parts.append(_header(bib))
    return hmac.digest(key, b"".join((*parts, protected)), _HASHES[variant])


def _header(block: Block) -> bytes:
    """A block's header in canonical form: flags that mean nothing are 0 (RFC 9172, 4)."""
    return _numbers(block.type, block.number, block.flags & ASSIGNED_FLAGS)


@lru_cache(256)
def _numbers(type: int, number: int, flags: int) -> bytes:
    return uint(type) + uint(number) + uint(flags)
