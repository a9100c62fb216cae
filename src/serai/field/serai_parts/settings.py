"""The settings of SERAI, and the same as its kernels read them."""

import math
from typing import ClassVar, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict
from pydantic import Field as setting

from serai.core.units import Seconds
from serai.field.engine.state import BITS

COST_UNITS = 2000  # costs of routes are whole numbers of so many parts of a hop, so that sums are exact
PRICES = 16  # a price is sent as 0 .. 15 ...
PRICE_BASE = 1.35  # ... and means this number to that power
RING = 16  # route costs that a sensor remembers


class Settings(BaseModel):
    """The dial between delay and lifetime (`t_0`), and a name for every number and each rule that can be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    silent_while_pausing: ClassVar[bool] = False
    """A subscriber is heard while it pauses, too: no setting, as the pause belongs to the path that it announces."""

    acknowledges: ClassVar[bool] = True
    """Events are sent again if they are lost (`radio.loss`)."""

    name: Literal["serai"] = "serai"
    t_0_s: Seconds = setting(
        432_000.0,
        gt=0,
        le=1e12,
        alias="t_0",
        description="The dial between delay and lifetime: how long a battery is to last in a community of 40 sensors"
        " with 10 subscribers. A sensor that spends faster raises its price.",
    )
    kappa: float = setting(20.0, ge=0, le=1e6, description="Energy price: 1 + kappa r^x; 0: energy has no price.")
    x: float = setting(
        6.0, ge=0.1, le=100, description="Energy price: 1 + kappa r^x, r being how fast energy is spent."
    )
    price_interval: int = setting(600, ge=1, le=1_000_000, description="Seconds between two announcements of prices.")
    lam_s: Seconds = setting(
        2.0,
        ge=0,
        le=1e6,
        alias="lam",
        description="The delay that one weighted hop is worth when deciding whether to wait; 0: never wait.",
    )
    xi: float = setting(
        0.6, ge=0, le=1000, description="Patience for exposed copies, as a fraction of that for others."
    )
    lamt_s: Seconds = setting(
        10.0, ge=0.001, le=1e9, alias="lamt", description="The delay that one hop is worth inside routes."
    )
    walkers: bool = setting(True, description="Whether a passing subscriber may take a copy along to another's path.")
    mu_w: float = setting(2.0, ge=0, le=1e6, description="Hops by which a walker must be better than the direct route.")
    offers: bool = setting(True, description="Whether an exposed copy is offered before it is sent to a subscriber.")
    carriers: int = setting(1, ge=0, le=1_000_000, description="Subscribers that carry an event away from its home.")
    deposits: int = setting(4, ge=0, le=64, description="Communities in which a carrier leaves an event.")
    phi: float = setting(
        0.5,
        ge=0,
        le=1e6,
        description="When to carry: if a community waits longer than phi times the shortest wait that is known.",
    )
    phi_d: float = setting(
        0.1, ge=0, le=1e6, description="Where to deposit: where phi_d times the wait is at most the wait at home."
    )
    pull_hops: int = setting(5, ge=0, le=1_000_000, description="How many hops away a carrier pulls events from.")
    pull_at_birth: bool = setting(True, description="Whether a new event is sent to a carrier that is elsewhere.")
    map_at_birth: bool = setting(True, description="Whether a new event takes its want map along for a carrier.")
    multicast: bool = setting(True, description="Whether a new copy for several subscribers goes along one tree.")
    clear_interval: int = setting(
        5,
        ge=1,
        le=1_000_000,
        description="Seconds between two searches for copies that are too old or have no subscriber left.",
    )


class Rules(NamedTuple):
    """The settings as the kernels read them; costs in whole `COST_UNITS`."""

    subscribers: int
    words: int  # of bits for a set of subscribers
    in_reach: int  # communities around a subscriber, at most
    budget_bits: int  # of a subscriber, in a second
    t_0: float
    price_interval: int
    lam: float
    xi: float
    per_second: int  # cost of a second inside routes
    walkers: bool
    margin: int  # cost
    offers: bool
    carriers: int
    deposits: int
    phi: float
    phi_d: float
    pull_hops: int
    pull_at_birth: bool
    map_at_birth: bool
    multicast: bool
    clear_interval: int


def rules_of(settings: Settings, subscribers: int, in_reach: int, rate: int, event_bits: float) -> Rules:
    """The settings as the kernels read them."""
    return Rules(
        subscribers=subscribers,
        words=max(-(-subscribers // BITS), 1),
        in_reach=in_reach,
        budget_bits=round(rate * event_bits),
        t_0=settings.t_0_s,
        price_interval=settings.price_interval,
        lam=settings.lam_s,
        xi=settings.xi,
        per_second=round(COST_UNITS / settings.lamt_s),
        walkers=settings.walkers,
        margin=round(COST_UNITS * settings.mu_w),
        offers=settings.offers,
        carriers=settings.carriers,
        deposits=settings.deposits,
        phi=settings.phi,
        phi_d=settings.phi_d,
        pull_hops=settings.pull_hops,
        pull_at_birth=settings.pull_at_birth,
        map_at_birth=settings.map_at_birth,
        multicast=settings.multicast,
        clear_interval=settings.clear_interval,
    )


def price_of(step: int) -> int:
    """The price that is sent as 0 .. 15, in `COST_UNITS` of half a hop: a link costs the sum of both ends' prices."""
    return round(COST_UNITS / 2 * PRICE_BASE**step)


def price_bounds(settings: Settings) -> list[float]:
    """From which r on the price is rounded to 1, 2, .. 15: where 1 + kappa r^x lies half-way between two powers."""
    if settings.kappa == 0:
        return [float("inf")] * (PRICES - 1)
    halfway = [PRICE_BASE ** (step - 0.5) for step in range(1, PRICES)]
    return [math.exp(min(math.log((price - 1) / settings.kappa) / settings.x, 700.0)) for price in halfway]
