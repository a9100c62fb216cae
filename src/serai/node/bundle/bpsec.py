"""Integrity of bundles: BIB-HMAC-SHA2 (RFC 9172 and 9173), with the key of the network.

It proves that a bundle was made by a node that has the key, whoever carried it; not which node that was.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from serai.core.errors import PeerError
from serai.node.bundle.bpv7 import INTEGRITY, NO_CRC, Block, Bundle, encode_primary
from serai.node.bundle.cbor import Reader, encode
from serai.node.bundle.eid import eid_value, read_eid

CONTEXT: Final = 1
SHA256: Final = 5
EVERYTHING: Final = 7
"""Scope: with each target also the primary block, the target's header and the header of the integrity block itself."""

_HASHES: Final = {SHA256: "sha256", 6: "sha384", 7: "sha512"}
_WITH_PRIMARY, _WITH_TARGET, _WITH_BIB = 1, 2, 4


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
    """Whether integrity blocks made with this key cover all required blocks, and none of theirs is wrong."""
    covered: set[int] = set()
    primary = encode_primary(bundle.primary)
    for block in bundle.blocks:
        if block.type != INTEGRITY:
            continue
        said = decode_integrity(block.data)
        for target, result in zip(said.targets, said.results, strict=True):
            expected = _mac(bundle, primary, block, target, key, said.variant, said.scope)
            if not hmac.compare_digest(expected, result):
                return False
        covered.update(said.targets)
    return covered.issuperset(required)


def encode_integrity(said: Integrity) -> bytes:
    """The data of an integrity block: an abstract security block (RFC 9172, 3.6), its fields one after another."""
    fields: tuple[Any, ...] = (
        list(said.targets), CONTEXT, 1, eid_value(said.source),
        [[1, said.variant], [3, said.scope]], [[[1, result]] for result in said.results],
    )  # fmt: skip
    return b"".join(map(encode, fields))


def decode_integrity(data: bytes) -> Integrity:
    """What an integrity block says."""
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
        block, protected = None, encode(primary)  # as a byte string: so does the RFC in A.3.3.1
    else:
        block = next((block for block in bundle.blocks if block.number == target), None)
        if block is None:
            raise PeerError(f"an integrity block over block {target}, which is not there")
        protected = encode(block.data)
    parts = [encode(scope)]
    if scope & _WITH_PRIMARY and block:
        parts.append(primary)
    if scope & _WITH_TARGET and block:
        parts.append(_header(block))
    if scope & _WITH_BIB:
        parts.append(_header(bib))
    return hmac.digest(key, b"".join((*parts, protected)), _HASHES[variant])


def _header(block: Block) -> bytes:
    return encode(block.type) + encode(block.number) + encode(block.flags)
