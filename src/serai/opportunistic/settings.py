"""What every router of opportunistic networks can be set to."""

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic import Field as setting

from serai.core.units import Seconds


class RouterSettings(BaseModel):
    """What every router can be set to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seen: Literal["live", "vector", "bloom"] = setting(
        "vector",
        description="How a node knows what its neighbour has seen: by asking at any moment at no cost (as in The"
        " ONE), by a list of ids, or by a Bloom filter, which are sent when a contact begins and cost bytes and time.",
    )
    order: Literal["random", "oldest", "newest", "smallest", "soonest"] = setting(
        "random",
        description='Which of several bundles goes first when nothing else decides; "soonest": the first to expire.',
    )
    wanted_first: bool = setting(
        False, description="Bundles that the neighbour has subscribed to go before all others, whatever their priority."
    )
    consume: bool = setting(
        False, description="A node that has subscribed to a bundle does not carry it on to others (as in The ONE)."
    )
    skip_late: bool = setting(False, description="A transfer is not begun if its bundle would expire before it ends.")
    announce: Literal["repeat", "change"] = setting(
        "repeat",
        description="A list waits for `repeat`, or is sent at once when the node's own subscriptions change.",
    )
    repeat_s: Seconds = setting(
        60.0, gt=0, alias="repeat", description="In a long contact lists are exchanged again after this time."
    )
    header_bytes: int = setting(32, ge=0, description="Size of a list without its entries.")
    entry_bytes: int = setting(40, ge=0, description="Size of a list's entry: a subscription, or a predictability.")
    id_bytes: int = setting(8, ge=0, description='Size of the id of a bundle in a list of seen ones (seen = "vector").')
    bloom_bits: int = setting(
        10, ge=1, le=64, description='Bits of the Bloom filter for each bundle seen (seen = "bloom").'
    )
