"""The keys of a scenario that name files of events and subscriptions; the same in every kind of network."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

from serai.core.units import Seconds
from serai.scenario.section import FilePath, Section, Violation


def _instant(value: object) -> object:
    """A date, as TOML or a text has it, in seconds since 1970; without a zone it is in UTC."""
    if isinstance(value, float):
        return value
    try:
        date = datetime.fromisoformat(str(value))
    except ValueError:
        problem = 'expected a date such as "2026-05-01" or "2026-05-01 06:00"'
        raise PydanticCustomError("date", "{problem}", {"problem": problem}) from None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


Instant = Annotated[
    float,
    BeforeValidator(_instant),
    PlainSerializer(lambda time_s: datetime.fromtimestamp(time_s, UTC).isoformat(), when_used="json"),
    WithJsonSchema({"type": "string", "examples": ["2026-05-01 06:00"]}),
]
"""A date, in seconds since 1970."""


class RecordedEvents(Section):
    """Events may come from a file."""

    DRAWN: ClassVar[tuple[str, ...]] = ("interval", "quiet", "attributes")
    """What is only said of events that are drawn."""

    file: FilePath = Field(
        None,
        description="What really happened, instead of drawing it: CSV or Parquet with columns time, sensor, and one"
        " for each attribute. A relative path starts at the folder of this scenario.",
    )
    every_s: Seconds | None = Field(
        None, gt=0, alias="every", description="From the file, for each sensor: at most one reading in this time."
    )
    on_change: dict[str, float] | None = Field(
        None,
        description="From the file, for each sensor: only readings in which one of these attributes has changed by"
        " this much since the last: {temperature = 0.5}.",
    )

    def violations(self) -> Iterator[Violation]:
        """Thinning without a file, and what only draws events with one."""
        if self.file is None:
            for key, value in (("every", self.every_s), ("on_change", self.on_change)):
                if value is not None:
                    yield Violation((key, "file"), 'only used with a file of events; write file = "readings.csv"')
            return
        for key in self.DRAWN:
            if {key, f"{key}_s"} & self.model_fields_set:
                yield Violation((key, "file"), "leave it out: the file says what happens")
        for name, least in (self.on_change or {}).items():
            if least < 0:
                yield Violation((f"on_change.{name}", "file"), f"a change is at least 0, not {least:g}")


ASKED_FILE = Field(
    None,
    description="Who asks for what, instead of `where`: CSV or Parquet with columns subscriber, where, and perhaps from"
    " and until.",
)
