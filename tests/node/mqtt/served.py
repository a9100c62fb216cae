"""A real server on loopback over the plain node, in a thread; it can be killed and begins again with its disk."""

import asyncio
import subprocess
import threading
import time
from contextlib import contextmanager, suppress

from serai.node.mqtt.settings import MqttSettings
from serai.node.mqtt_server import MqttServer
from tests.node.mqtt.plain import Disk


class Served:
    def __init__(self, settings, tls, host):
        self.loop = asyncio.new_event_loop()
        self.host, self.tls, self.port = host, tls, 0
        self.disk = Disk(self.word, settings)
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.run(self.start())

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(20)

    async def start(self):
        self.disk.start(self.loop.time())
        self.server = MqttServer(self.disk.clients, self.perform, self.loop.time, lambda: {"name": "plain"})
        self.port = await self.server.listen(self.host, self.port, self.tls)

    def perform(self, effects):
        self.disk.perform(effects)
        self.loop.call_later(0.002, self.disk.commit)  # as a disk would

    def word(self, word):
        assert self.server.say(word)

    async def _die(self):
        server, self.server.perform = self.server, lambda effects: None
        for one in server._servers:
            one.close()
        for connection in list(server.connections.values()):
            connection.transport.abort()
        server._ticking.cancel()
        await asyncio.sleep(0.01)
        self.disk.waiting.clear()
        await self.start()

    def kill(self):
        """As kill -9 and a new start: whatever is not on the disk is lost."""
        self.run(self._die())

    async def _stop(self):
        await self.server.stop()
        self.disk.commit()

    def payloads(self, topic=None):
        return [m.payload for m, _ in self.disk.tables["message"].values() if topic in (None, m.topic)]


@contextmanager
def served(tls=None, host="127.0.0.1", **settings):
    one = Served(MqttSettings(**settings), tls, host)
    try:
        yield one
    finally:
        one.run(one._stop())
        one.loop.call_soon_threadsafe(one.loop.stop)
        one.thread.join(10)
        one.loop.close()


def until(condition, timeout_s=20.0):
    """Wait for something that another thread or process brings about."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "it has not come"
        time.sleep(0.02)


@contextmanager
def process(*command, **options):
    """A program that runs beside the test; its output is read line by line."""
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    try:
        yield running
    finally:
        running.terminate()
        with suppress(ValueError):  # its output was read to the end
            running.communicate(timeout=10)
