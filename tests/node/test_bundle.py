"""Bundles: RFC examples byte for byte, round trips, another's codec (pyD3TN), and what is refused."""

from datetime import UTC, datetime
from hashlib import sha256

import cbor2
import pytest
from fastcrc.crc16 import ibm_sdlc
from fastcrc.crc32 import iscsi
from hypothesis import given
from hypothesis import strategies as st

from serai.core.errors import PeerError
from serai.node.bundle import bpsec, bpv7
from serai.node.bundle.age import age_ms, hop_count, previous_node
from serai.node.bundle.bpv7 import (
    CRC16,
    CRC32C,
    DELETE_BUNDLE,
    DISCARD_BLOCK,
    FRAGMENT,
    INTEGRITY,
    NO_CRC,
    BadCheck,
    Block,
    Bundle,
    Primary,
    decode_bundle,
    encode_block,
    encode_bundle,
    encode_primary,
    obey_flags,
)
from serai.node.bundle.cbor import Reader, decode, encode
from serai.node.bundle.eid import channel_eid, eid_of, eid_value, topic_of
from serai.node.bundle.message import Envelope, Refused, message_of, onward
from serai.node.interests import topic_matches
from serai.node.words import Header, Message, mark_of
from tests.node.given import bundles, eids, headers, messages, topics

KEY = bytes.fromhex("1a2b" * 8)
# RFC 9173, A.1.4: HMAC-SHA-512 over the payload.
EXAMPLE_1 = bytes.fromhex(
    "9f88070000820282010282028202018202820201820018281a000f4240850b0200005856810101018202820201828201078203008181820158"
    "403bdc69b3a34a2b5d3a8554368bd1e808f606219d2a10a846eae3886ae4ecc83c4ee550fdfb1cc636b904e2f1a73e303dcd4b6ccece003e95"
    "e8164dcc89a156e185010100005823526561647920746f2067656e657261746520612033322d62797465207061796c6f6164ff"
)
# RFC 9173, A.3.5: HMAC-SHA-256 over the primary block and the bundle age; the payload is encrypted (block 12).
EXAMPLE_3 = bytes.fromhex(
    "9f88070000820282010282028202018202820201820018281a000f4240850b030000585c8200020101820282030082820105820300828182"
    "015820cac6ce8e4c5dae57988b757e49a6dd1431dc04763541b2845098265bc817241b81820158203ed614c0d97f49b3633627779aa18a33"
    "8d212bf3c92b97759d9739cd50725596850c04010058348101020182028202018382014c5477656c766531323132313282020182040081"
    "81820150efa4b5ac0108e3816c5606479801bc0485070200004319012c850101000058233a09c1e63fe23a7f66a59c7303837241e070b026"
    "19fc59c5214a22f08cd70795e73e9aff"
)
# RFC 9173, A.4.3.2: the integrity block of the fourth example, HMAC-SHA-384 over the payload with everything in scope.
EXAMPLE_4_MAC = "f75fe4c37f76f046165855bd5ff72fbfd4e3a64b4695c40e2b787da005ae819f0a2e30a2e8b325527de8aefb52e73d71"


def test_the_first_example_of_rfc_9173() -> None:
    bundle = decode_bundle(EXAMPLE_1)
    assert bundle.primary == Primary("ipn:1.2", "ipn:2.1", 0, 40, 1_000_000, 0, "ipn:2.1", crc=NO_CRC)
    assert bundle.payload == b"Ready to generate a 32-byte payload"
    assert encode_bundle(bundle) == EXAMPLE_1
    assert bpsec.verify(bundle, KEY, (1,))
    assert not bpsec.verify(bundle, KEY, (0, 1))
    assert not bpsec.verify(bundle, b"another", (1,))
    unsigned = bundle.replaced((), (INTEGRITY,))
    signed = bpsec.sign(unsigned, KEY, "ipn:2.1", (1,), variant=7, scope=0)
    assert signed.blocks[0].data == bundle.blocks[0].data


def test_the_third_example_of_rfc_9173() -> None:
    bundle = decode_bundle(EXAMPLE_3)
    assert encode_bundle(bundle) == EXAMPLE_3
    assert bpsec.decode_integrity(bundle.blocks[0].data).source == "ipn:3.0"
    assert bpsec.verify(bundle, KEY, (0, 2))
    changed = bundle._replace(primary=bundle.primary._replace(lifetime_ms=1))
    assert not bpsec.verify(changed, KEY, (0, 2))


