"""What every node of SERAI knows from the start: the rules' numbers ("Defaults"), and who hears whom."""

from dataclasses import dataclass

from tests.field.naive.serai.legs import Reach

DAY_S = 86_400


@dataclass(frozen=True)
class Dials:
    """The letters of the text."""

    lam: float = 2.0  # s/hop: delay worth one weighted hop, when deciding to wait
    lamt: float = 10.0  # s/hop: delay worth one hop, inside routes
    kappa: float = 20.0
    x: float = 6.0
    t0_days: float = 11.0
    xi: float = 0.6  # patience for exposed copies
    mu_w: float = 2.0  # hops: margin for walkers
    carriers: int = 1  # K, per home copy
    deposits: int = 4  # D, per carried event
    hc: int = 5  # hops: reach of carrier pulls
    phi: float = 0.5  # when to carry
    phi_d: float = 0.1  # where to deposit
    price_s: int = 600  # price interval


@dataclass(frozen=True)
class Manual:
    """The same for all nodes."""

    dials: Dials
    reach: Reach
    subscribers: int
    event_bits: int
    lifetime_s: float
