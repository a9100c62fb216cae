"""What the user reads about a value or a key that cannot be: what is wrong, what is allowed or was meant."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from serai.core.errors import did_you_mean, nearest
from serai.core.units import quantity_of
from serai.scenario.catalogue import Catalogue
from serai.scenario.locate import KeyPath
from serai.scenario.section import AttributeTable, PlanTable, Scenario, SweepTable, keys_of, known_keys

# Tables that no run depends on.
_OF_NO_RUN: dict[KeyPath, type[BaseModel]] = {("sweep",): SweepTable, ("plan",): PlanTable}

# Words of the papers, and of other simulators, for what is called otherwise here.
_ALSO_CALLED = {
    "beta": "events.lifetime", "ttl": "events.lifetime", "survival_time": "events.lifetime",
    "capacity": "sensors.queue", "queue_size": "sensors.queue", "queue_capacity": "sensors.queue",
    "buffer": "sensors.queue", "energy": "sensors.battery", "initial_energy": "sensors.battery",
    "vmax": "subscribers.speed_max", "v_max": "subscribers.speed_max", "max_speed": "subscribers.speed_max",
    "vmin": "subscribers.speed_min", "v_min": "subscribers.speed_min", "min_speed": "subscribers.speed_min",
    "grid": "field.cells", "columns": "field.cells", "rows": "field.cells", "bandwidth": "radio.rate",
}  # fmt: skip


def dotted(path: KeyPath) -> str:
    """A path as the user would write it: events.attributes.A1, subscriptions.where[1]."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += "." * bool(text) + (part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else f'"{part}"')
    return text


def _without_places(path: KeyPath) -> KeyPath:
    """The path as of a table that stands once: all groups have the same keys."""
    return tuple(part for part in path if isinstance(part, str))


def value_at(data: Any, path: KeyPath) -> Any:
    """What stands at `path`; None if nothing does."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def in_words(
    kind: str,
    said: str,
    context: Mapping[str, Any],
    path: KeyPath,
    data: Mapping[str, Any],
    known: Mapping[str, FieldInfo],
) -> str:
    """What is wrong with the value at `path`, given the validator's error; else the validator's own words."""
    value, field = value_at(data, path), known.get(dotted(_without_places(path)))
    if kind in _LIMITS:
        words, limit = _LIMITS[kind]
        return f"must be {words} {_with_unit(field, context[limit])}"
    if kind in ("int_type", "float_type"):
        return _number_needed("whole number" if kind == "int_type" else "number", field, value)
    if kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", context["expected"])
        if isinstance(value, str):
            return f'unknown value "{value}"; {did_you_mean(value, allowed)}'
        return f"expected one of: {', '.join(allowed)}"
    if kind in ("model_type", "dict_type"):
        return f"expected a table, such as {_table_example(path)}"
    return _PLAIN.get(kind, said)


_LIMITS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
_PLAIN = {
    "missing": "missing",
    "bool_type": "expected true or false",
    "string_type": "expected a text in quotes",
    "list_type": 'expected a list such as ["ced", "dg"]',
    "is_instance_of": "expected the name of a file in quotes",
    "finite_number": "must be finite",
}


def _with_unit(field: FieldInfo | None, limit: float) -> str:
    if field is not None and (mark := quantity_of(field)):
        return mark.format(limit)
    return f"{limit:,}" if isinstance(limit, int) else f"{limit:g}"


def _number_needed(what: str, field: FieldInfo | None, value: object) -> str:
    """A number is needed and something else was written, perhaps a number in quotes."""
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9][0-9_]*(\.[0-9]+)?", value.strip()):
        return f"expected a {what}; write {value.strip()} without quotes"
    example = f" such as {field.default}" if field is not None else ""
    return f"expected a {what}{example}"


def _table_example(path: KeyPath) -> str:
    inside_attributes = path[:2] == ("events", "attributes") and len(path) > 2
    return '{kind = "real", low = 0, high = 10}' if inside_attributes else f"[{dotted(path)}]"


def bad_protocol(table: object, catalogue: Catalogue) -> str:
    """What is wrong with what stands under `protocol` when no protocol can be told from it."""
    if not isinstance(table, dict):
        return 'expected a table: [protocol] with name = "ced"'
    name = table.get("name")
    if isinstance(name, str):
        return f'unknown protocol "{name}"; {did_you_mean(name, catalogue.protocols)}'
    return f"expected one of: {', '.join(catalogue.protocols)}"


def unknown_key(path: KeyPath, data: Mapping[str, Any], catalogue: Catalogue) -> str:
    """What is said about a key that does not exist: whose it is, or what was probably meant."""
    key, table = str(path[-1]), _without_places(path[:-1])
    if table == ("protocol",):
        name = data["protocol"]["name"]
        owners = [other for other, protocol in catalogue.protocols.items() if key in keys_of(protocol.settings)]
        if owners:
            return f"a setting of {' and '.join(owners)}, not of {name}"
    kind = catalogue.described_by(data)
    siblings = _keys_in(table, data, kind)
    return f"unknown key; {_meant(key, siblings, known_keys(kind)) or 'one of: ' + ', '.join(siblings)}"


def _keys_in(table: KeyPath, data: Mapping[str, Any], kind: type[Scenario]) -> list[str]:
    """The keys that a table can have."""
    if not table:
        return list(keys_of(kind))
    if table == ("protocol",):
        return list(keys_of(kind.PROTOCOLS[data["protocol"]["name"]].settings))
    if table[:2] == ("events", "attributes"):
        return list(keys_of(AttributeTable))
    if table in _OF_NO_RUN:
        return list(keys_of(_OF_NO_RUN[table]))
    prefix = f"{dotted(table)}."
    below = [known.removeprefix(prefix) for known in known_keys(kind) if known.startswith(prefix)]
    return [key for key in below if "." not in key]


def _meant(key: str, siblings: list[str], everywhere: Mapping[str, FieldInfo]) -> str | None:
    """The key that was probably meant: by another name, one of the same table, or a like one elsewhere."""
    word = key.lower().replace("-", "_").replace(" ", "_")
    elsewhere = {known.rpartition(".")[2]: known for known in reversed(list(everywhere)) if "." in known}
    meant = _ALSO_CALLED.get(word)
    meant = meant if meant in everywhere else None
    if meant is None and (sibling := nearest(word, siblings)):
        return f'did you mean "{sibling}"?'
    meant = meant or elsewhere.get(word) or elsewhere.get(nearest(word, elsewhere) or "")
    return f"did you mean {meant}?" if meant else None