def test_the_fourth_example_of_rfc_9173() -> None:
    plain = Bundle(decode_bundle(EXAMPLE_1).primary, (Block(4, 2, b"", crc=0), decode_bundle(EXAMPLE_1).blocks[-1]))
    signed = bpsec.sign(plain, KEY, "ipn:2.1", (1,), variant=6, scope=7)
    assert signed.blocks[0].number == 3  # as in the example, where 2 is the confidentiality block
    assert bpsec.decode_integrity(signed.blocks[0].data).results[0].hex() == EXAMPLE_4_MAC


@pytest.mark.parametrize(
    "data",
    [
        "8200010101820164 2f2f612f 82 8201a0 820307 82 81820141 78 81820141 79",  # a map as the hash (found by fuzzing)
        "8200010101820164 2f2f612f 82 820105 8203f6 82 81820141 78 81820141 79",
        "8200010201820164 2f2f612f 82 820105 820307 82 81820141 78 81820141 79",
        "8200000101820164 2f2f612f 82 820105 820307 82 81820141 78 81820141 79",
        "8200010101820164 2f2f612f 82 820105 820307 81 81820141 78",
        "8100010101820164 2f2f612f 82 820105 820307 81 81820201",
    ],
)
def test_integrity_blocks_that_are_none(data: str) -> None:
    with pytest.raises(PeerError):
        bpsec.decode_integrity(bytes.fromhex(data))


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=4, unique=True),
    eids,
    st.sampled_from([(5, 32), (5, 31), (6, 48), (7, 64)]),
    st.integers(0, 7),
    st.data(),
)
def test_integrity_blocks_are_read_as_without_the_quick_way(
    targets: list[int], source: str, hash: tuple[int, int], scope: int, data: st.DataObject
) -> None:
    variant, size = hash
    tails = st.sampled_from([b"", b"\x82", b"\x83"])  # as if the results began there
    macs = [(data.draw(st.binary(min_size=size, max_size=size)) + data.draw(tails))[-size:] for _ in targets]
    written = bpsec.encode_integrity(bpsec.Integrity(targets, source, macs, variant, scope))
    fields = (targets, 1, 1, eid_value(source), [[1, variant], [3, scope]], [[[1, mac]] for mac in macs])
    assert written == b"".join(map(cbor2.dumps, fields))
    if data.draw(st.booleans()):
        at, byte = data.draw(st.integers(0, len(written) - 1)), data.draw(st.integers(0, 255))
        written = written[:at] + bytes((byte,)) + written[at + 1 :]
    outcomes = []
    for read in (bpsec.decode_integrity, bpsec._any_integrity):
        try:
            outcomes.append(read(written))
        except PeerError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@given(headers, messages)
def test_messages_are_written_as_block_by_block(header: Header, message: Message) -> None:
    envelope = Envelope(header.source, "net")
    primary = Primary(
        channel_eid("net", message.topic), header.source, header.created_ms, header.sequence, header.lifetime_ms
    )
    written = decode_bundle(envelope.encode(header, message))
    assert written.primary == primary
    assert [(block.type, block.number, block.flags, block.crc) for block in written.blocks] == [
        (192, 2, 0, 2),
        (1, 1, 0, 2),
    ]
    assert encode_bundle(written) == envelope.encode(header, message) == plainly(written)


def test_what_rfc_9172_does_not_allow() -> None:
    plain = Bundle(decode_bundle(EXAMPLE_1).primary, decode_bundle(EXAMPLE_1).blocks[-1:])
    signed = bpsec.sign(plain, KEY, "ipn:2.1", (0, 1))
    assert bpsec.verify(signed, KEY, (0, 1))
    (first, *_), number = signed.blocks, signed.free_number()
    again = bpsec.sign(plain._replace(blocks=(Block(99, 2, b""), *plain.blocks)), KEY, "ipn:2.1", (1,)).blocks[0]
    twice = signed._replace(blocks=(first, again._replace(number=number), *signed.blocks[1:]))
    assert not bpsec.verify(twice, KEY, (0, 1))  # 3.2: one service for one target is there once
    with pytest.raises(PeerError, match="a security block"):  # 3.7: and none is for another security block
        bpsec.sign(signed, KEY, "ipn:2.1", (first.number,))
    reserved = signed._replace(blocks=(first._replace(flags=0xE8), *signed.blocks[1:]))
    assert bpsec.verify(reserved, KEY, (0, 1))  # 4: flags that mean nothing are 0 in what is protected
    assert not bpsec.verify(signed._replace(blocks=(first._replace(flags=1), *signed.blocks[1:])), KEY, (0, 1))


