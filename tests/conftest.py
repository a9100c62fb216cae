"""How hard Hypothesis looks: quickly by default, at ten times as much with SERAI_THOROUGH=1."""

import os

from hypothesis import HealthCheck, settings

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT") == "1"  # kernels are then slow
QUICK_EXAMPLES = 20 if UNCOMPILED else 100

settings.register_profile(
    "quick", max_examples=QUICK_EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=10 * QUICK_EXAMPLES)
settings.load_profile("thorough" if os.environ.get("SERAI_THOROUGH") == "1" else "quick")
