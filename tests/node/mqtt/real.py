"""The same as `plain.Disk`, with a real core and a real store; commits are made one by one, when a test says so."""

from collections import deque

from serai.node.bundle.message import Envelope, message_of
from serai.node.core import Node
from serai.node.mqtt.clients import Clients
from serai.node.mqtt.delivery import Delivery
from serai.node.mqtt.settings import MqttSettings
from serai.node.settings import NodeSettings
from serai.node.store import Store
from tests.node.joined import matches


class RealDisk:
    def __init__(self, say, settings=None, *, path, **node):
        self.say, self.settings, self.path = say, settings or MqttSettings(), path
        self.node_settings = NodeSettings("dtn://test/", **node)
        self.store = None
        self.start(0.0)

    def start(self, now_s):
        if self.store is not None:
            self.store.close()
        self.waiting = deque()
        self.store = Store.open(self.path, b"test-epo", "crash")
        envelope = Envelope("dtn://test/", "test", b"k" * 32)
        self.node = Node(self.node_settings, self.store.saved(), envelope.encode, matches, self.data, now_s)
        self.clients = Clients(self.node, self.settings, self.load)
        self.clients.restore(self.store.inbound(), now_s)

    def data(self, id):
        waiting = (values for effects in self.waiting for name, values in effects.rows if name == "data")
        return next((data for found, data in waiting if found == id), None) or self.store.data(id)

    def load(self, bundle):
        held, message = self.node.holdings.by_id.get(bundle), self.node.message(bundle)
        return Delivery(message, held.expires_s) if message and held else None

    def perform(self, effects):
        self.waiting.append(effects)

    def commit(self, most=1 << 30):
        while self.waiting and most:
            effects, most = self.waiting.popleft(), most - 1
            self.store.commit([effects])
            for word in effects.words:
                self.say(word)

    def count(self, table):
        return self.store._all(f"SELECT count(*) FROM {table}")[0][0]

    def messages(self):
        """All that was ever published here and is still on disk."""
        return [message_of(data) for (data,) in self.store._all("SELECT bytes FROM data ORDER BY id")]

    def close(self):
        self.store.close()