@pytest.mark.parametrize(("type", "check"), [(CRC16, "906e"), (CRC32C, "e3069283")])
def test_check_values_of_the_crc_catalogue(type: int, check: str) -> None:
    """The checks of "123456789" as every catalogue gives them: X-25 and Castagnoli."""
    from serai.node.bundle.bpv7 import _CRC

    size, crc = _CRC[type]
    assert crc(b"123456789").to_bytes(size, "big").hex() == check


@given(bundles())
def test_bundles_come_back(bundle: Bundle) -> None:
    data = encode_bundle(bundle)
    assert decode_bundle(data) == bundle
    assert len(cbor2.loads(data)) == 1 + len(bundle.blocks)  # another decoder reads it as CBOR


def plainly(bundle: Bundle) -> bytes:
    """The same bytes by another's encoder, item by item."""
    items: list[list[object]] = []
    about, blocks = bundle.primary, bundle.blocks
    eids = [eid_value(eid) for eid in (about.destination, about.source, about.report_to)]
    parts = [about.offset, about.total] if about.flags & 1 else []
    items.append([7, about.flags, about.crc, *eids, [about.created_ms, about.sequence], about.lifetime_ms, *parts])
    items += [[block.type, block.number, block.flags, block.crc, block.data] for block in blocks]
    encoded = []
    for crc, item in zip([about.crc, *(block.crc for block in blocks)], items, strict=True):
        size, check = {NO_CRC: (0, None), CRC16: (2, ibm_sdlc), CRC32C: (4, iscsi)}[crc]
        blank = cbor2.dumps([*item, bytes(size)] if check else item)
        encoded.append(blank[: len(blank) - size] + (check(blank).to_bytes(size, "big") if check else b""))
    return b"\x9f" + b"".join(encoded) + b"\xff"


@given(bundles())
def test_bundles_are_written_as_a_plain_encoder_writes_them(bundle: Bundle) -> None:
    assert encode_bundle(bundle) == plainly(bundle)


@given(bundles(), st.data())
def test_blocks_are_read_as_without_the_quick_way(bundle: Bundle, data: st.DataObject) -> None:
    block = encode_block(data.draw(st.sampled_from(bundle.blocks)))
    if data.draw(st.booleans()):
        at, byte = data.draw(st.integers(0, len(block) - 1)), data.draw(st.integers(0, 255))
        block = block[:at] + bytes((byte,)) + block[at + 1 :]
    outcomes = []
    for read in (bpv7._read_block, bpv7._any_block):
        reader = Reader(b"-" + block + b"-", 1)
        try:
            outcomes.append((read(reader), reader.at))
        except PeerError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


@given(eids, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**32))
def test_marks_are_those_of_canonical_cbor(source: str, created_ms: int, sequence: int, offset: int) -> None:
    text = cbor2.dumps([source, [created_ms, sequence], offset], canonical=True)
    assert mark_of(source, created_ms, sequence, offset) == int.from_bytes(sha256(text).digest()[:8]) >> 1


@given(bundles(), st.data())
def test_damage_is_noticed(bundle: Bundle, data: st.DataObject) -> None:
    """Each byte of blocks with a CRC counts; a change may make it no bundle, or another sort of block without CRC."""
    checked = Bundle(bundle.primary._replace(crc=CRC32C), tuple(block._replace(crc=CRC32C) for block in bundle.blocks))
    raw = bytearray(encode_bundle(checked))
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    try:
        assert decode_bundle(bytes(raw)) != checked
    except PeerError:
        return
    assert any(block.crc != CRC32C for block in decode_bundle(bytes(raw)).blocks)


@pytest.mark.parametrize("crc", [CRC16, CRC32C])
def test_a_wrong_crc_is_told_from_bad_cbor(crc: int) -> None:
    bundle = Bundle(Primary("dtn://a/", "dtn://b/", 1, 1, 1, crc=crc), (Block(1, 1, b"payload", crc=crc),))
    raw = encode_bundle(bundle).replace(b"payload", b"paYload")
    with pytest.raises(BadCheck):
        decode_bundle(raw)


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ((), "one payload"),
        ((Block(1, 2, b""),), "block 1"),
        ((Block(7, 1, b""), Block(1, 1, b"")), "twice"),
        ((Block(1, 1, b""), Block(7, 2, b"")), "comes last"),
        ((Block(1, 2, b""), Block(1, 1, b"")), "one payload"),
        ((*(Block(7, number, b"") for number in range(100, 164)), Block(1, 1, b"")), "more than 64"),
    ],
)
def test_bundles_that_are_none(blocks: tuple[Block, ...], said: str) -> None:
    raw = encode_bundle(Bundle(Primary("dtn://a/", "dtn://b/", 1, 1, 1), blocks))
    with pytest.raises(PeerError, match=said):
        decode_bundle(raw)


