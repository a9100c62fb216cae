"""The built-in routers, written with the API as in examples/protocols: the same rows as the compiled ones."""

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from serai.opportunistic import direct, dpsp, first_contact, flooding, prophet, spray
from serai.opportunistic.engine.loop import simulate
from serai.opportunistic.engine.state import Medium, Outcome
from serai.opportunistic.kit.loading import load_own
from tests.conftest import UNCOMPILED
from tests.opportunistic.test_twins import MEDIA, SETTINGS, worlds_from

ROUTERS = Path(__file__).parents[3] / "examples" / "protocols" / "routers.py"
CLASSES = {
    flooding: "Flooding",
    direct: "Direct",
    spray: "SprayAndWait",
    first_contact: "FirstContact",
    prophet: "Prophet",
    dpsp: "Dpsp",
}
OWN = {module.Settings: load_own(ROUTERS, name) for module, name in CLASSES.items()}
COUNTED = ("payload_bytes", "control_bytes", "wasted_bytes", "lists", "contacts", "transfers", "drops")
COLUMNS = ("delivery_bundle", "delivery_node", "delivery_s", "delivery_hops", "relays", "peak_bytes", "stored_byte_s")


@settings(max_examples=30 if UNCOMPILED else 300, deadline=None)
@given(st.integers(0, 1 << 32), MEDIA, SETTINGS, st.booleans())
def test_written_in_python_and_compiled_are_the_same(seed: int, medium: Medium, chosen: Any, many: bool) -> None:
    world = worlds_from(seed, 65, 140) if many else worlds_from(seed)
    own = OWN[type(chosen)]
    written = own.settings(**chosen.model_dump(mode="json", by_alias=True, exclude={"name"}))
    assert_equal(simulate(world, medium, chosen), own.simulate(world, medium, written))


def assert_equal(fast: Outcome, plain: Outcome) -> None:
    # Transfers under way at the end are noted in whatever order.
    assert sorted(fast.transfer_log.tolist(), key=_when) == sorted(plain.transfer_log.tolist(), key=_when)
    assert fast.drop_log.tolist() == plain.drop_log.tolist()
    for name in COLUMNS:
        assert np.array_equal(getattr(fast, name), getattr(plain, name)), name
    for name in COUNTED:
        assert getattr(fast, name) == getattr(plain, name), name


def _when(row: tuple[Any, ...]) -> tuple[Any, ...]:
    unfinished = row[6] == 5
    return unfinished, row[1], row[4:6] if unfinished else ()
