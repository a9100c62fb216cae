"""Bundles: RFC examples byte for byte, round trips, another's codec (pyD3TN), and what is refused."""

from datetime import UTC, datetime

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.core.errors import PeerError
from serai.node.bundle import bpsec
from serai.node.bundle.age import age_ms, hop_count, previous_node
from serai.node.bundle.bpv7 import (
    CRC16,
    CRC32C,
    DELETE_BUNDLE,
    DISCARD_BLOCK,
    INTEGRITY,
    NO_CRC,
    BadCheck,
    Block,
    Bundle,
    Primary,
    decode_bundle,
    encode_bundle,
    encode_primary,
    obey_flags,
)
from serai.node.bundle.cbor import decode, encode
from serai.node.bundle.eid import channel_eid, eid_of, eid_value, topic_of
from serai.node.bundle.message import Envelope, Refused, message_of, onward
from serai.node.words import Header, Message
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
    source, other = (Envelope(node, "net", key) for node in (header.source, "dtn://other/"))
    kept = source.encode(header, message)
    assert message_of(kept) == message
    first = other.open(onward(kept, header.source, age=0, hops=1))
    second = source.open(onward(first.data, "dtn://other/", age=1234, hops=2))
    assert first.data == second.data == kept
    expected = header._replace(
        topic=message.topic, age_ms=1234, hops=2, size_bytes=len(kept), qos=message.qos, retain=message.retain,
        has_payload=bool(message.payload),
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


def test_lengths_that_are_not_said_do_not_lead_astray() -> None:
    """A foreign node may write an endpoint in chunks; the blocks of the path still go behind the primary block."""
    plain = encode_bundle(Bundle(Primary("dtn://c/x", "dtn://a/", 1, 2, 1000, crc=NO_CRC), (Block(1, 1, b"hello"),)))
    chunked = plain.replace(b"\x65//c/x", b"\x7f\x62//\x63c/x\xff")
    assert chunked != plain
    kept = Envelope("dtn://b/", "net").open(onward(chunked, "dtn://a/", 5, 1)).data
    assert kept == chunked
    assert decode_bundle(onward(kept, "dtn://b/", 6, 2)).primary == decode_bundle(plain).primary


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
