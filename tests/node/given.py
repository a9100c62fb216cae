"""Random bundles, messages and lists."""

from hypothesis import strategies as st

from serai.node.bundle.bpv7 import FRAGMENT, PAYLOAD, Block, Bundle, Primary
from serai.node.words import AllSeen, BloomSeen, Header, JournalSeen, ListEntry, ListMessage, Message


def piece(transfer: int, data: bytes, *, first: bool = False, last: bool = False, total: int | None = None) -> bytes:
    """XFER_SEGMENT as RFC 9174 draws it (5.2.2), put together by hand."""
    item = b"" if total is None else b"\0\0\1\0\x08" + total.to_bytes(8)
    items = len(item).to_bytes(4) + item if first else b""
    return bytes([1, 2 * first + last]) + transfer.to_bytes(8) + items + len(data).to_bytes(8) + data


numbers = st.integers(0, 2**64 - 1)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,10}", fullmatch=True)
node_eids = names.map(lambda name: f"dtn://{name}/")
eids = st.one_of(
    node_eids,
    st.just("dtn:none"),
    st.builds(lambda eid, demux: eid + demux, node_eids, st.from_regex(r"[!-~]{0,10}", fullmatch=True)),
    st.lists(st.integers(0, 2**64 - 1), min_size=2, max_size=3).map(lambda parts: "ipn:" + ".".join(map(str, parts))),
)
crcs = st.integers(0, 2)
blocks = st.builds(Block, st.integers(2, 300), st.just(0), st.binary(max_size=300), st.integers(0, 255), crcs)


@st.composite
def primaries(draw: st.DrawFn) -> Primary:
    flags = draw(st.integers(0, 2**18))
    offset, total = (draw(numbers), draw(numbers)) if flags & FRAGMENT else (0, 0)
    return Primary(
        draw(eids),
        draw(eids),
        draw(numbers),
        draw(numbers),
        draw(numbers),
        flags,
        draw(eids),
        offset,
        total,
        draw(crcs),
    )


@st.composite
def bundles(draw: st.DrawFn) -> Bundle:
    others = draw(st.lists(blocks, max_size=5))
    numbered = [block._replace(number=number) for number, block in enumerate(others, start=2)]
    payload = Block(PAYLOAD, 1, draw(st.binary(max_size=300)), 0, draw(crcs))
    return Bundle(draw(primaries()), (*numbered, payload))


topics = st.text(st.characters(exclude_characters="\0+#", exclude_categories=["Cs"]), min_size=1, max_size=20)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
messages = st.builds(
    Message,
    topic=topics,
    payload=st.binary(max_size=400),
    qos=st.integers(0, 2),
    retain=st.booleans(),
    content_type=st.none() | texts,
    response_topic=st.none() | topics,
    correlation=st.none() | st.binary(max_size=20),
    properties=st.lists(st.tuples(texts, texts), max_size=3).map(tuple),
    payload_format=st.none() | st.integers(0, 1),
    part=st.none() | st.tuples(st.integers(0, 2**40), st.integers(0, 5), st.integers(6, 9)),
)
headers = st.builds(
    Header,
    source=node_eids,
    created_ms=st.integers(1, 2**45),
    sequence=st.integers(0, 2**50),
    offset=st.just(0),
    topic=st.just(""),
    lifetime_ms=st.integers(1, 2**40),
)

counts = st.integers(0, 2**62 - 1)
entries = st.builds(ListEntry, node_eids, counts, texts, counts, counts, counts, counts, hops=st.integers(0, 255))
marks = st.frozensets(st.integers(0, 2**63 - 1), max_size=20)
epochs = st.binary(min_size=8, max_size=8)
seen = st.one_of(
    st.builds(AllSeen, marks),
    st.builds(BloomSeen, st.integers(1, 64), numbers, st.binary(max_size=50)),
    st.builds(
        lambda epoch, first, found: JournalSeen(epoch, first, first + len(found), found),
        epochs,
        st.integers(0, 2**60),
        marks,
    ),
)
lists = st.builds(
    ListMessage,
    counts,
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(entries, max_size=5).map(tuple),
    seen,
)
