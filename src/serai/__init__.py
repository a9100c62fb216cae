"""serai: publish/subscribe for rarely connected sensor networks, simulated and measured.

    scenario = serai.load_scenario("ced")
    run = serai.simulate(scenario, seed=1)
    print(serai.measure(run).delivery_ratio)

The names below are the public ones. They are loaded when first used, so that `import serai` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from serai.errors import BadInput as BadInput
    from serai.errors import BadScenario as BadScenario
    from serai.errors import BadSubscription as BadSubscription
    from serai.errors import SeraiError as SeraiError
    from serai.log import Run as Run
    from serai.log import read_run as read_run
    from serai.log import write_run as write_run
    from serai.metrics import Metrics as Metrics
    from serai.metrics import measure as measure
    from serai.protocols import PROTOCOLS as PROTOCOLS
    from serai.scenario import Scenario as Scenario
    from serai.scenario import load_scenario as load_scenario
    from serai.simulation import simulate as simulate

__version__ = "0.1.0"

_HOME_OF = {
    "BadInput": "errors",
    "BadScenario": "errors",
    "BadSubscription": "errors",
    "SeraiError": "errors",
    "Run": "log",
    "read_run": "log",
    "write_run": "log",
    "Metrics": "metrics",
    "measure": "metrics",
    "PROTOCOLS": "protocols",
    "Scenario": "scenario",
    "load_scenario": "scenario",
    "simulate": "simulation",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return ["__version__", *_HOME_OF]
