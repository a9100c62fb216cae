"""The half of a node that faces applications, as plainly as can be: its whole state is tables, and so is its disk.

`Disk` stands for the store: rows are committed in the order in which they were returned, words are said after that. A
node that dies begins again with the tables of its disk.
"""

import copy
from collections import deque

from serai.node.interests import Content, read_interest
from serai.node.mqtt.access import Access
from serai.node.mqtt.clients import Clients
from serai.node.mqtt.delivery import Delivery
from serai.node.mqtt.packets import Connect
from serai.node.mqtt.session import Session
from serai.node.mqtt.settings import MqttSettings
from serai.node.words import Effects, KnownSession, Queue, Queued

INF = float("inf")
NAMES = ("message", "interest", "session", "outbox", "retained", "inbound", "connected")


def apply(tables, rows):
    for name, values in rows:
        if name == "put":
            table, key, value = values
            tables[table].pop(key, None) if value is None else tables[table].__setitem__(key, value)
        elif name == "inbound":
            tables["inbound"][values[:2]] = values[2:]
        elif name == "inbound.forget":
            tables["inbound"].pop(values, None)
        elif name == "inbound.forget_all":
            for key in [key for key in tables["inbound"] if key[0] == values[0]]:
                del tables["inbound"][key]
        elif name == "session.will":
            if values[1] in tables["session"]:
                tables["session"][values[1]] = tables["session"][values[1]]._replace(will=values[0])
        else:
            raise AssertionError(name)


class PlainNode:
    def __init__(self, tables=None, now_s=0.0):
        self.tables = copy.deepcopy(tables) if tables else {name: {} for name in NAMES}
        self.room = INF
        self.turn = 0
        for client, lifetime_s in self.tables["connected"].items():  # when the last run ended
            known = self.tables["session"][client]
            self.tables["session"][client] = known._replace(expires_s=now_s + lifetime_s)
        self.tables["connected"].clear()

    def put(self, *changes, outcome="", words=()):
        rows = tuple(("put", change) for change in changes)
        apply(self.tables, rows)
        return Effects(rows, tuple(words), outcome)

    def number(self, table):
        return max((int(key) for key in self.tables[table]), default=0) + 1

    # -- sessions

    def session_opened(self, client, now_s, *, clean, version, lifetime_s, will):
        known = self.tables["session"].get(client)
        resumed = known is not None and not clean and known.expires_s > now_s
        gone = Effects() if resumed or known is None else self.forget(client)
        return gone + self.put(
            ("session", client, KnownSession(client, version, INF, will)),
            ("connected", client, lifetime_s),
            outcome="resumed" if resumed else "new",
        )

    def session_closed(self, client, now_s, lifetime_s):
        if not lifetime_s:
            return self.forget(client)
        known = self.tables["session"][client]
        known = known._replace(expires_s=now_s + lifetime_s)
        return self.put(("session", client, known), ("connected", client, None))

    def forget(self, client):
        held = [("interest", id, None) for id, one in self.tables["interest"].items() if one.session == client]
        queued = [("outbox", key, None) for key in self.tables["outbox"] if key[0] == client]
        return self.put(("session", client, None), ("connected", client, None), *held, *queued)

    def sessions(self):
        return list(self.tables["session"].values())

    def subscriptions(self, session):
        return [one for one in self.tables["interest"].values() if one.session == session]

    # -- messages

    def published(self, client, message, lifetime_s, now_s):
        if self.room <= 0:
            return Effects(outcome="full")
        self.room -= 1
        id = self.number("message")
        changes = [("message", id, (message, now_s + lifetime_s))]
        if message.retain:
            changes.append(("retained", message.topic, id if message.payload else None))
        content, sessions, groups = Content(message.topic, message.payload), {}, {}
        for one in self.tables["interest"].values():
            if (one.options & 4 and one.session == client) or not read_interest(one.interest).matches(content):
                continue
            if one.share:
                groups.setdefault((one.share, one.interest), []).append(one)
            else:
                sessions.setdefault(one.session, []).append(one)
        for members in groups.values():
            self.turn += 1
            one = members[self.turn % len(members)]
            sessions.setdefault(one.session, []).append(one)
        for session, held in sessions.items():
            qos = min(message.qos, max(one.options & 3 for one in held))
            retain = message.retain and any(one.options & 8 for one in held)
            changes.append(("outbox", (session, id), Queue(id, qos, int(retain), 0, 0)))
        return self.put(*changes, outcome="stored", words=[Queued(session) for session in sessions])

    def subscribed(self, wanted, now_s):
        old = [id for id, one in self.tables["interest"].items() if (one.session, one.filter) == wanted[1:3]]
        id = old[0] if old else self.number("interest")
        changes = [("interest", id, wanted._replace(id=id))]
        handling = wanted.options >> 4
        if not wanted.share and (handling == 0 or (handling == 1 and not old)):
            for topic, bundle in self.tables["retained"].items():
                message, _ = self.tables["message"][bundle]
                if read_interest(wanted.interest).matches(Content(topic, message.payload)):
                    qos = min(message.qos, wanted.options & 3)
                    changes.append(("outbox", (wanted.session, bundle), Queue(bundle, qos, 1, 0, 0)))
        return self.put(*changes, words=[Queued(wanted.session)])

    def unsubscribed(self, client, filter, now_s):
        old = [id for id, one in self.tables["interest"].items() if (one.session, one.filter) == (client, filter)]
        return self.put(*(("interest", id, None) for id in old), outcome="" if old else "none")

    def outbox(self, session):
        return [queued for (of, _), queued in self.tables["outbox"].items() if of == session]

    def outbox_sent(self, session, bundle, packet, state):
        queued = self.tables["outbox"][session, bundle]
        return self.put(("outbox", (session, bundle), queued._replace(packet=packet, state=state)))

    def outbox_done(self, session, bundle):
        return self.put(("outbox", (session, bundle), None))

    def load(self, bundle):
        found = self.tables["message"].get(bundle)
        return Delivery(*found) if found else None