def test_unknown_blocks_go_as_their_flags_say() -> None:
    stays, goes, payload = Block(99, 2, b""), Block(98, 3, b"", DISCARD_BLOCK), Block(1, 1, b"")
    bundle = Bundle(Primary("dtn://a/", "dtn://b/", 1, 1, 1), (stays, goes, payload))
    assert obey_flags(bundle, (1,)).blocks == (stays, payload)
    assert obey_flags(bundle, (1, 98)) == bundle
    with pytest.raises(PeerError, match="delete"):
        obey_flags(bundle._replace(blocks=(stays._replace(flags=DELETE_BUNDLE), payload)), (1,))


@given(eids)
def test_endpoints_come_back(eid: str) -> None:
    assert eid_of(decode(encode(eid_value(eid)))) == eid


@given(topics)
def test_topics_come_back(topic: str) -> None:
    eid = channel_eid("net", topic)
    assert all(0x21 <= ord(character) <= 0x7E for character in eid)
    assert topic_of(eid) == topic


@pytest.mark.parametrize(
    "eid", ["dtn://net/~a%2F", "dtn://net/~a%2fb", "dtn://net/~%FF", "dtn://net/a", "ipn:1.2", "dtn:none"]
)
def test_what_is_no_channel(eid: str) -> None:
    assert topic_of(eid) is None


@pytest.mark.parametrize(
    "value", [[1, 1], [1, "//"], [1, "//a"], [1, "a/b"], [2, [1]], [2, [1, -1]], [3, 4], 7, [1, "//ä/"]]
)
def test_what_is_no_endpoint(value: object) -> None:
    with pytest.raises(PeerError):
        eid_of(value)


@given(headers, messages, st.sampled_from([b"", KEY]))
def test_messages_come_back_after_two_hops(header: Header, message: Message, key: bytes) -> None:
    if message.part is not None:  # whose numbers follow each other
        message = message._replace(part=(header.sequence, *message.part[1:]))
        header = header._replace(sequence=message.part[0] + message.part[1])
    source, other = (Envelope(node, "net", key) for node in (header.source, "dtn://other/"))
    kept = source.encode(header, message)
    assert message_of(kept) == message
    first = other.open(onward(kept, header.source, age=0, hops=1))
    second = source.open(onward(first.data, "dtn://other/", age=1234, hops=2))
    assert first.data == second.data == kept
    expected = header._replace(
        topic=message.topic, age_ms=1234, hops=2, size_bytes=len(kept), qos=message.qos, retain=message.retain,
        has_payload=bool(message.payload), part=message.part,
    )  # fmt: skip
    assert second.header == expected


def test_what_a_node_writes_in_front() -> None:
    kept = Envelope("dtn://a/", "net").encode(Header("dtn://a/", 1, 2, 0, "", 1000), Message("t", b"x"))
    bundle = decode_bundle(onward(kept, "dtn://b/", age=77, hops=3))
    assert (previous_node(bundle), age_ms(bundle), hop_count(bundle)) == ("dtn://b/", 77, (64, 3))
    assert all(block.crc == CRC32C for block in bundle.blocks)


HEADER = Header("dtn://a/", 1, 2, 0, "", 1000)


@pytest.mark.parametrize(
    ("sender", "said"),
    [
        (Envelope("dtn://a/", "net"), "network's key"),
        (Envelope("dtn://a/", "net", b"another"), "network's key"),
        (Envelope("dtn://a/", "other", KEY), "the network other"),
    ],
)
def test_bundles_from_elsewhere_are_refused(sender: Envelope, said: str) -> None:
    raw = onward(sender.encode(HEADER, Message("t", b"x")), "dtn://a/", 0, 1)
    with pytest.raises(Refused, match=said):
        Envelope("dtn://b/", "net", KEY).open(raw)


