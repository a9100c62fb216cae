"""Other people's clients at a real server: paho in 3.1.1 and 5, aiomqtt, mosquitto's programs, mosquitto bridges."""

import asyncio
import json
import socket
import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import aiomqtt
import paho.mqtt.client as paho
import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from serai.core.errors import BadInput
from serai.node.client import Node as Client
from serai.node.keys import enrol, make_network
from serai.node.mqtt.access import Access, User, hash_password
from serai.node.mqtt.packets import Connect, encode
from serai.node.mqtt_server import server_tls
from tests.node.mqtt.served import process, served, until
from tests.programs import program

VERSIONS = {"3.1.1": paho.MQTTv311, "5": paho.MQTTv5}


class Paho:
    """A paho client that notes what it hears."""

    def __init__(self, port, name="", version="3.1.1", clean=True, expiry=1000, user=None, will=None, host="127.0.0.1"):
        five = version == "5"
        options = {} if five else {"clean_session": clean}
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, name, protocol=VERSIONS[version], **options)
        self.heard, self.connected, self.subscribed, self.reasons = [], threading.Event(), [], []
        self.client.on_message = lambda client, data, message: self.heard.append(message)
        self.client.on_connect = self.on_connect
        self.client.on_subscribe = lambda client, data, mid, codes, properties: self.subscribed.append(codes)
        self.client.on_publish = lambda client, data, mid, code, properties: self.reasons.append(code)
        self.client.reconnect_delay_set(0.05, 0.2)
        if user:
            self.client.username_pw_set(*user)
        if will:
            self.client.will_set(*will)
        about = {}
        if five:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = expiry
            about = {"clean_start": clean, "properties": properties}
        self.client.connect(host, port, keepalive=30, **about)
        self.client.loop_start()
        until(lambda: self.code is not None)

    code = None

    def on_connect(self, client, data, flags, code, properties):
        self.code, self.present = code.value, flags.session_present
        self.connected.set()

    def subscribe(self, *arguments, **options):
        before = len(self.subscribed)
        self.client.subscribe(*arguments, **options)
        until(lambda: len(self.subscribed) > before)
        return self.subscribed[-1][0]

    def publish(self, topic, payload, qos=0, wait=True, **options):
        info = self.client.publish(topic, payload, qos, **options)
        if wait:
            info.wait_for_publish(20)
        return info

    @property
    def payloads(self):
        return [message.payload for message in self.heard]

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()


@contextmanager
def pahos(*clients):
    try:
        yield clients
    finally:
        for client in clients:
            client.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_paho_all_qualities_both_ways(version):
    with served() as node, pahos(Paho(node.port, "a", version), Paho(node.port, "b", version)) as (a, b):
        b.subscribe([("q/0", 0), ("q/1", 1), ("q/2", 2)])
        for number in range(60):
            a.publish(f"q/{number % 3}", b"%d" % number, 2, wait=number == 59)
        until(lambda: len(b.heard) == 60)
        for quality in range(3):
            got = [(int(m.payload), m.qos) for m in b.heard if m.topic == f"q/{quality}"]
            assert got == [(number, quality) for number in range(quality, 60, 3)]


@pytest.mark.parametrize("version", VERSIONS)
def test_paho_through_kills_of_the_node(version):
    """The node is killed again and again while messages of QoS 2 go through it: none lost, none twice."""
    with served() as node:
        pair = Paho(node.port, "a", version, clean=False), Paho(node.port, "b", version, clean=False)
        with pahos(*pair) as (a, b):
            b.subscribe("t", qos=2)
            for number in range(120):
                a.publish("t", b"%d" % number, 2, wait=False)
                if number % 30 == 29:
                    node.kill()
            until(lambda: len(b.heard) >= 120, 30)
            assert sorted(map(int, b.payloads)) == list(range(120))
            assert sorted(map(int, node.payloads())) == list(range(120))


