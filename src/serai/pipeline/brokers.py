"""Connections to MQTT brokers: mqtt://host:1883, mqtts:// for TLS, with user@ and the password in the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from serai.core.errors import CannotRun

if TYPE_CHECKING:
    from paho.mqtt.client import Client

_PASSWORD: Final = "SERAI_MQTT_PASSWORD"


def client_for(address: str, **options: Any) -> Client:
    """A client with the user and the encryption of an address, which is not connected yet."""
    from paho.mqtt.client import Client
    from paho.mqtt.enums import CallbackAPIVersion

    place = urlsplit(address)
    client = Client(CallbackAPIVersion.VERSION2, **options)
    if place.username:
        client.username_pw_set(place.username, place.password or os.environ.get(_PASSWORD))
    if place.scheme == "mqtts":
        client.tls_set()
    return client


def connect(client: Client, address: str) -> None:
    """Connect a client to the broker at an address."""
    place = urlsplit(address)
    try:
        client.connect(place.hostname or "127.0.0.1", place.port or (8883 if place.scheme == "mqtts" else 1883))
    except OSError as error:
        raise CannotRun(f"{address}: cannot be reached ({error}); is the broker running?") from None


@contextmanager
def publisher(address: str, wait_s: float) -> Iterator[Callable[[list[tuple[str, str]]], None]]:
    """A function that publishes messages, topic and payload, and comes back when all are acknowledged."""
    client = client_for(address)
    connect(client, address)
    client.loop_start()

    def publish(messages: list[tuple[str, str]]) -> None:
        for sent in [client.publish(topic, payload, qos=1) for topic, payload in messages]:
            sent.wait_for_publish(wait_s)
            if not sent.is_published():
                raise CannotRun(f"{address}: no acknowledgement within {wait_s:g} s")

    try:
        yield publish
    finally:
        client.disconnect()
        client.loop_stop()
