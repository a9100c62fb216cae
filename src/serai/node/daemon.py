"""A node as a process: everything put together, its start, its signals, its clean end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
import signal
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from serai import __version__
from serai.core.errors import BadInput, CannotRun
from serai.node.bundle.eid import node_eid
from serai.node.bundle.message import Envelope
from serai.node.checked import file_of, network_key, split_address
from serai.node.clock import NodeClock
from serai.node.core import Node
from serai.node.discovery import BeaconSettings, Discovery
from serai.node.interests import Content, read_interest
from serai.node.link import Self, network_id
from serai.node.links import Address, Links, LinkSettings, tls_context
from serai.node.mqtt.access import Access, User, password_problem
from serai.node.mqtt.clients import Clients
from serai.node.mqtt.delivery import Delivery
from serai.node.mqtt.settings import MqttSettings
from serai.node.mqtt_server import MqttServer, server_tls
from serai.node.settings import NodeSettings
from serai.node.store import Store, Writer
from serai.node.web import WebServer
from serai.node.wire.beacon import Beacon
from serai.node.words import Effects, Word

if TYPE_CHECKING:
    from serai.node.config import NodeConfig

log = logging.getLogger("serai.node")

_LONGEST_SLEEP_S: Final = 1.0
_KEEP_TIME_S: Final = 60.0
Ports = dict[str, int | None]


def matches(interest: str, topic: str, payload: Callable[[], bytes]) -> bool:
    """Whether an interest wants what is on a topic; one that does not parse, from a neighbour, wants nothing."""
    try:
        wanted = read_interest(interest)
    except BadInput:
        return False
    return wanted.matches(Content(topic, payload() if wanted.conditions is not None else b""))


class Daemon:
    """One running node."""

    def __init__(self, config: NodeConfig) -> None:
        self.config = config
        self.began_s = time.monotonic()
        self.failure: CannotRun | None = None
        self.stopping = asyncio.Event()
        self.discovery: Discovery | None = None
        key, eid = network_key(config), node_eid(config.name)
        self.envelope = Envelope(eid, config.network.name, key)
        self.store = Store.open(file_of(config, config.store.path), secrets.token_bytes(8), config.store.durability)
        saved = self.store.saved()
        self.clock = NodeClock(config.clock, float(saved.meta.get("time_s", 0.0)))
        self.writer = Writer(self.store, asyncio.get_running_loop().call_soon_threadsafe, self.say, self.failed)
        gc.disable()  # all that is made now stays: looking through it again and again takes a third of the start
        self.node = Node(_node_settings(config), saved, self.envelope.encode, matches, self.writer.data, self.now_s())
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)  # hardly anything here refers to itself in a circle
        gc.enable()
        self.links = self._links(bytes(saved.meta["epoch"]), key)
        self.clients = Clients(self.node, _mqtt_settings(config), self._load)
        self.clients.restore(self.store.inbound(), self.now_s())
        self.mqtt = MqttServer(self.clients, self.writer.perform, self.now_s, self._told)
        self.web = WebServer(self.status)
        self.writer.perform(self.node.started(self.now_s()))

    def now_s(self) -> float:
        """The node's time."""
        return self.clock.instant().node_s

    def say(self, word: Word) -> None:
        """Hand a word to who says it."""
        if not self.links.say(word) and not self.mqtt.say(word):
            raise AssertionError(f"nobody says {word}")

    def failed(self, error: CannotRun) -> None:
        """Nothing can be written any more."""
        self.failure = error
        self.stopping.set()

    async def start(self) -> Ports:
        """Open all doors; where they are."""
        config = self.config
        ports: Ports = {"tcpcl": None, "mqtt": None, "web": None}
        self.links.start()
        if config.links.listen is not None:
            ports["tcpcl"] = await self.links.listen(*split_address(config.links.listen))
        if config.mqtt.listen is not None:
            ports["mqtt"] = await self.mqtt.listen(*split_address(config.mqtt.listen), _mqtt_tls(config))
        if config.web.listen is not None:
            ports["web"] = await self.web.listen(*split_address(config.web.listen))
        for one in config.neighbours:
            self.links.dial(Address(*split_address(one.address), one.name))
        if config.beacon.on and ports["tcpcl"] is not None:
            await self._start_beacons(ports["tcpcl"])
        return ports

    async def run(self) -> None:
        """Let time pass until somebody says stop."""
        kept_s = 0.0
        while not self.stopping.is_set():
            now_s = self.now_s()
            self.node.has_room = self.store.free_bytes() >= self.config.store.free
            self.writer.perform(self.node.tick(now_s))
            if now_s - kept_s >= _KEEP_TIME_S:
                kept_s = now_s
                self.writer.perform(Effects(rows=(("meta", ("time_s", now_s)),)))
                notify("WATCHDOG=1")
            wait_s = min(max(0.01, self.node.due_s() - now_s), _LONGEST_SLEEP_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), wait_s)

    async def stop(self) -> None:
        """End in an orderly way: sessions first, then what is still to be written."""
        if self.discovery is not None:
            self.discovery.stop()
        await self.web.stop()
        await self.links.stop()
        await self.mqtt.stop()
        now_s = self.now_s()
        self.writer.perform(self.node.stop(now_s).also(("meta", ("time_s", now_s))))
        await asyncio.to_thread(self.writer.stop)
        self.store.close()

    def status(self) -> dict[str, Any]:
        """The node in numbers."""
        instant = self.clock.instant()
        problems = [self.writer.problem] if self.writer.problem else []
        if not self.node.has_room:
            problems.append("less of the disk is free than store.free asks for: nothing more is taken")
        return {
            **self.node.status(instant.node_s), "version": __version__, "mqtt": self.mqtt.status(),
            "uptime_s": time.monotonic() - self.began_s, "links": self.links.neighbours.status(instant),
            "clock": ("none", "taken from a neighbour", "right")[self.clock.trust()], "problems": problems,
        }  # fmt: skip

    # -- inside

    def _links(self, epoch: bytes, key: bytes) -> Links:
        config = self.config
        me = Self(
            self.envelope, network_id(config.network.name, key), epoch, config.carries,
            "required" if config.network.security == "tls" else "none", config.links.keepalive,
        )  # fmt: skip
        files = [
            file_of(config, name)
            for name in (config.network.ca, config.network.certificate, config.network.private_key)
        ]
        contexts = [tls_context(server, *files) for server in (True, False)] if me.tls == "required" else []
        settings = LinkSettings(config.links.dial_timeout, config.links.user_timeout, config.links.sessions)
        return Links(
            me, self.node, self.writer.data, self.writer.perform, self.clock.instant, trust=self.clock.trust,
            disk_s=self.writer.disk_s, contexts=contexts, revoked=config.network.revoked, settings=settings,
            heard_time=self.clock.heard,
        )  # fmt: skip

    async def _start_beacons(self, port: int) -> None:
        beacon = self.config.beacon
        name = "dtn:none" if beacon.quiet else self.envelope.node
        said = Beacon(name, beacon.period, (("tcpcl", port),), self.links.me.network)
        settings = BeaconSettings(beacon.on, beacon.port, beacon.period, beacon.quiet)
        self.discovery = Discovery(settings, said, self.links.heard)
        await self.discovery.start()

    def _load(self, bundle: int) -> Delivery | None:
        held = self.node.holdings.by_id.get(bundle)
        message = self.node.message(bundle) if held else None
        return Delivery(message, held.expires_s) if message and held else None

    def _told(self) -> dict[str, Any]:
        """What applications read below $SYS/serai."""
        return {"name": self.config.name, "version": __version__, "neighbours": len(self.links.neighbours.links)}


