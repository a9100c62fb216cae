"""The protocols of a key-based overlay: a protocol added is one line here and one file beside it."""

from serai.overlay import pub2sub, tinymq
from serai.overlay.engine.run import simulate
from serai.scenario.protocol import Protocol, registry

PROTOCOLS = registry(
    Protocol("tinymq", "key-based overlay, shared trees", tinymq.PAPER, tinymq.Settings, simulate, spelling="TinyMQ"),
    Protocol(
        "pub2sub", "key-based overlay, spanning trees", pub2sub.PAPER, pub2sub.Settings, simulate, spelling="PUB-2-SUB+"
    ),
)
