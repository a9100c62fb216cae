"""Protocols of the user's that a test has adopted are known to its process: the next test must not see them."""

from collections.abc import Iterator

import pytest

from serai.kinds import CATALOGUE


@pytest.fixture(autouse=True)
def forget_adopted() -> Iterator[None]:
    yield
    for name in [name for name, protocol in CATALOGUE.protocols.items() if protocol.own]:
        kind = CATALOGUE._of_protocol.pop(name)
        del CATALOGUE.protocols[name], kind.PROTOCOLS[name]