def _node_settings(config: NodeConfig) -> NodeSettings:
    store = config.store
    return NodeSettings(
        node_eid(config.name), store_bytes=store.bytes, store_bundles=store.bundles, when_full=store.when_full,
        keep_own=store.keep_own, carries=config.carries,
    )  # fmt: skip


def _mqtt_settings(config: NodeConfig) -> MqttSettings:
    users = {}
    for name, one in config.mqtt.users.items():
        if problem := password_problem(one.password):
            raise BadInput(f"mqtt.users.{name}.password: {problem}")
        users[name] = User(one.password, Access(one.read, one.write))
    mqtt = config.mqtt
    return MqttSettings(mqtt.lifetime, mqtt.session, largest=mqtt.largest, users=users, anonymous=mqtt.anonymous)


def _mqtt_tls(config: NodeConfig) -> ssl.SSLContext | None:
    certificate, key = config.mqtt.certificate, config.mqtt.private_key
    if (certificate is None) != (key is None):
        raise BadInput("mqtt.certificate and mqtt.private_key go together: only one of them is set")
    return server_tls(file_of(config, certificate), file_of(config, key)) if certificate and key else None


def notify(text: str) -> None:
    """Tell systemd how the node is, where that has started it."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as there:
        there.sendto(text.encode(), f"\0{address[1:]}" if address.startswith("@") else address)


async def serve(config: NodeConfig, ready: Callable[[Ports], None]) -> None:
    """Run a node until SIGTERM or SIGINT; CannotRun if its store cannot be written any more."""
    daemon = Daemon(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.stopping.set)
    try:
        ready(await daemon.start())
        notify("READY=1")
        await daemon.run()
    finally:
        notify("STOPPING=1")
        await daemon.stop()
    if daemon.failure is not None:
        raise daemon.failure


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run it in uvloop where that is installed: less CPU for each bundle."""
    try:
        import uvloop
    except ModuleNotFoundError:
        asyncio.run(coroutine)
    else:
        uvloop.run(coroutine)
