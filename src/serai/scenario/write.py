"""From a `Scenario` back to TOML, and the JSON Schema of scenario files."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Union

from pydantic import TypeAdapter

from serai.scenario.catalogue import Catalogue
from serai.scenario.load import builtin_text, parse
from serai.scenario.section import Scenario, known_keys


def to_toml(scenario: Scenario) -> str:
    """The scenario as TOML with every default written out; loading it gives an equal scenario."""
    return "\n".join(_lines(_data(scenario), {})) + "\n"


def starting_text(catalogue: Catalogue, name: str) -> str:
    """A scenario file to start from: all that the built-in scenario `name` says, each key explained."""
    scenario = parse(catalogue, builtin_text(name))
    data = _data(scenario) | {"title": f"My own scenario, begun as {name}"}
    del data["name"]  # the name of the new file will do
    notes = {
        key: field.description or _first_line(field.annotation)
        for key, field in known_keys(type(scenario), [scenario.protocol.name]).items()
    } | {"protocol.name": f"One of: {', '.join(scenario.PROTOCOLS)}."}
    return "\n".join(_lines(data, notes)) + "\n"


def json_schema(catalogue: Catalogue) -> dict[str, Any]:
    """The JSON Schema of scenario files, for editors that complete and check TOML."""
    # As written, not as validated: there the default of a quantity is a text with its unit.
    kinds: TypeAdapter[Any] = TypeAdapter(Union[catalogue.scenarios])  # type: ignore[arg-type]  # noqa: UP007
    schema = kinds.json_schema(by_alias=True, mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema | {"title": "serai scenario"}


def _data(scenario: Scenario) -> dict[str, Any]:
    """The scenario as TOML data, the protocol last and its name first."""
    data = scenario.as_written()
    protocol = data.pop("protocol")
    return data | {"protocol": {"name": protocol.pop("name")} | protocol}


def _lines(data: Mapping[str, Any], notes: Mapping[str, str], table: str = "") -> Iterator[str]:
    """The lines of a table: first its values, then the tables below it."""
    for key, value in data.items():
        if not _is_table(table, value) and not _is_groups(value):
            yield from _comment(notes.get(f"{table}{key}"))
            yield f"{_key(key)} = {_value(value)}"
    for key, value in data.items():
        for inner in value if _is_groups(value) else [value] if _is_table(table, value) else []:
            yield ""
            yield from _comment(notes.get(f"{table}{key}"))
            yield f"[[{table}{_key(key)}]]" if _is_groups(value) else f"[{table}{_key(key)}]"
            yield from _lines(inner, notes, f"{table}{_key(key)}.")


def _is_table(inside: str, value: object) -> bool:
    """Whether the value gets a header of its own; attributes are short enough for one line each."""
    return isinstance(value, dict) and inside != "events.attributes."


def _is_groups(value: object) -> bool:
    """Whether the value is a table that is repeated."""
    return isinstance(value, list) and bool(value) and all(isinstance(group, dict) for group in value)


def _comment(note: str | None) -> list[str]:
    return textwrap.wrap(note, 100, initial_indent="# ", subsequent_indent="# ") if note else []


def _first_line(section: object) -> str:
    return (section.__doc__ or "").split("\n")[0] if isinstance(section, type) else ""


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _value(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case list():
            return f"[{', '.join(_value(item) for item in value)}]"
        case dict():
            return f"{{{', '.join(f'{_key(key)} = {_value(item)}' for key, item in value.items())}}}"
        case _:
            return repr(value)


def _text(text: str) -> str:
    # JSON's escapes are TOML's, but for one character that TOML wants escaped as well.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
