"""What all scenarios share: validated tables, problems between values, the protocol and its settings.

The TOML key is the field's alias, or its name where that has no unit. Whatever can be wrong inside one value
is said by its type; whatever is wrong between values is a constraint violation (`Violation`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

from serai.core.content import Attribute, attribute_problems, parse_template
from serai.core.errors import BadInput, BadSubscription, did_you_mean
from serai.core.units import JoulesPerBit, JoulesPerBitM2, JoulesPerBitM4
from serai.scenario.groups import repeatable
from serai.scenario.protocol import Protocol, Protocols

DEFAULT_PROTOCOL = "ced"
_MOST_ATTRIBUTES = 16


class Violation(NamedTuple):
    """A constraint violation, values that cannot stand together: the keys, the one to point at first, and why."""

    keys: tuple[str, ...]
    problem: str
    offset: int | None = None  # where in the text of the first key, if it is a text
    width: int = 1


class Section(BaseModel):
    """A table of a scenario."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def violations(self) -> Iterator[Violation]:
        """The constraints between values, each of them fine by itself, that are violated."""
        yield from ()

    @model_validator(mode="after")
    def _stands_together(self) -> Self:
        problems = [
            (tuple(violation.keys[0].split(".")), PydanticCustomError("violation", "{problem}", violation._asdict()))
            for violation in self.violations()
        ]
        raise_all(type(self).__name__, problems)
        return self


def raise_all(title: str, problems: Sequence[tuple[tuple[str, ...], PydanticCustomError]]) -> None:
    """Raise the problems, if any, each at its place below the object that is being validated."""
    if problems:
        lines = [InitErrorDetails(type=error, loc=place, input=None) for place, error in problems]
        raise ValidationError.from_exception_data(title, lines)


class AttributeTable(Section):
    """One attribute of events, as written in [events.attributes]."""

    kind: Literal["real", "integer"] = Field("real", description="Values are real numbers, or integers.")
    low: float = Field(description="The least value.")
    high: float = Field(description="The greatest value.")


class _AttributeTables:
    """Marks a field written as one table per attribute."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            _attributes,
            handler.generate_schema(dict[str, AttributeTable]),
            serialization=core_schema.plain_serializer_function_ser_schema(_attribute_tables),
        )


def _attributes(tables: dict[str, AttributeTable]) -> tuple[Attribute, ...]:
    if not 1 <= len(tables) <= _MOST_ATTRIBUTES:
        raise PydanticCustomError("count", f"between 1 and {_MOST_ATTRIBUTES} attributes are possible")
    problems = [
        ((name,), PydanticCustomError("attribute", "{problem}", {"problem": problem}))
        for name, table in tables.items()
        for problem in attribute_problems(name, table.kind, table.low, table.high)
    ]
    raise_all("attributes", problems)
    return tuple(Attribute(name, table.kind, table.low, table.high) for name, table in tables.items())


def _attribute_tables(attributes: Iterable[Attribute]) -> dict[str, dict[str, object]]:
    return {a.name: {"kind": a.kind, "low": a.low, "high": a.high} for a in attributes}


AttributesOfEvents = Annotated[tuple[Attribute, ...], _AttributeTables()]
"""A table of attributes: named numbers with their domains."""


def _columns_and_rows(value: object) -> object:
    pair = tuple(value) if isinstance(value, list | tuple) else (value, value)
    if len(pair) != 2 or any(type(count) is not int for count in pair):
        raise PydanticCustomError("cells", "expected a number such as 15, or columns and rows such as [15, 12]")
    if min(pair) < 1:
        raise PydanticCustomError("cells", "at least one column and one row are needed")
    return pair


Cells = Annotated[
    tuple[int, int],
    BeforeValidator(_columns_and_rows),
    PlainSerializer(lambda cells: cells[0] if cells[0] == cells[1] else list(cells), when_used="json"),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1},
                {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 2, "maxItems": 2},
            ]
        }
    ),
]
"""Columns and rows of a grid, or one number for both."""


def _places(value: object) -> object:
    """Pairs of numbers; None: there are none."""
    if value is None:
        return None
    pairs = [tuple(place) for place in value if isinstance(place, list | tuple)] if isinstance(value, Sequence) else []
    numbers = [number for pair in pairs for number in pair if type(number) in (int, float) and math.isfinite(number)]
    if not isinstance(value, Sequence) or any(len(pair) != 2 for pair in pairs) or len(numbers) != 2 * len(value):
        raise PydanticCustomError("places", "expected places in metres such as [[120, 80], [40, 15.5]]")
    return tuple((float(x), float(y)) for x, y in pairs)


Places = Annotated[tuple[tuple[float, float], ...] | None, BeforeValidator(_places)]
"""Places, x and y in metres each."""


def _path(value: object) -> object:
    return Path(value) if isinstance(value, str) and value else value


FilePath = Annotated[Path | None, BeforeValidator(_path)]
"""A path as text; `Scenario.FILES` names the keys whose relative paths start at the scenario's folder."""


