"""serai: publish/subscribe for rarely connected sensor networks, simulated and measured.

    scenario = serai.load_scenario("ced")
    run = serai.simulate(scenario, seed=1)
    print(serai.measure(run).delivery_ratio)

The names below are the public ones. They are loaded when first used, so that `import serai` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serai.comparison import Comparison as Comparison
    from serai.comparison import compare as compare
    from serai.core.errors import BadInput as BadInput
    from serai.core.errors import BadScenario as BadScenario
    from serai.core.errors import BadSubscription as BadSubscription
    from serai.core.errors import SeraiError as SeraiError
    from serai.field.log import FieldRun as FieldRun
    from serai.field.metrics import FieldMetrics as FieldMetrics
    from serai.kinds import PROTOCOLS as PROTOCOLS
    from serai.lab import delay_cdf as delay_cdf
    from serai.lab import load_scenario as load_scenario
    from serai.lab import measure as measure
    from serai.lab import read_run as read_run
    from serai.lab import simulate as simulate
    from serai.lab import write_run as write_run
    from serai.log.metrics import Metrics as Metrics
    from serai.log.run import Run as Run
    from serai.opportunistic.log import OpportunisticRun as OpportunisticRun
    from serai.opportunistic.metrics import OpportunisticMetrics as OpportunisticMetrics
    from serai.overlay.log import OverlayRun as OverlayRun
    from serai.overlay.metrics import OverlayMetrics as OverlayMetrics
    from serai.planning.search import plan as plan
    from serai.scenario.section import Scenario as Scenario
    from serai.sweeping.results import Sweep as Sweep
    from serai.sweeping.run import sweep as sweep

__version__ = "0.1.0"

_HOME_OF = {
    "BadInput": "core.errors",
    "BadScenario": "core.errors",
    "BadSubscription": "core.errors",
    "SeraiError": "core.errors",
    "FieldMetrics": "field.metrics",
    "FieldRun": "field.log",
    "Metrics": "log.metrics",
    "Run": "log.run",
    "OpportunisticMetrics": "opportunistic.metrics",
    "OpportunisticRun": "opportunistic.log",
    "OverlayMetrics": "overlay.metrics",
    "OverlayRun": "overlay.log",
    "PROTOCOLS": "kinds",
    "Comparison": "comparison",
    "compare": "comparison",
    "delay_cdf": "lab",
    "load_scenario": "lab",
    "measure": "lab",
    "read_run": "lab",
    "simulate": "lab",
    "write_run": "lab",
    "plan": "planning.search",
    "Scenario": "scenario.section",
    "Sweep": "sweeping.results",
    "sweep": "sweeping.run",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__version__", *_HOME_OF]
