"""CET++: CET at its best, to compare with; not of the paper, but of what CED and CET leave open, and pruned floods.

Only what matches is sent, events whose subscriber has left wait for it, who left an event behind is remembered, and
floods are as cheap as those of SERAI. What that is worth stands in docs/field/protocols.md.
"""

from typing import Literal

from pydantic import Field as setting

from serai.field import cet

PAPER = "variant of CET (Journal of Software 2010)"


class Settings(cet.Settings):
    """The settings of CET, with other defaults."""

    name: Literal["cet-plus"] = "cet-plus"  # type: ignore[assignment]
    match: Literal["subscriber", "sensor"] = setting(
        "sensor", description="Events are matched by the subscriber on receipt, or before they are sent."
    )
    stranded: Literal["deleted", "kept"] = setting(
        "kept", description="Relayed copies whose subscriber has left are deleted, or kept until it comes back."
    )
    floods: Literal["whole", "pruned"] = setting(
        "pruned",
        description="In a flood every sensor transmits; or only those that reach new ones do, and layers are worked"
        " out from a map.",
    )
    return_memory: Literal["empty", "returner"] = setting(
        "returner", description="Whom a returned copy remembers as served: nobody, or the subscriber that left it here."
    )
    silent_while_pausing: bool = setting(
        False, description="A pausing subscriber is silent: nothing is sent towards it (4.1 a: 'while moving')."
    )


simulate = cet.simulate