def test_paho_5_properties_retained_and_conditions():
    with served() as node, pahos(Paho(node.port, "a", "5"), Paho(node.port, "b", "5")) as (a, b):
        about = Properties(PacketTypes.PUBLISH)
        about.ContentType, about.ResponseTopic, about.CorrelationData = "application/json", "answer", b"7"
        about.UserProperty, about.MessageExpiryInterval = ("who", "me"), 300
        a.publish("r/1", json.dumps({"t": 25}), 1, retain=True, properties=about)
        asked = Properties(PacketTypes.SUBSCRIBE)
        asked.UserProperty, asked.SubscriptionIdentifier = ("where", "t > 20"), 42
        assert b.subscribe("r/+", options=SubscribeOptions(qos=2), properties=asked).value == 2
        a.publish("r/1", json.dumps({"t": 15}), 1)
        a.publish("r/1", json.dumps({"t": 35}), 1)
        until(lambda: len(b.heard) == 2)
        first, second = b.heard
        assert (json.loads(first.payload), first.retain, second.retain) == ({"t": 25}, 1, 0)
        said = first.properties
        assert (said.ContentType, said.ResponseTopic, said.CorrelationData) == ("application/json", "answer", b"7")
        assert (said.UserProperty, said.SubscriptionIdentifier) == ([("who", "me")], [42])
        assert 290 <= said.MessageExpiryInterval <= 300
        bad = Properties(PacketTypes.SUBSCRIBE)
        bad.UserProperty = ("where", "t >")
        assert b.subscribe("r/+", options=SubscribeOptions(qos=2), properties=bad).value == 0x8F


def test_paho_will_and_sys():
    with served() as node, pahos(Paho(node.port, "b")) as (b,):
        b.subscribe("gone", qos=1)
        a = Paho(node.port, "a", will=("gone", b"bye", 1, False))
        a.client.loop_stop()
        a.client._sock_close()
        until(lambda: b.payloads == [b"bye"])
        b.subscribe("$SYS/serai/#")
        until(lambda: any(m.topic == "$SYS/serai/name" for m in b.heard), 15)


def test_users():
    users = {"anna": User(hash_password(b"secret", b"salt"), Access(read=("a/#",), write=("a/in",)))}
    with served(users=users, anonymous=False) as node:
        for user, code in (("anna", "wrong"), 0x86), (("eve", "secret"), 0x86), (None, 0x87):
            with pahos(Paho(node.port, "x", "5", user=user)) as (x,):
                assert x.code == code
        with pahos(Paho(node.port, "x", "5", user=("anna", "secret"))) as (anna,):
            assert anna.code == 0
            assert anna.subscribe("a/+", qos=1).value == 1
            assert anna.subscribe("#", qos=1).value == 0x87
            anna.publish("a/in", b"1", 1)
            anna.publish("a/out", b"2", 1)
            until(lambda: len(anna.reasons) == 2)
            assert [code.value for code in anna.reasons] == [0, 0x87]
            until(lambda: anna.payloads == [b"1"])


def test_over_tls(tmp_path):
    """With keys that the network's own tools make; a client without TLS gets nothing, and does no harm."""
    now = datetime.now(UTC)
    make_network("net", tmp_path / "net", now)
    enrol("barn", tmp_path / "net", tmp_path / "barn", now)
    files = tmp_path / "barn"
    trusted = ssl.create_default_context(cafile=str(files / "ca.pem"))
    trusted.check_hostname = False
    with served(tls=server_tls(files / "node.pem", files / "node.key")) as node:

        async def talk():
            async with Client(port=node.port, tls=trusted) as one:
                await one.publish("t", b"x", qos=2)

        asyncio.run(talk())
        assert node.payloads() == [b"x"]
        with socket.create_connection(("127.0.0.1", node.port), timeout=10) as raw:
            raw.sendall(encode(Connect("c"), 4))
            assert raw.recv(100)[:1] in (b"", b"\x15")  # a TLS alert at most
        asyncio.run(talk())
    with pytest.raises(BadInput, match="cannot use"):
        server_tls(files / "ca.pem", files / "node.key")


def test_a_full_store_keeps_paho_waiting_and_loses_nothing():
    with served() as node, pahos(Paho(node.port, "a"), Paho(node.port, "b", "5")) as (old, new):
        node.take(3000)
        infos = [old.publish("t", b"%d" % number, 1 + number % 2, wait=False) for number in range(30)]
        until(lambda: node.disk.clients.counts["refused"] > 3)
        held = len(node.payloads())
        new.publish("t", b"no", 1)
        until(lambda: len(new.reasons) == 1)
        assert new.reasons[0].value == 0x97
        assert sum(info.is_published() for info in infos) <= held < 30
        node.take(1 << 20)
        for info in infos:
            info.wait_for_publish(20)
        assert sorted(map(int, node.payloads())) == list(range(30))


