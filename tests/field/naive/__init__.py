"""The three field protocols, the obvious way: one object per thing, one loop per sentence of docs/field/rules.md.

Nothing here is shared with the compiled kernels but the fixed random order and the cells under a straight
line, so that two readings of the same page meet in tests/*/test_twins.py.
"""

from serai.field.world import World
from serai.scenario.section import Scenario
from tests.field.naive.ced import Ced
from tests.field.naive.cet import Cet
from tests.field.naive.dg import Dg
from tests.field.naive.field import Network
from tests.field.naive.parts import Records

PROTOCOLS: dict[str, type[Network]] = {"ced": Ced, "cet": Cet, "cet-plus": Cet, "dg": Dg}


def play(world: World, scenario: Scenario, key: int, until_death: bool = False) -> Records:
    """Everything that happens in the world under the scenario's protocol."""
    return PROTOCOLS[scenario.protocol.name](world, scenario, key).run(until_death)
