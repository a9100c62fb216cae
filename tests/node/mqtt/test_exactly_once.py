"""QoS 2 through a node that dies and connections that are cut, at any moment: every message once, in order.

Clients are written from the standard (4.3.3, 4.4) and share nothing with the server. Packets of both directions wait in
lists, of which a cut loses what has not arrived; a node that dies forgets all that its disk does not have.
"""

import random
from collections import deque
from functools import partial

from serai.node.mqtt.access import Access
from serai.node.mqtt.delivery import Close, Say
from serai.node.mqtt.packets import V3, V5, Ack, Connack, Connect, Publish, Suback, Subscribe, Wish
from serai.node.mqtt.session import Session
from serai.node.mqtt.settings import MqttSettings
from serai.node.words import Queued
from tests.effort import THOROUGH
from tests.node.mqtt.plain import Disk
from tests.node.mqtt.real import RealDisk

SEEDS = 2000 if THOROUGH else 60
MESSAGES = 12


class Client:
    """One that keeps what a client has to keep; a publisher has `unsent`, a subscriber fills `got`."""

    def __init__(self, name, version, unsent=(), wish=None):
        self.name, self.version, self.unsent, self.wish = name, version, deque(unsent), wish
        self.sending = {}  # packet: PUBLISH, or PUBREL after PUBREC
        self.received = set()
        self.got = []
        self.number = None
        self.up = self.down = None
        self.subscribed = wish is None

    def connect(self):
        expires = {"session_expiry_interval": 1000} if self.version == V5 else {}
        self.ready = False
        self.up, self.down = deque([Connect(self.name, self.version, False, properties=expires)]), deque()

    def hear(self, packet):
        match packet:
            case Connack(present, _, said):
                self.window = min(4, said["receive_maximum"])
                assert self.number is not None
                self.ready = True
                if not present:
                    self.subscribed = self.wish is None
                if not self.subscribed:
                    self.up.append(Subscribe(1, (self.wish,)))
                for one in self.sending.values():
                    self.up.append(one._replace(dup=True) if isinstance(one, Publish) else one)
            case Suback():
                self.subscribed = True
            case Ack("pubrec", number):
                if number in self.sending:
                    self.sending[number] = Ack("pubrel", number)
                self.up.append(Ack("pubrel", number))
            case Ack("puback" | "pubcomp", number):
                self.sending.pop(number, None)
            case Ack("pubrel", number):
                self.received.discard(number)
                self.up.append(Ack("pubcomp", number))
            case Publish(_, payload, 2, _, number):
                if number not in self.received:
                    self.received.add(number)
                    self.got.append(payload)
                self.up.append(Ack("pubrec", number))
            case Publish(_, payload, 1, _, number):
                self.got.append(payload)
                self.up.append(Ack("puback", number))

    def publish(self):
        if self.unsent and self.ready and len(self.sending) < self.window:
            number = next(n for n in range(1, 9) if n not in self.sending)
            self.sending[number] = Publish("t", self.unsent.popleft(), 2, packet=number)
            self.up.append(self.sending[number])


class World:
    def __init__(self, seed, make):
        self.draw = random.Random(seed)
        version = self.draw.choice((V3, V5))
        self.publisher = Client("p", version, [b"%d" % n for n in range(MESSAGES)])
        self.twos = [Client(name, version, wish=Wish("t", 2)) for name in "ab"]
        self.one = Client("c", version, wish=Wish("#", 1))
        self.clients = [*self.twos, self.one, self.publisher]
        self.sessions, self.now_s, self.numbers = {}, 0.0, 0
        self.disk = make(self.word, MqttSettings(in_flight=self.draw.choice((1, 3, 20))))

    def word(self, word):
        if isinstance(word, Queued):
            client = self.disk.clients.by_name.get(word.session)
            if client and client.session:
                self.disk.perform(client.session.outgoing.pump(self.now_s))
            return
        for client in self.clients:
            if client.number == word.connection and client.down is not None:
                assert isinstance(word, Say | Close)
                client.down.append(word.packet) if isinstance(word, Say) else self.cut(client)

    def cut(self, client):
        session = self.sessions.pop(client.number, None)
        client.up = client.down = client.number = None
        if session:
            self.disk.perform(session.end(self.now_s))

    def die(self):
        self.sessions.clear()
        for client in self.clients:
            client.up = client.down = client.number = None
        self.disk.start(self.now_s)

    def step(self, trouble):
        self.now_s += 0.01
        client = self.draw.choice(self.clients)
        kind = self.draw.random()
        if kind < 0.02 * trouble:
            self.die()
        elif client.up is None:
            client.connect()
        elif kind < 0.06 * trouble:
            self.cut(client)
        elif kind < 0.35:
            self.disk.commit(self.draw.randint(1, 3))
        elif kind < 0.6 and client.up:
            self.to_server(client, client.up.popleft())
        elif kind < 0.85 and client.down:
            client.hear(client.down.popleft())
        elif client.number is not None and all(one.subscribed for one in self.clients):
            client.publish()

    def to_server(self, client, packet):
        if isinstance(packet, Connect):
            self.numbers += 1
            client.number = self.numbers
            session = self.sessions[client.number] = Session(self.numbers, self.disk.clients, packet, Access())
            self.disk.perform(session.begin(self.now_s, ""))
        else:
            self.disk.perform(self.sessions[client.number].receive(packet, self.now_s))

    def quiet(self):
        return not self.publisher.unsent and not self.publisher.sending and not self.disk.count("outbox")


def check(seed, make):
    world = World(seed, make)
    for number in range(20_000):
        world.step(trouble=1 if number < 1500 else 0)
        if number > 1500 and world.quiet():
            break
    assert world.quiet(), seed
    expected = [b"%d" % n for n in range(MESSAGES)]
    for client in world.twos:
        assert client.got == expected, (seed, client.name)
    assert list(dict.fromkeys(world.one.got)) == expected, seed  # QoS 1: at least once
    assert len(world.disk.messages()) == MESSAGES, seed
    world.disk.close()


def test_every_message_once_in_order():
    for seed in range(SEEDS):
        check(seed, Disk)


def test_the_same_with_a_real_core_and_store(tmp_path):
    for seed in range(SEEDS // 15):
        check(seed, partial(RealDisk, path=tmp_path / f"{seed}.db"))
