"""Nodes with real stores, joined in memory: words are said after their commit, lists and bundles go as bytes."""

from collections import deque
from pathlib import Path
from typing import Any

from serai.node.bundle.message import Envelope, onward
from serai.node.core import Node
from serai.node.interests import Content, read_interest
from serai.node.settings import NodeSettings
from serai.node.store import Store
from serai.node.wire.lists import JournalKnown, decode_words, encode_known, encode_list
from serai.node.words import (
    Accept,
    Effects,
    Message,
    Queued,
    Ready,
    Refuse,
    SendBundle,
    SendKnown,
    SendList,
    Subscription,
)


def matches(interest: str, topic: str, payload: Any) -> bool:
    return read_interest(interest).matches(Content(topic, payload() if interest.startswith("c:") else b""))


class Machine:
    """A node, its store and its applications, which take what waits for them at once unless `offline`."""

    def __init__(self, name: str, folder: Path, net: "Net", store: type[Store] = Store, **settings: Any) -> None:
        self.eid, self.path, self.net, self.kind = f"dtn://{name}/", folder / f"{name}.db", net, store
        self.settings = NodeSettings(self.eid, **settings)
        self.envelope = Envelope(self.eid, "test", b"k" * 32)
        self.got: list[tuple[str, bytes]] = []
        self.offline = False
        self.start(0.0)

    def start(self, now_s: float) -> None:
        """Begin, or begin again with what is on disk."""
        self.store = self.kind.open(self.path, self.eid.encode()[6:14].ljust(8), "crash")
        self.node = Node(self.settings, self.store.saved(), self.envelope.encode, matches, self.store.data, now_s)
        self.net.machines[self.eid] = self

    def die(self) -> None:
        """Forget everything that is not on disk."""
        self.store.close()

    def perform(self, effects: Effects) -> str:
        self.store.commit([effects])
        self.net.words.extend((self.eid, word) for word in effects.words)
        return effects.outcome

    def subscribe(self, filter: str, client: str = "app", options: int = 2, now_s: float = 0.0) -> None:
        if client not in self.node.outboxes.sessions:
            opened = self.node.session_opened(client, now_s, clean=False, version=5, lifetime_s=1e9, will=None)
            self.perform(opened)
        interest = filter if filter[:2] == "c:" else f"t:{filter}"
        self.perform(self.node.subscribed(Subscription(0, client, filter, interest, "", options), now_s))
        self.net.run(now_s)

    def publish(self, topic: str, payload: bytes, now_s: float, **more: Any) -> str:
        lifetime_s = more.pop("lifetime_s", 1000.0)
        message = Message(topic, payload, qos=more.pop("qos", 2), **more)
        outcome = self.perform(self.node.published("app", message, lifetime_s, now_s))
        self.net.run(now_s)
        return outcome

    def take(self, client: str) -> None:
        """An application reads its outbox."""
        for queued in [] if self.offline else list(self.node.outbox(client)):
            message = self.node.message(queued.bundle)
            assert message is not None
            self.perform(self.node.outbox_done(client, queued.bundle))
            self.got.append((message.topic, message.payload))


class Net:
    """Who is joined with whom."""

    def __init__(self) -> None:
        self.machines: dict[str, Machine] = {}
        self.words: deque[tuple[str, Any]] = deque()
        self.sent: list[Any] = []
        self.list_bytes = 0

    def close(self) -> None:
        for machine in self.machines.values():
            machine.die()

    def up(self, one: Machine, other: Machine, now_s: float, words: int = 1 << 60) -> None:
        """A contact begins, and so much is said in it."""
        for here, there in ((one, other), (other, one)):
            here.perform(here.node.contact_up(there.eid, now_s, 1e6, carries=True, epoch=there.node.epoch))
        self.run(now_s, words)

    def down(self, one: Machine, other: Machine, now_s: float) -> None:
        self.words.clear()
        for here, there in ((one, other), (other, one)):
            here.perform(here.node.contact_down(there.eid, now_s))

    def tick(self, now_s: float) -> None:
        for machine in self.machines.values():
            machine.perform(machine.node.tick(now_s))
        self.run(now_s)

    def run(self, now_s: float, most: int = 1 << 60) -> None:
        """Say everything there is to say."""
        while self.words and most:
            most -= 1
            self.say(*self.words.popleft(), now_s)

    def say(self, eid: str, word: Any, now_s: float) -> None:
        here = self.machines[eid]
        if isinstance(word, Queued):
            here.take(word.session)
            return
        there = self.machines[word.peer]
        self.sent.append(word)
        if isinstance(word, Ready):
            while (effects := here.node.next_transfer(word.peer, now_s)).words:
                here.perform(effects)
        elif isinstance(word, SendKnown):
            said = decode_words(encode_known(JournalKnown(word.epoch, word.upto)))
            assert isinstance(said, JournalKnown)
            there.perform(there.node.journal_known(eid, said.epoch, said.upto, now_s))
        elif isinstance(word, SendList):
            data = encode_list(word.message)
            self.list_bytes += len(data)
            message = decode_words(data)
            assert not isinstance(message, JournalKnown)
            there.perform(there.node.list_received(eid, message, now_s).then(Accept(eid, word.transfer)))
        elif isinstance(word, SendBundle):
            age_ms = round(now_s * 1000) - word.begins_ms
            arrived = there.envelope.open(onward(here.store.data(word.id), eid, age_ms, word.hops + 1))
            there.perform(there.node.bundle_received(eid, word.transfer, arrived.header, arrived.data, now_s))
        elif isinstance(word, Accept):
            there.perform(there.node.acknowledged(eid, word.transfer, now_s))
        elif isinstance(word, Refuse):
            there.perform(there.node.refused(eid, word.transfer, word.reason, now_s))
