"""Ports that nobody listens on."""

import socket

import pytest


@pytest.fixture
def free_ports():
    """Ask for so many: `free_ports(2)`."""

    def some(count):
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        ports = [one.getsockname()[1] for one in held]
        for one in held:
            one.close()
        return ports

    return some
