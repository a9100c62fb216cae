"""The built-in routers, written with the API as in examples/protocols: the same rows as the compiled ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.opportunistic import direct, dpsp, first_contact, flooding, prophet, spray
from serai.opportunistic.engine.loop import simulate
from serai.opportunistic.engine.state import Medium, Outcome
from serai.opportunistic.kit.loading import load_own
from tests.conftest import UNCOMPILED
from tests.opportunistic.test_twins import FOR_ROUTERS, SETTINGS, for_nothing, worlds_from

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
@given(st.integers(0, 1 << 32), FOR_ROUTERS, SETTINGS.filter(lambda chosen: not as_the_one(chosen)), st.booleans())
def test_written_in_python_and_compiled_are_the_same(seed: int, medium: Medium, chosen: Any, many: bool) -> None:
    world = worlds_from(seed, 65, 140) if many else worlds_from(seed)
    own = OWN[type(chosen)]
    left_out = {"name", "variant", "at_subscriber"}
    written = own.settings(**chosen.model_dump(mode="json", by_alias=True, exclude=left_out))
    assert_equal(simulate(world, medium, chosen), own.simulate(world, medium, written))


def as_the_one(chosen: Any) -> bool:
    """Whether the settings are for comparisons with The ONE, which the examples do without."""
    return for_nothing(chosen) or getattr(chosen, "at_subscriber", "goes-on") == "ends"


@pytest.mark.parametrize("how", [{"when_full": 3}, {"lifetime_unit_s": 60.0, "step_s": 1.0}])
def test_what_is_for_comparisons_with_the_one_is_refused(how: dict[str, Any]) -> None:
    own = OWN[flooding.Settings]
    with pytest.raises(BadInput, match="not for protocols of one's own"):
        own.simulate(worlds_from(0), Medium(400.0, 40.0, **how), own.settings())


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
