"""A table of a scenario that may be repeated: one `[table]`, or `[[table]]` again and again, each with its name.

A group is addressed by its name: `subscribers.vehicles.count` is the key `count` of the group called "vehicles".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

KeyPath = tuple[str | int, ...]


class Repeatable:
    """Marks a field that holds one section, or a tuple of two or more of them."""

    def __init__(self, section: type[Any]) -> None:
        self.section = section

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        one = handler.generate_schema(self.section)
        several = core_schema.list_schema(one, min_length=1)
        written = core_schema.wrap_serializer_function_ser_schema(
            lambda value, usual: usual(list(value)) if isinstance(value, tuple) else usual([value])[0], schema=several
        )
        return core_schema.no_info_before_validator_function(
            _as_list, core_schema.no_info_after_validator_function(_as_held, several), serialization=written
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        several = handler(schema)
        return {"anyOf": [several["items"], several]}


def _as_list(value: object) -> object:
    return list(value) if isinstance(value, list | tuple) else [value]


def _as_held(groups: list[Any]) -> Any:
    names = [group.name for group in groups]
    wrong = {
        place: "missing: each group needs a name of its own" if name is None else f'"{name}" is another group, too'
        for place, name in enumerate(names)
        if len(groups) > 1 and (name is None or name in names[:place])
    }
    if wrong:
        details = [
            InitErrorDetails(
                type=PydanticCustomError("groups", "{problem}", {"problem": problem}), loc=(place, "name"), input=None
            )
            for place, problem in wrong.items()
        ]
        raise ValidationError.from_exception_data("groups", details)
    return groups[0] if len(groups) == 1 else tuple(groups)


def repeatable(field: FieldInfo) -> type[Any] | None:
    """The section that a field may have several of; None if it is no such field."""
    return next((mark.section for mark in field.metadata if isinstance(mark, Repeatable)), None)


def repeated_tables(model: type[BaseModel]) -> list[str]:
    """The keys of a scenario under which a table may be repeated."""
    return [name for name, field in model.model_fields.items() if repeatable(field)]


def places_of(data: Any, key: Sequence[str]) -> Iterator[KeyPath]:
    """Where a key stands in the data, or below an object: in each group of a table that is repeated."""
    if isinstance(data, list | tuple):
        for place, group in enumerate(data):
            yield from ((place, *path) for path in places_of(group, key))
    elif not key:
        yield ()
    else:
        inner = data.get(key[0]) if isinstance(data, Mapping) else getattr(data, key[0], None)
        if inner is not None:
            yield from ((key[0], *path) for path in places_of(inner, key[1:]))


def names_in(table: object) -> list[str]:
    """The names of all groups that stand there."""
    groups = table if isinstance(table, list) else [table]
    return [group["name"] for group in groups if isinstance(group, dict) and isinstance(group.get("name"), str)]


def known_field(known: Mapping[str, FieldInfo], key: str) -> FieldInfo | None:
    """The field of a dotted key, whose second part may be the name of a group."""
    if key in known:
        return known[key]
    table, _, rest = key.partition(".")
    name, dot, setting = rest.partition(".")
    field = known.get(table)
    return known.get(f"{table}.{setting}") if dot and name and field is not None and repeatable(field) else None


def group_settings(scenario: BaseModel, setting: str) -> dict[str, str]:
    """A setting of each named group of a scenario: its name, and the dotted key."""
    found = {}
    for table in repeated_tables(type(scenario)):
        groups = getattr(scenario, table)
        for group in groups if isinstance(groups, tuple) else [groups]:
            if group.name is not None:
                found[group.name] = f"{table}.{group.name}.{setting}"
    return found


def table_at(data: Any, path: str) -> Any:
    """The table at a dotted path in what a scenario is written as; groups are known by name; None: not there."""
    for part in path.split(".") if path else []:
        if isinstance(data, Mapping) and part in data:
            data = data[part]
            continue
        groups = data if isinstance(data, list) else [data]
        data = next((one for one in groups if isinstance(one, Mapping) and one.get("name") == part), None)
    return data