def _texts(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple) and value and all(isinstance(text, str) for text in value):
        return tuple(value)
    raise PydanticCustomError("texts", 'expected a text such as "A1 < 3", or a list of such texts')


SubscriptionTexts = Annotated[
    tuple[str, ...],
    BeforeValidator(_texts),
    PlainSerializer(lambda texts: texts[0] if len(texts) == 1 else list(texts), when_used="json"),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
"""One subscription or a list of them, with a ? for what is drawn."""


def misread(texts: Iterable[str], attributes: Sequence[Attribute] | None) -> Iterator[tuple[int, BadSubscription]]:
    """The texts that cannot be read as subscriptions over the attributes, by their place, and why."""
    for place, text in enumerate(texts):
        try:
            parse_template(text, attributes)
        except BadSubscription as error:
            yield place, error


class RadioCosts(Section):
    """What it costs to send and to receive: the first-order radio model."""

    electronics_j_per_bit: JoulesPerBit = Field(
        50e-9,
        ge=0,
        le=1,
        alias="electronics",
        description="Energy to run the radio, both to send and to receive.",
    )
    free_space_j_per_bit_m2: JoulesPerBitM2 = Field(
        10e-12,
        ge=0,
        le=1,
        alias="free_space",
        description="Energy of the amplifier over a short distance d, times d^2.",
    )
    multipath_j_per_bit_m4: JoulesPerBitM4 = Field(
        0.0013e-12,
        ge=0,
        le=1,
        alias="multipath",
        description="Energy of the amplifier over a long distance d, times d^4.",
    )
    receive_costs: bool = Field(True, description="Whether receiving costs energy.")


class SweepTable(Section):
    """What `serai sweep` varies, unless its options say otherwise. A single run takes no notice."""

    settings: dict[str, Any] = Field(
        default_factory=dict, alias="set", description="Settings and their values: a list, or a range such as 1..11."
    )
    protocols: list[str] = Field(default_factory=list, description="Protocols to compare; if left out, the scenario's.")
    seeds: int | None = Field(None, ge=1, description="Seeds 0 .. seeds-1 are run at every point.")


class PlanTable(Section):
    """What `serai plan` looks for: the cheapest deployment that meets all goals. A single run takes no notice."""

    goal: list[str] = Field(
        default_factory=list, description='What has to be reached: "delivery_ratio >= 95 %", "on_time(1 h) >= 95 %".'
    )
    cost: dict[str, Any] = Field(
        default_factory=dict,
        description="What each one costs: `subscribers = 400`; or the price of each value of a setting.",
    )
    vary: dict[str, Any] = Field(
        default_factory=dict,
        description="What may be chosen: settings with their values, `protocol`, and where `relays` may stand.",
    )
    at_most: int | None = Field(None, ge=1, description="The most runs, over all deployments together.")
    certain: bool = Field(
        False, description="Whether the stated certainty must hold for any distribution of results; takes more runs."
    )


def _dumped(settings: BaseModel) -> dict[str, Any]:
    return settings.model_dump(mode="json", by_alias=True, exclude_none=True)


class AnyProtocol:
    """Marks the field whose type is the `Settings` of the protocol that `name` says, one of a kind of network."""

    def __init__(self, protocols: Protocols) -> None:
        self.protocols = protocols

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices = {name: handler.generate_schema(protocol.settings) for name, protocol in self.protocols.items()}
        union = core_schema.tagged_union_schema(choices, discriminator="name")
        written = core_schema.wrap_serializer_function_ser_schema(
            lambda value, usual: usual(value) if value.name in choices else _dumped(value), schema=union
        )
        return core_schema.no_info_wrap_validator_function(self._adopted, union, serialization=written)

    def _adopted(self, value: Any, usual: Any) -> Any:
        """The settings of a protocol that was adopted after the schema was made, or else as usual."""
        name = value.get("name") if isinstance(value, dict) else getattr(value, "name", None)
        known = self.protocols.get(name) if isinstance(name, str) else None
        if known is None or known.own is None:
            return usual(value)
        return value if isinstance(value, known.settings) else known.settings.model_validate(value, strict=True)


class Scenario(Section):
    """One whole experiment, but for the seed. Each kind of network has its own tables."""

    network: ClassVar[str]
    PROTOCOLS: ClassVar[Protocols]
    """The protocols that run on this kind of network."""
    FILES: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Keys that name files; a relative path there starts at the folder of the scenario."""

    title: str = Field("", description="One line on what this scenario is.")
    name: str = Field("scenario", description="Its name in results; if left out, the name of the file.")
    sweep: SweepTable | None = Field(None, description="What `serai sweep` varies.")
    plan: PlanTable | None = Field(None, description="What `serai plan` looks for.")
    if TYPE_CHECKING:  # each kind declares it last; the static type cannot follow the registry
        protocol: Any

    def with_protocol(self, name: str) -> Self:
        """The same scenario under another protocol, which gets the settings that `switch_protocol` keeps."""
        if name not in self.PROTOCOLS:
            meant = did_you_mean(name, self.PROTOCOLS)
            raise BadInput(f'unknown protocol "{name}" for this kind of network ({self.network}); {meant}')
        return self.model_copy(update={"protocol": switch_protocol(self.protocol, self.PROTOCOLS[name])})

    def in_one_line(self) -> str:
        """What stands where, who moves, for how long."""
        raise NotImplementedError

    def as_written(self) -> dict[str, Any]:
        """The scenario as TOML data, with texts for quantities."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def switch_protocol(settings: Any, protocol: Protocol) -> BaseModel:
    """The settings of another protocol; what differs from its default in `settings` is kept if it has it too.

    A value that only repeats its default says nothing about a protocol whose default may be another one.
    """
    new = protocol.settings
    if isinstance(settings, new):
        return settings
    changed = settings.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    kept: dict[str, object] = {"name": protocol.name}
    for key, value in changed.items():
        try:
            new.model_validate(kept | {key: value}, strict=True)
        except ValidationError:
            continue  # no such setting there, or no such value
        kept[key] = value
    return new.model_validate(kept, strict=True)


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The TOML keys of a table, with the fields that they fill."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def known_keys(kind: type[Scenario], protocols: Iterable[str] | None = None) -> dict[str, FieldInfo]:
    """Every key of such a scenario under these protocols (or all it can have), dotted: `title`, `field.width` ..."""
    names = kind.PROTOCOLS if protocols is None else protocols
    known = keys_of(kind) | _keys_below(kind, "")
    for name in names:
        known |= {f"protocol.{key}": field for key, field in keys_of(kind.PROTOCOLS[name].settings).items()}
    return known


def _keys_below(model: type[BaseModel], prefix: str) -> dict[str, FieldInfo]:
    """The keys of the tables that stand in a table."""
    known: dict[str, FieldInfo] = {}
    for key, field in keys_of(model).items():
        section = section_in(field)
        if section is not None and (prefix or key not in ("sweep", "plan")):
            known |= {f"{prefix}{key}.{inner}": what for inner, what in keys_of(section).items()}
            known |= _keys_below(section, f"{prefix}{key}.")
    return known


def section_in(field: FieldInfo) -> type[Section] | None:
    """The section that a field holds, or may hold; None if it holds something else."""
    choices = [field.annotation, *get_args(field.annotation), repeatable(field)]
    return next((one for one in choices if isinstance(one, type) and issubclass(one, Section)), None)
