"""A real server on loopback over a real core and store, in a thread; it can be killed and begins again."""

import asyncio
import subprocess
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

from serai.node.mqtt.settings import MqttSettings
from serai.node.mqtt_server import MqttServer
from tests.node.mqtt.real import RealDisk


class Served:
    def __init__(self, settings, tls, host, folder):
        self.loop = asyncio.new_event_loop()
        self.host, self.tls, self.port = host, tls, 0
        self.disk = RealDisk(self.word, settings, path=folder / "node.db")
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
        server = self.server

        def cut(*_):
            for connection in list(server.connections.values()):
                connection.transport.abort()

        server.perform = cut
        server._ticking.cancel()
        for listener in server._servers:  # asyncio forgets a connection that comes while it closes
            for one in listener.sockets:
                self.loop.remove_reader(one.fileno())
        await asyncio.sleep(0.01)
        cut()
        for listener in server._servers:
            listener.close()
        await asyncio.sleep(0.01)
        self.disk.waiting.clear()
        await self.start()

    def kill(self):
        """As kill -9 and a new start: whatever is not on the disk is lost."""
        self.run(self._die())

    async def _stop(self):
        await self.server.stop()
        self.disk.commit()

    def end(self):
        self.run(self._stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()
        self.disk.close()

    def payloads(self):
        return [message.payload for message in self.disk.messages()]

    def take(self, bytes):
        """The store takes so many bytes from now on."""
        self.disk.node.router.store.capacity_bytes = bytes


@contextmanager
def served(tls=None, host="127.0.0.1", **settings):
    with tempfile.TemporaryDirectory() as folder:
        one = Served(MqttSettings(**settings), tls, host, Path(folder))
        try:
            yield one
        finally:
            one.end()


def until(condition, timeout_s=60.0):
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
