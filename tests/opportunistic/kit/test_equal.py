"""The built-in routers, written with the API as in examples/protocols: the same rows as the compiled ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serai.opportunistic import direct, dpsp, first_contact, flooding, prophet, prophet2, spray
from serai.opportunistic.engine.loop import simulate
from serai.opportunistic.engine.state import Medium, Outcome
from serai.opportunistic.kit.family import ROUTERS
from serai.own.loading import find_own, own_protocol
from tests.conftest import UNCOMPILED
from tests.opportunistic.test_twins import MEDIA, SETTINGS, for_nothing, worlds_from

EXAMPLES = Path(__file__).parents[3] / "examples" / "protocols" / "routers.py"
CLASSES = {
    flooding: "Flooding",
    direct: "Direct",
    spray: "SprayAndWait",
    first_contact: "FirstContact",
    prophet: "Prophet",
    prophet2: "Prophet2",
    dpsp: "Dpsp",
}
OWN = {module.Settings: own_protocol(find_own(EXAMPLES, name, [ROUTERS])) for module, name in CLASSES.items()}
COUNTED = ("payload_bytes", "control_bytes", "wasted_bytes", "lists", "contacts", "transfers", "drops")
COLUMNS = ("delivery_bundle", "delivery_node", "delivery_s", "delivery_hops", "relays", "peak_bytes", "stored_byte_s")


@settings(max_examples=30 if UNCOMPILED else 3 * settings().max_examples, deadline=None)
@given(st.integers(0, 1 << 32), MEDIA, SETTINGS.filter(lambda chosen: not as_the_one(chosen)), st.booleans())
def test_written_in_python_and_compiled_are_the_same(seed: int, medium: Medium, chosen: Any, many: bool) -> None:
    world = worlds_from(seed, 65, 140) if many else worlds_from(seed)
    own = OWN[type(chosen)]
    left_out = {"name", "variant", "at_subscriber"}
    written = own.settings(**chosen.model_dump(mode="json", by_alias=True, exclude=left_out))
    assert_equal(simulate(world, medium, chosen), own.simulate(world, medium, written))


MUTANTS = {
    "PRoPHET without transitivity": (prophet.Settings(transitivity=0.9), "* self.transitivity", "* 0.0"),
    "PRoPHET's aging unit ignored": (prophet.Settings(aging=0.5, aging_unit="3 s"), " / self.aging_unit", ""),
    "spray's split rounded up": (spray.Settings(copies=5), "had // 2 if", "(had + 1) // 2 if"),
    "DPSP without one hop more": (dpsp.Settings(filters=("hop-count",)), "created, hops + 1", "created, hops"),
}


@pytest.mark.parametrize("mutant", list(MUTANTS))
def test_a_wrong_one_is_not_the_same(mutant: str, tmp_path: Path) -> None:
    chosen, right, wrong = MUTANTS[mutant]
    text = EXAMPLES.read_text()
    assert text.count(right) == 1
    (tmp_path / "wrong.py").write_text(text.replace(right, wrong))
    name = CLASSES[next(module for module in CLASSES if module.Settings is type(chosen))]
    own, medium = own_protocol(find_own(tmp_path / "wrong.py", name, [ROUTERS])), Medium(4000.0, 40.0, full_log=True)
    written = own.settings(**chosen.model_dump(mode="json", by_alias=True, exclude={"name", "variant"}))
    for seed in range(200):
        world = worlds_from(seed)
        fast, plain = simulate(world, medium, chosen), own.simulate(world, medium, written)
        if sorted(fast.transfer_log.tolist(), key=_when) != sorted(plain.transfer_log.tolist(), key=_when):
            return
    pytest.fail("200 random worlds show no difference")


def as_the_one(chosen: Any) -> bool:
    """Whether the settings are for comparisons with The ONE, which the examples do without."""
    return for_nothing(chosen) or getattr(chosen, "at_subscriber", "goes-on") == "ends"


def assert_equal(fast: Outcome, plain: Outcome) -> None:
    # Transfers under way at the end are noted in whatever order.
    assert sorted(fast.transfer_log.tolist(), key=_when) == sorted(plain.transfer_log.tolist(), key=_when)
    assert fast.drop_log.tolist() == plain.drop_log.tolist()
    assert sorted(fast.list_log.tolist()) == sorted(plain.list_log.tolist())
    for name in COLUMNS:
        assert np.array_equal(getattr(fast, name), getattr(plain, name)), name
    for name in COUNTED:
        assert getattr(fast, name) == getattr(plain, name), name


def _when(row: tuple[Any, ...]) -> tuple[Any, ...]:
    unfinished = row[6] == 5
    return unfinished, row[1], row[4:6] if unfinished else ()
