"""What a server does for one client: packets in, effects out. Sections are those of the OASIS standard for MQTT 5.

A `Session` lives as long as a connection; what outlives it is in its `Client` and in the core. Like the core it never
waits: whatever must be on disk before a packet may leave is a row of the effects, and the packet is a word, `Say`.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from serai.core.errors import BadInput, PeerError
from serai.node.interests import Asked, Content, asked, read_interest, topic_problem
from serai.node.mqtt.access import Access
from serai.node.mqtt.clients import Client, Clients, Received, message_of, packed
from serai.node.mqtt.delivery import NOT_FOUND, NOTHING, Close, Outgoing, Say
from serai.node.mqtt.packets import (
    V3,
    V5,
    Ack,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Ping,
    Pong,
    Publish,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Will,
    Wish,
)
from serai.node.mqtt.properties import ALIAS_INVALID, PROTOCOL_ERROR, Properties
from serai.node.words import Effects, Subscription, joined

# Reason codes (2.4)
UNSPECIFIED: Final = 0x80
BAD_CLIENT: Final = 0x85
BAD_PASSWORD: Final = 0x86
NOT_AUTHORIZED: Final = 0x87
BAD_METHOD: Final = 0x8C
KEEP_ALIVE: Final = 0x8D
TAKEN_OVER: Final = 0x8E
BAD_FILTER: Final = 0x8F
BAD_TOPIC: Final = 0x90
TOO_MANY: Final = 0x93  # unacknowledged messages: more than the receive maximum
FULL: Final = 0x97  # quota exceeded
NO_SUBSCRIPTION: Final = 0x11
WITH_WILL: Final = 0x04
_RETURN_CODES: Final = {0x84: 1, BAD_CLIENT: 2, BAD_PASSWORD: 4, NOT_AUTHORIZED: 5}  # of 3.1.1 (its 3.2.2.3)

FOR_EVER: Final = 0xFFFFFFFF
ALIASES: Final = 16
_LONGEST_NAME: Final = 256
_LEEWAY: Final = 100  # mosquitto 2.0 counts a message up to PUBREC, where the standard (4.9) says PUBCOMP
_OWN: Final = "$SYS/"


class Refused(PeerError):  # noqa: N818 - what happened
    """A CONNECT, or one filter of a SUBSCRIBE, that is answered with a reason other than success."""


def connack_reason(reason: int, version: int) -> int:
    """The reason in a CONNACK of this version."""
    return reason if version == V5 else _RETURN_CODES.get(reason, 3)


class Session:
    """One client's connection, from its CONNECT on. `connection` is the number by which `Say` and `Close` name it."""

    def __init__(self, connection: int, clients: Clients, connect: Connect, access: Access) -> None:
        self.connection, self.clients, self.node, self.access = connection, clients, clients.node, access
        self.settings, self.connect, self.version = clients.settings, connect, connect.version
        self.will: Will | None = None
        self.heard_s = 0.0
        self.over = False
        self.own: dict[str, Asked] = {}  # subscriptions to what this node says of itself: local, and not kept
        self.parked: deque[Publish] = deque()  # of 3.1.1: not acknowledged before there is room in the store
        self._aliases: dict[int, str] = {}
        self._unreleased: set[int] = set()  # QoS 2, begun in this connection: what the receive maximum counts (4.9)
        self.client: Client
        self.outgoing: Outgoing

    # -- connecting

    def begin(self, now_s: float, spare_name: str) -> Effects:
        """The effects of the CONNECT, its answer with them; `spare_name` for a client that has no name."""
        connect, said = self.connect, self.connect.properties
        name = connect.client or spare_name
        self._check(connect)
        own = connect.will is not None and connect.will.topic.startswith(_OWN)
        self.will, self.heard_s = None if own else connect.will, now_s
        self.lifetime_s = self._lifetime_s()
        parts = []
        self.client = self.clients.of(name)
        if self.client.session is not None:
            parts.append(self.client.session.end(now_s, TAKEN_OVER, "another connection under the same name"))
            self.client = self.clients.of(name)
        parts.append(self._cancel_will(name, now_s))
        will = packed(self.will) if self.will else None
        opened = self.node.session_opened(
            name, now_s, clean=connect.clean, version=self.version, lifetime_s=self.lifetime_s, will=will
        )
        parts.append(opened)
        resumed = opened.outcome == "resumed"
        if not resumed:
            parts.append(Effects((("inbound.forget_all", (name,)),)))
            self.client.received = Received(name, kept=True)
        self.client.received.kept = self.lifetime_s > 0
        parts.append(Effects(self.client.received.connected(self.client.ended_s)))
        self.client.session, self.client.ended_s = self, None
        window = min(self.settings.in_flight, said.get("receive_maximum", 0xFFFF))
        limits = {**said, "receive_maximum": window}
        self.outgoing = Outgoing(self.node, name, self.connection, self.version, self.clients.load, limits)
        self._identify()
        parts.append(self._say(Connack(resumed, 0, self._offer(name))))
        parts.append(self.outgoing.pump(now_s))
        return joined(parts)

    def _check(self, connect: Connect) -> None:
        if "authentication_method" in connect.properties:
            raise Refused("an authentication method; there are only names and passwords", BAD_METHOD)
        if not connect.client and self.version == V3 and not connect.clean:
            raise Refused("a session that is to be kept needs a client identifier", BAD_CLIENT)
        if len(connect.client.encode()) > _LONGEST_NAME:
            raise Refused(f"a client identifier of more than {_LONGEST_NAME} bytes", BAD_CLIENT)
        will = connect.will
        if will is None or will.topic.startswith(_OWN):
            return
        if problem := topic_problem(will.topic):
            raise Refused(f"will: {problem}", BAD_TOPIC)
        if not self.access.may_write(will.topic):
            raise Refused(f"will: nothing may be published on {will.topic}", NOT_AUTHORIZED)

    def _lifetime_s(self) -> float:
        if self.version == V3:
            return 0.0 if self.connect.clean else self.settings.session_s
        return _seconds(self.connect.properties.get("session_expiry_interval", 0))

    def _offer(self, name: str) -> Properties:
        """What a CONNACK says of the server's limits (3.2.2.3)."""
        said: dict[str, Any] = {
            "receive_maximum": self.settings.in_flight,
            "maximum_packet_size": self.settings.largest_packet,
            "topic_alias_maximum": ALIASES,
        }
        return said | ({} if self.connect.client else {"assigned_client_identifier": name})

    def _cancel_will(self, name: str, now_s: float) -> Effects:
        """A will that still waits is published if its session ends now, but not if it goes on (3.1.3.2.2)."""
        if name not in self.clients.wills:
            return NOTHING
        _, will = self.clients.wills.pop(name)
        if not self.connect.clean:
            return Effects((("session.will", (None, name)),))
        return self.clients.leave_will(name, will, now_s, 0.0)

    # -- packets

    def receive(self, packet: Packet, now_s: float) -> Effects:
        """The effects of a packet; a `PeerError` ends the connection: see `end`."""
        self.heard_s = now_s
        match packet:
            case Publish():
                return self._published(packet, now_s)
            case Ack("pubrel"):
                return self._released(packet, now_s)
            case Ack():
                return joined((self.outgoing.acknowledged(packet), self.outgoing.pump(now_s)))
            case Subscribe():
                return joined((self._subscribed(packet, now_s), self.outgoing.pump(now_s)))
            case Unsubscribe():
                return self._unsubscribed(packet, now_s)
            case Ping():
                return self._say(Pong())
            case Disconnect():
                return self._disconnected(packet, now_s)
            case _:
                raise PeerError(f"{type(packet).__name__.upper()} is not expected here", PROTOCOL_ERROR)

    def _published(self, publish: Publish, now_s: float) -> Effects:
        publish = self._with_topic(publish)
        if publish.qos == 2 and self.client.received.is_repeated(publish):
            return self._say(Ack("pubrec", publish.packet))
        if publish.topic.startswith(_OWN):  # a mosquitto that is a bridge tells there that it is up
            return self._accepted(publish, NOTHING)
        if problem := topic_problem(publish.topic):
            return self._rejected(publish, BAD_TOPIC, problem)
        if not self.access.may_write(publish.topic):
            return self._rejected(publish, NOT_AUTHORIZED, f"nothing may be published on {publish.topic}")
        if self.version == V5 and publish.qos == 2 and len(self._unreleased) >= self.settings.in_flight + _LEEWAY:
            raise PeerError(f"{len(self._unreleased)} messages without PUBREL", TOO_MANY)
        if self.parked:
            return self._park(publish)
        return self._stored(publish, now_s)

    def _with_topic(self, publish: Publish) -> Publish:
        """With the topic in place of an alias (3.3.2.3.4), and checked for what no client may send."""
        said = publish.properties
        if not said and publish.topic:
            return publish
        if "subscription_identifier" in said:
            raise PeerError("a client's PUBLISH with a subscription identifier", PROTOCOL_ERROR)
        response = said.get("response_topic", "")
        if "+" in response or "#" in response:
            raise PeerError("wildcards in a response topic", PROTOCOL_ERROR)
        alias = said.get("topic_alias")
        if alias is not None:
            if alias > ALIASES:
                raise PeerError(f"topic alias {alias}; at most {ALIASES}", ALIAS_INVALID)
            if publish.topic:
                self._aliases[alias] = publish.topic
            publish = publish._replace(topic=self._aliases.get(alias, ""))
        if not publish.topic:
            raise PeerError("a PUBLISH without a topic", PROTOCOL_ERROR)
        return publish

    def _stored(self, publish: Publish, now_s: float) -> Effects:
        """Give it to the node; if that is full, never acknowledge it."""
        topic, payload, qos, retain, *_, said = publish
        lifetime_s = max(1.0, said.get("message_expiry_interval", self.settings.lifetime_s))
        message = message_of(topic, payload, qos, retain, said)
        effects = self.node.published(self.client.name, message, lifetime_s, now_s)
        if effects.outcome != "full":
            self.clients.counts["published"] += 1
            return self._accepted(publish, effects)
        self.clients.counts["refused" if qos else "dropped"] += 1
        if not qos:
            return effects
        if self.version == V5:
            return effects + self._rejected(publish, FULL, "the store is full")
        return effects + self._park(publish)

    def _accepted(self, publish: Publish, effects: Effects) -> Effects:
        if publish.qos == 2:
            self._unreleased.add(publish.packet)
            effects = effects.also(*self.client.received.accept(publish))
        return effects.then(Say(self.connection, _answer(publish))) if publish.qos else effects

    def _rejected(self, publish: Publish, reason: int, why: str) -> Effects:
        """Only version 5 can say no; otherwise the connection has to end (3.1.1: 3.3.5)."""
        if self.version != V5 or not publish.qos:
            raise PeerError(why, reason)
        return self._say(_answer(publish)._replace(reason=reason, properties=self._why(why)))

    def _park(self, publish: Publish) -> Effects:
        if publish.qos:
            if len(self.parked) >= self.settings.parked:
                raise PeerError("the store is full, and too many messages wait", FULL)
            self.parked.append(publish)
        else:
            self.clients.counts["dropped"] += 1
        return NOTHING

    def retry(self, now_s: float) -> Effects:
        """Try once more to store what waits for room, in its order."""
        parts = []
        while self.parked:
            first = self.parked.popleft()
            waiting, self.parked = self.parked, deque()
            parts.append(self._stored(first, now_s))
            if self.parked:  # still no room
                self.parked.extend(waiting)
                break
            self.parked = waiting
        return joined(parts) if parts else NOTHING

    def _released(self, ack: Ack, now_s: float) -> Effects:
        self._unreleased.discard(ack.packet)
        rows = self.client.received.release(ack.packet, now_s)
        unknown = rows is None and self.version == V5
        return Effects(rows or ()).then(Say(self.connection, Ack("pubcomp", ack.packet, NOT_FOUND if unknown else 0)))

    # -- subscriptions

    def _subscribed(self, packet: Subscribe, now_s: float) -> Effects:
        said = [value for name, value in packet.properties.get("user_property", ()) if name == "where"]
        where = " and ".join(f"({one})" for one in said) if len(said) > 1 else "".join(said)
        (identifier,) = packet.properties.get("subscription_identifier", (0,))
        parts, reasons, problems = [], [], []
        for wish in packet.wishes:
            try:
                parts.append(self._wished(wish, where, identifier, now_s))
                reasons.append(wish.qos)
            except (BadInput, Refused) as error:
                reason = error.reason if isinstance(error, Refused) else BAD_FILTER
                reasons.append(reason if self.version == V5 else UNSPECIFIED)
                problems.append(str(error))
        self._identify()
        parts.append(self._say(Suback(packet.packet, tuple(reasons), self._why("; ".join(problems)))))
        return joined(parts)

    def _wished(self, wish: Wish, where: str, identifier: int, now_s: float) -> Effects:
        found = asked(wish.filter, where)
        if found.group and wish.no_local:
            raise PeerError("a shared subscription that asks for no local messages", PROTOCOL_ERROR)
        if not self.access.may_read(found.interest.filter):
            raise Refused(f"{found.interest.filter} may not be read", NOT_AUTHORIZED)
        if wish.filter.startswith(_OWN):
            self.own[wish.filter] = found
            return NOTHING
        # To another broker its own messages do not go back, and it is told which were retained, as MQTT 5 can ask for.
        no_local, as_published = wish.no_local or self.connect.bridge, wish.retain_as_published or self.connect.bridge
        options = wish.qos | no_local << 2 | as_published << 3 | wish.retain_handling << 4
        wanted = Subscription(
            0, self.client.name, wish.filter, str(found.interest), found.group, options, identifier, int(now_s * 1000)
        )
        changed = [old for old in self.node.subscriptions(self.client.name) if old.filter == wish.filter]
        parts = [
            self.node.unsubscribed(self.client.name, wish.filter, now_s)
            for old in changed
            if old.interest != wanted.interest
        ]
        return joined((*parts, self.node.subscribed(wanted, now_s)))

    def _unsubscribed(self, packet: Unsubscribe, now_s: float) -> Effects:
        parts, reasons = [], []
        for filter in packet.filters:
            if self.own.pop(filter, None):
                reasons.append(0)
                continue
            parts.append(self.node.unsubscribed(self.client.name, filter, now_s))
            reasons.append(NO_SUBSCRIPTION if parts[-1].outcome == "none" else 0)
        self._identify()
        return joined((*parts, self._say(Unsuback(packet.packet, tuple(reasons)))))

    def _identify(self) -> None:
        held = self.node.subscriptions(self.client.name)
        self.outgoing.identified = [(read_interest(one.interest), one.identifier) for one in held if one.identifier]

    def tell(self, publish: Publish) -> Effects:
        """Pass on what the node says of itself, if the client has asked for it."""
        content = Content(publish.topic, publish.payload)
        return self._say(publish) if any(one.interest.matches(content) for one in self.own.values()) else NOTHING

    # -- the end

    def _disconnected(self, packet: Disconnect, now_s: float) -> Effects:
        expiry = packet.properties.get("session_expiry_interval")
        if expiry is not None:
            if expiry and not self.lifetime_s:
                raise PeerError("a session that was to end with its connection is to be kept after all", PROTOCOL_ERROR)
            self.lifetime_s = _seconds(expiry)
        if packet.reason != WITH_WILL:
            self.will = None
        done = Effects(self.client.received.goodbye())
        return joined((done, self.end(now_s)))

    def tick(self, now_s: float) -> Effects:
        """Time has passed: a client that was silent for too long has gone (3.1.2.10); what waits may find room."""
        keep_alive_s = self.connect.keep_alive_s
        if keep_alive_s and now_s - self.heard_s > 1.5 * keep_alive_s:
            return self.end(now_s, KEEP_ALIVE, f"nothing heard for {now_s - self.heard_s:.0f} s")
        return self.retry(now_s)

    def end(self, now_s: float, reason: int = 0, why: str = "") -> Effects:
        """The connection is over, for whatever reason; once is enough. What we say last, the client may not hear."""
        if self.over:
            return NOTHING
        self.over = True
        self.client.session, self.client.ended_s, self.client.lifetime_s = None, now_s, self.lifetime_s
        parts = []
        if self.will is not None:
            parts.append(self.clients.leave_will(self.client.name, self.will, now_s, self.lifetime_s))
        parts.append(self.node.session_closed(self.client.name, now_s, self.lifetime_s))
        if self.will is None:
            parts.append(Effects((("session.will", (None, self.client.name)),)))
        if not self.lifetime_s:
            parts.append(Effects((("inbound.forget_all", (self.client.name,)),)))
            self.clients.by_name.pop(self.client.name, None)
        if reason and self.version == V5:
            parts.append(self._say(Disconnect(reason, self._why(why))))
        return joined(parts).then(Close(self.connection, why))

    def _why(self, why: str) -> Properties:
        told = why and self.version == V5 and self.connect.properties.get("request_problem_information", 1)
        return {"reason_string": why[:_LONGEST_NAME]} if told else {}

    def _say(self, packet: Packet) -> Effects:
        return Effects((), (Say(self.connection, packet),))


def _answer(publish: Publish) -> Ack:
    return Ack("puback" if publish.qos == 1 else "pubrec", publish.packet)


def _seconds(expiry: int) -> float:
    return float("inf") if expiry == FOR_EVER else float(expiry)
