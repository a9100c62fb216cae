"""The Python interface of a node, against a real server."""

import asyncio

import pytest

from serai.core.errors import BadInput, CannotRun
from serai.node.client import Node
from serai.node.mqtt.access import User, hash_password
from tests.node.mqtt.served import served, until


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 20))


async def some(messages, count):
    found = []
    async for message in messages:
        found.append(message)
        if len(found) == count:
            break
    await messages.aclose()
    return found


def test_publish_and_subscribe():
    async def talk(node):
        async with Node(port=node.port) as one, Node(port=node.port) as other:
            hot = asyncio.create_task(some(other.messages("room/+", where="t > 20", qos=2), 2))
            every = asyncio.create_task(some(other.messages("#", qos=1), 4))
            while node.disk.count("interest") < 2:
                await asyncio.sleep(0.01)
            await one.publish("room/1", {"t": 15}, qos=0)
            await one.publish("room/1", {"t": 25}, qos=1, lifetime_s=100, properties=(("a", "b"),))
            await one.publish("room/2", {"t": 35}, qos=2)
            await one.publish("hall", "text")
            return await hot, await every

    with served() as node:
        hot, every = run(talk(node))
        assert [(one.topic, one.json()) for one in hot] == [("room/1", {"t": 25}), ("room/2", {"t": 35})]
        assert hot[0].properties == (("a", "b"),)
        assert 90 <= hot[0].expires_in_s <= 100
        assert [one.payload for one in every] == [b'{"t": 15}', b'{"t": 25}', b'{"t": 35}', b"text"]
        until(lambda: not node.disk.count("outbox"))


def test_many_at_once():
    async def talk(node):
        async with Node(port=node.port) as one:
            await asyncio.gather(*(one.publish("t", b"%d" % number, qos=2) for number in range(100)))

    with served() as node:
        run(talk(node))
        assert sorted(map(int, node.payloads())) == list(range(100))


def test_what_was_not_taken_comes_again():
    async def first(node, most):
        async with Node(port=node.port, name="n", session_s=100) as one:
            messages = one.messages("t")
            return [(await anext(messages)).payload for _ in range(most)]  # the last one is not taken

    async def talk(node):
        begun = asyncio.create_task(first(node, 3))
        while not node.disk.count("interest"):
            await asyncio.sleep(0.01)
        async with Node(port=node.port) as one:
            for number in range(5):
                await one.publish("t", b"%d" % number)
        return await begun, await first(node, 3)

    with served() as node:
        assert run(talk(node)) == ([b"0", b"1", b"2"], [b"2", b"3", b"4"])


def test_what_cannot_be_done():
    users = {"anna": User(hash_password(b"right", b"salt"))}
    with served(users=users, anonymous=False) as node:
        for options in ({}, {"user": "anna", "password": b"wrong"}):
            with pytest.raises(BadInput, match="refuses"):
                run(Node(port=node.port, **options).__aenter__())

        async def talk():
            async with Node(port=node.port, user="anna", password=b"right") as one:
                with pytest.raises(BadInput, match="may not stand in a topic"):
                    await one.publish("a/+", b"")
                with pytest.raises(BadInput, match="expected a number"):
                    await some(one.messages("t", where="a <"), 1)
                node.take(0)
                with pytest.raises(CannotRun, match="the store is full"):
                    await one.publish("t", b"x")
                waiting = asyncio.create_task(some(one.messages("t"), 1))
                await asyncio.sleep(0.1)
                await asyncio.to_thread(node.kill)
                with pytest.raises(CannotRun, match=r"closed|broke"):
                    await waiting
                with pytest.raises(CannotRun):
                    await one.publish("t", b"x")

        run(talk())
    with pytest.raises(CannotRun, match="serai node run"):
        run(Node(port=node.port).__aenter__())
