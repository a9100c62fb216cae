"""What every field protocol of the user's can be told, besides what its class declares."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic import Field as setting


class OwnSettings(BaseModel):
    """Points that the engine decides, under the names that DG, CED and CET have for them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reach: Literal["touching", "same-cell"] = setting(
        "touching", description="Nodes are in contact if their cells touch, or only if they are in the same cell."
    )
    budget: Literal["subscriber", "link"] = setting(
        "subscriber",
        description="The limit on events per second applies to the subscriber, or (visitors' turns) to each link.",
    )
    zone: Literal["path", "announced", "pruned", "in-range"] = setting(
        "path", description="With communities: which sensors are on a subscriber's way; see CED."
    )
    silent_while_pausing: bool = setting(
        False, description="A pausing subscriber sends no Hello and nothing is sent to it."
    )