class Disk:
    """A node, its disk, and its clients; `say` is what to do with a word."""

    def __init__(self, say, settings=None):
        self.say, self.settings = say, settings or MqttSettings()
        self.tables = {name: {} for name in NAMES}
        self.start(0.0)

    def start(self, now_s):
        """Begin, or begin again with what is on disk."""
        self.waiting = deque()
        self.node = PlainNode(self.tables, now_s)
        self.clients = Clients(self.node, self.settings, lambda bundle: self.node.load(bundle))
        inbound = [(*key, *value) for key, value in self.tables["inbound"].items()]
        self.clients.restore(inbound, now_s)

    def count(self, table):
        return len(self.tables[table])

    def messages(self):
        return [message for message, _ in self.tables["message"].values()]

    def close(self):
        pass

    def perform(self, effects):
        self.waiting.append(effects)

    def commit(self, most=1 << 30):
        """Write down so many of the effects that wait, and say their words."""
        while self.waiting and most:
            effects, most = self.waiting.popleft(), most - 1
            apply(self.tables, effects.rows)
            for word in effects.words:
                self.say(word)


class Bench:
    """Clients as lists of packets: `hear[connection]` is what each was told."""

    def __init__(self, **settings):
        self.hear, self.closed, self.sessions, self.now_s = {}, {}, {}, 0.0
        self.disk = Disk(self.word, MqttSettings(**settings))

    def word(self, word):
        if isinstance(word, Queued):
            client = self.disk.clients.by_name.get(word.session)
            if client and client.session:
                self.disk.perform(client.session.outgoing.pump(self.now_s))
        elif hasattr(word, "packet"):
            self.hear[word.connection].append(word.packet)
        else:
            self.closed[word.connection] = word.why

    def connect(self, name="c", *, access=None, **fields):
        """The number of a new connection."""
        number = len(self.hear) + 1
        session = Session(number, self.disk.clients, Connect(name, **fields), access or Access())
        self.hear[number], self.sessions[number] = [], session
        self.disk.perform(session.begin(self.now_s, f"auto-{number}"))
        self.disk.commit()
        return number

    def send(self, number, *packets):
        """Send packets and take what is answered."""
        for packet in packets:
            self.disk.perform(self.sessions[number].receive(packet, self.now_s))
            self.disk.commit()
        return self.take(number)

    def take(self, number):
        heard, self.hear[number] = self.hear[number], []
        return heard

    def cut(self, number):
        self.disk.perform(self.sessions[number].end(self.now_s))
        self.disk.commit()

    def tick(self, now_s):
        self.now_s = now_s
        self.disk.perform(self.disk.clients.tick(now_s))
        self.disk.commit()