def test_too_many_hops_no_time_and_numbers_of_ours_are_refused() -> None:
    envelope = Envelope("dtn://b/", "net")
    kept = envelope.encode(HEADER, Message("t", b"x"))
    with pytest.raises(Refused, match="65 hops"):
        envelope.open(onward(kept, "dtn://a/", 0, 65))
    timeless = envelope.encode(HEADER._replace(created_ms=0), Message("t", b"x"))
    with pytest.raises(Refused, match="neither"):
        envelope.open(timeless)
    assert envelope.open(onward(timeless, "dtn://a/", 5, 1)).header.age_ms == 5
    bundle = decode_bundle(kept)
    strange = bundle._replace(blocks=(Block(99, 1 << 16, b""), *bundle.blocks))
    with pytest.raises(Refused, match="65536"):
        envelope.open(encode_bundle(strange))


def test_a_path_that_stands_twice_and_a_primary_block_without_a_check_are_refused() -> None:
    envelope = Envelope("dtn://b/", "net")
    kept = envelope.encode(HEADER, Message("t", b"x"))
    twice = onward(kept, "dtn://a/", 5, 1)
    bundle = decode_bundle(twice)
    for block in bundle.blocks[:3]:
        more = bundle._replace(blocks=(block._replace(number=77), *bundle.blocks))
        with pytest.raises(Refused, match="two previous nodes"):
            envelope.open(encode_bundle(more))
    bare = encode_bundle(bundle._replace(primary=bundle.primary._replace(crc=NO_CRC)))
    with pytest.raises(Refused, match="without a check"):
        envelope.open(bare)
    signed = onward(Envelope("dtn://b/", "net", KEY).encode(HEADER, Message("t", b"x")), "dtn://a/", 5, 1)
    assert envelope.open(signed).payload == b"x"  # who has no key cannot check it, but it is there


def test_fragments_are_carried_and_not_taken_for_the_whole() -> None:
    primary = Primary("dtn://net/~room/1", "dtn://c/", 1, 2, 1000, flags=FRAGMENT, offset=5, total=10)
    data = onward(encode_bundle(Bundle(primary, (Block(1, 1, b"world"),))), "dtn://c/", 0, 1)
    header = Envelope("dtn://b/", "net").open(data).header
    assert (header.offset, header.topic) == (5, "$fragment/room/1")
    assert not any(topic_matches(filter, header.topic) for filter in ("room/1", "#", "+/room/1", "room/#"))


def test_lengths_that_are_not_said_do_not_lead_astray() -> None:
    """A foreign node may write an endpoint in chunks; the blocks of the path still go behind the primary block."""
    primary = encode_primary(Primary("dtn://c/x", "dtn://a/", 1, 2, 1000, crc=CRC16))[:-2] + bytes(2)
    chunked = primary.replace(b"\x65//c/x", b"\x7f\x62//\x63c/x\xff")
    assert chunked != primary
    checked = chunked[:-2] + ibm_sdlc(chunked).to_bytes(2)
    chunked = b"\x9f" + checked + encode_block(Block(1, 1, b"hello")) + b"\xff"
    kept = Envelope("dtn://b/", "net").open(onward(chunked, "dtn://a/", 5, 1)).data
    assert kept == chunked
    assert decode_bundle(onward(kept, "dtn://b/", 6, 2)).primary.destination == "dtn://c/x"


# -- another's codec


def test_pyd3tn_reads_ours_and_we_read_its() -> None:
    bundle7 = pytest.importorskip("pyd3tn.bundle7")
    plain = Bundle(Primary("dtn://c/", "dtn://a/", 1, 2, 1000), (Block(1, 1, b"hello"),))  # it knows neither 11 nor 192
    theirs = bundle7.Bundle.parse(onward(encode_bundle(plain), "dtn://a/", 5, 1))
    assert str(theirs.primary_block.source) == "dtn://a/"
    assert bytes(theirs.payload_block.data) == b"hello"
    assert [int(block.block_type) for block in theirs.blocks] == [6, 7, 10]
    for crc in (CRC16, CRC32C):
        made = bundle7.create_bundle7(
            "dtn://a/",
            "dtn://b/",
            b"payload",
            creation_timestamp=datetime(2026, 1, 1, tzinfo=UTC),
            crc_type_primary=bundle7.CRCType(crc),
        )
        read = decode_bundle(bytes(made))
        assert (read.primary.source, read.payload, read.primary.crc) == ("dtn://a/", b"payload", crc)
    assert encode_primary(read.primary) in bytes(made)
