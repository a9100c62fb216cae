"""The routers of opportunistic networks: a router added is one line here and one file beside it."""

from serai.opportunistic import direct, dpsp, flooding, prophet, spray
from serai.opportunistic.engine.loop import simulate
from serai.scenario.protocol import Protocol, registry

PROTOCOLS = registry(
    Protocol("dpsp", "publish/subscribe for bundle routers", dpsp.PAPER, dpsp.Settings, simulate),
    Protocol("flooding", "epidemic routing", flooding.PAPER, flooding.Settings, simulate),
    Protocol("direct", "direct delivery", direct.PAPER, direct.Settings, simulate),
    Protocol("spray", "spray and wait", spray.PAPER, spray.Settings, simulate),
    Protocol("prophet", "PRoPHET", prophet.PAPER, prophet.Settings, simulate),
)
