"""How hard the tests look: `make test` at little, `make test-all` (SERAI_THOROUGH=1) at many more worlds and seeds."""

import os

THOROUGH = os.environ.get("SERAI_THOROUGH") == "1"


def within(promised_s: float) -> float:
    """How long something may take by the clock that is promised within so long: other tests may have the cores."""
    return promised_s + (1.0 if THOROUGH else 10.0)