def test_aiomqtt():
    async def talk(port):
        async with aiomqtt.Client("127.0.0.1", port) as one, aiomqtt.Client("127.0.0.1", port) as other:
            await other.subscribe("a/#", qos=2)
            for number in range(20):
                await one.publish(f"a/{number}", payload=number, qos=number % 3)
            coming = aiter(other.messages)
            return [int((await anext(coming)).payload) for _ in range(20)]

    with served() as node:
        assert sorted(asyncio.run(asyncio.wait_for(talk(node.port), 20))) == list(range(20))


@pytest.mark.parametrize("version", ["mqttv31", "mqttv311", "mqttv5"])
def test_mosquitto_pub_and_sub(version):
    pub, sub = program("mosquitto_pub"), program("mosquitto_sub")
    with served() as node:
        common = ["-h", "127.0.0.1", "-p", str(node.port), "-V", version, "-t", "m/x", "-q", "2"]
        with process(sub, *common, "-C", "21", "-i", "sub") as listening:
            until(lambda: node.disk.count("interest"))
            lines = "\n".join(str(number) for number in range(20))
            subprocess.run([pub, *common, "-l"], input=lines, text=True, check=True, timeout=20)
            subprocess.run([pub, *common, "-s"], input="x" * 100_000, text=True, check=True, timeout=20)
            heard, _ = listening.communicate(timeout=20)
            assert heard.split() == [*map(str, range(20)), "x" * 100_000]


BRIDGE = """
user root
listener {port} 127.0.0.1
allow_anonymous true
persistence true
persistence_location {folder}/
autosave_interval 1
connection serai
address 127.0.0.1:{node}
topic {up} out 2
topic {down} in 2
remote_clientid bridge-{port}
cleansession false
restart_timeout 1 1
bridge_protocol_version {version}
"""


def answers(port):
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@contextmanager
def mosquitto(folder, node, free_port, version="mqttv311", up="up/#", down="down/#"):
    settings = folder / f"mosquitto-{free_port}.conf"
    data = folder / str(free_port)
    data.mkdir(exist_ok=True)
    settings.write_text(BRIDGE.format(port=free_port, folder=data, node=node, version=version, up=up, down=down))
    with process(program("mosquitto"), "-c", str(settings)):
        until(lambda: answers(free_port))
        yield


def test_mosquitto_as_a_bridge(tmp_path, free_ports):
    """Applications at a mosquitto of their own, which bridges to the node; both are killed meanwhile."""
    (port,) = free_ports(1)
    with served() as node:
        with mosquitto(tmp_path, node.port, port):
            until(lambda: node.disk.count("interest"))
            with pahos(Paho(port, "app", clean=False), Paho(node.port, "field", clean=False)) as (app, field):
                app.subscribe("down/#", qos=2)
                field.subscribe("up/#", qos=2)
                for number in range(40):
                    app.publish("up/x", b"%d" % number, 2, wait=False)
                    field.publish("down/x", b"%d" % number, 2, wait=False)
                    if number == 20:
                        node.kill()
                until(lambda: len(app.heard) >= 40 and len(field.heard) >= 40, 30)
                assert sorted(map(int, app.payloads)) == sorted(map(int, field.payloads)) == list(range(40))
        with pahos(Paho(node.port, "field", clean=False)) as (field,):
            for number in range(40, 50):  # while the mosquitto is not there
                field.publish("down/x", b"%d" % number, 2)
        with mosquitto(tmp_path, node.port, port), pahos(Paho(port, "app", clean=False)) as (app,):
            until(lambda: len(app.heard) >= 10)
            assert sorted(map(int, app.payloads)) == list(range(40, 50))
        assert not [message for message in node.disk.messages() if message.topic.startswith("$")]


def test_mosquitto_as_a_bridge_of_version_5(tmp_path, free_ports):
    """It asks for no session that lasts (2.0.11), so it gets what comes while it is there, and nothing back."""
    (port,) = free_ports(1)
    with served() as node, mosquitto(tmp_path, node.port, port, "mqttv50"):
        until(lambda: node.disk.count("interest"))
        with pahos(Paho(port, "app"), Paho(node.port, "field")) as (app, field):
            app.subscribe("#", qos=2)
            field.subscribe("up/#", qos=2)
            for number in range(40):
                app.publish("up/x", b"%d" % number, 2, wait=False)
                field.publish("down/x", b"%d" % number, 2, wait=False)
            until(lambda: len(app.heard) >= 80 and len(field.heard) >= 40)
            assert sorted(map(int, field.payloads)) == list(range(40))
