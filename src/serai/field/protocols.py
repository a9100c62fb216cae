"""The protocols of a field: a protocol added is one line here and one file beside it."""

from serai.field import ced, cet, cet_plus, dg, serai
from serai.scenario.protocol import Protocol, registry

PROTOCOLS = registry(
    Protocol("dg", "direct gathering", dg.PAPER, dg.Settings, dg.simulate, "per-event"),
    Protocol("ced", "community-based event delivery", ced.PAPER, ced.Settings, ced.simulate, "per-reception"),
    Protocol("cet", "community-based event transmitting", cet.PAPER, cet.Settings, cet.simulate, "per-reception"),
    Protocol(
        *("cet-plus", "CET at its best", cet_plus.PAPER, cet_plus.Settings, cet_plus.simulate, "per-reception"),
        spelling="CET++",
    ),
    Protocol(
        *("serai", "carriers, prices and announced paths", serai.PAPER, serai.Settings, serai.simulate),
        "per-reception",
        spelling="SERAI",
    ),
)
