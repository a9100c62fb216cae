"""What every node of SERAI knows from the start: the rules' numbers ("Settings"), and who hears whom."""

from dataclasses import dataclass

from serai.scenario.section import Section
from tests.field.naive.serai.legs import Reach

DAY_S = 86_400


@dataclass(frozen=True)
class Dials:
    """The letters of the text, and which rules are left out."""

    lam: float = 2.0  # s/hop: delay worth one weighted hop, when deciding to wait
    lamt: float = 10.0  # s/hop: delay worth one hop, inside routes
    kappa: float = 20.0
    x: float = 6.0
    t0_s: float = 11.0 * DAY_S
    xi: float = 0.6  # patience for exposed copies
    mu_w: float = 2.0  # hops: margin for walkers
    carriers: int = 1  # K, per home copy
    deposits: int = 4  # D, per carried event
    hc: int = 5  # hops: reach of carrier pulls
    phi: float = 0.5  # when to carry
    phi_d: float = 0.1  # where to deposit
    price_s: int = 600  # price interval
    clear_s: int = 5  # clear interval
    walkers: bool = True
    offers: bool = True
    pull_at_birth: bool = True
    map_at_birth: bool = True
    multicast: bool = True


def dials_of(settings: Section) -> Dials:
    """The settings of a scenario in the letters of the text."""
    letters = {"t0_s": "t_0_s", "lam": "lam_s", "lamt": "lamt_s", "hc": "pull_hops"}
    letters |= {"price_s": "price_interval", "clear_s": "clear_interval"}
    return Dials(**{name: getattr(settings, letters.get(name, name)) for name in Dials.__dataclass_fields__})


@dataclass(frozen=True)
class Manual:
    """The same for all nodes."""

    dials: Dials
    reach: Reach
    subscribers: int
    event_bits: int
    lifetime_s: float
