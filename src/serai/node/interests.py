"""What subscriptions ask for: MQTT topic filters (4.7 of the standard), and conditions over JSON payloads.

An interest is a text, so that nodes can tell each other: `t:FILTER`, or `c:FILTER?CONDITION` where `%` and `?` of the
filter are percent-encoded. Clients ask for the second by `$where/CONDITION/FILTER`, CONDITION percent-encoded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, Final
from urllib.parse import quote, unquote

from serai.core.conditions import VALUES, Conditions, Kind, kinds_by_use, read_conditions, wanted
from serai.core.errors import BadInput
from serai.core.language import alternatives

LONGEST_TOPIC: Final = 1024
LARGEST_JSON: Final = 256 << 10  # what conditions look into: messages in parts are not read on their way
_WHERE: Final = "$where/"
_SHARE: Final = "$share/"


def topic_problem(topic: str) -> str | None:
    """Why nothing can be published on this topic."""
    if not topic:
        return "a topic has at least one character"
    if "+" in topic or "#" in topic or "\0" in topic:
        return f"topic {topic!r}: + # and U+0000 may not stand in a topic"
    if topic.startswith("$"):
        return f"topic {topic!r}: topics that begin with $ belong to the server"
    return _too_long(topic)


def _too_long(topic: str) -> str | None:
    size = len(topic.encode())
    return f"a topic of {size} bytes; at most {LONGEST_TOPIC}" if size > LONGEST_TOPIC else None


def filter_problem(filter: str) -> str | None:
    """Why this is not a topic filter."""
    if not filter or "\0" in filter:
        return f"filter {filter!r}: at least one character, and no U+0000"
    levels = filter.split("/")
    for number, level in enumerate(levels, 1):
        if "#" in level and (level != "#" or number < len(levels)):
            return f"filter {filter!r}: # stands alone on the last level"
        if "+" in level and level != "+":
            return f"filter {filter!r}: + stands alone on its level"
    return _too_long(filter)


def topic_matches(filter: str, topic: str) -> bool:
    """Whether the filter asks for messages on the topic."""
    if filter == topic:
        return True
    if topic[0] == "$" and filter[0] in "+#":  # 4.7.2: the server's own topics are asked for by name only
        return False
    if "+" not in filter:
        # Without +, # is a common beginning; it also stands for the level above it: a/# asks for a.
        return filter[-1] == "#" and (topic.startswith(filter[:-1]) or topic == filter[:-2])
    asked, levels = filter.split("/"), topic.split("/")
    if asked[-1] == "#":
        asked.pop()
        if len(levels) < len(asked):
            return False
    elif len(levels) != len(asked):
        return False
    return all(level in ("+", found) for level, found in zip(asked, levels, strict=False))


def covers(wide: str, narrow: str) -> bool:
    """Whether everything that `narrow` asks for, `wide` asks for as well."""
    if wide[0] in "+#" and narrow[0] == "$":
        return False
    many, few = (
        wide.split("/"),
        ("+/#" if narrow == "#" else narrow).split("/"),
    )  # the same: every topic has a first level
    for place, level in enumerate(many):
        if level == "#":
            return True
        if place == len(few) or few[place] == "#" or (level != "+" and level != few[place]):
            return False
    return len(many) == len(few)


class Content:
    """A message as interests see it; its payload is read once, when a condition asks."""

    def __init__(self, topic: str, payload: bytes) -> None:
        self.topic, self.payload = topic, payload

    @cached_property
    def fields(self) -> Mapping[str, Any] | None:
        """The fields of a payload that is a JSON object; None for every other payload."""
        if len(self.payload) > LARGEST_JSON or self.payload[:1] not in b"{ \t\r\n":
            return None
        try:
            found = json.loads(self.payload)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def field(self, name: str, kind: Kind) -> Any:
        """The field as a value of this kind, None if it is not there or not of it; `a.b` is b in a."""
        value = self._at(name)
        if kind == "boolean" or isinstance(value, bool):
            return value if kind == "boolean" and isinstance(value, bool) else None
        if kind == "text":
            return value if isinstance(value, str) else None
        if kind == "time":
            try:
                return datetime.fromisoformat(value) if isinstance(value, str) else None
            except ValueError:
                return None
        return value if isinstance(value, int | float) else None

    def _at(self, name: str) -> Any:
        inside: Any = self.fields
        if inside is None or name in inside:
            return None if inside is None else inside[name]
        for part in name.split("."):
            if not isinstance(inside, dict):
                return None
            inside = inside.get(part)
        return inside


@dataclass(frozen=True)
class Interest:
    """What one subscription asks for."""

    filter: str
    where: str = ""
    kinds: Mapping[str, Kind] | None = None
    conditions: Conditions | None = None

    def __str__(self) -> str:
        return (
            f"c:{self.filter.replace('%', '%25').replace('?', '%3F')}?{self.where}"
            if self.where
            else f"t:{self.filter}"
        )

    def matches(self, content: Content) -> bool:
        """Whether the message is wanted. A payload that is not a JSON object meets no condition."""
        if not topic_matches(self.filter, content.topic):
            return False
        if self.conditions is None or self.kinds is None:
            return True
        if content.fields is None:
            return False
        return wanted(self.conditions, {name: content.field(name, kind) for name, kind in self.kinds.items()})


def interest(filter: str, where: str = "") -> Interest:
    """The interest in what the filter asks for, and of that in what meets the condition."""
    if problem := filter_problem(filter):
        raise BadInput(problem)
    if not where:
        return Interest(filter)
    if len(where.encode()) > LONGEST_TOPIC:
        raise BadInput(f"a condition of {len(where.encode())} bytes; at most {LONGEST_TOPIC}")
    alternatives(where, None, VALUES)  # for a message about the text itself
    kinds = kinds_by_use([where])
    return Interest(filter, where, kinds, read_conditions(where, kinds))


@lru_cache(1024)
def read_interest(text: str) -> Interest:
    """The interest that a node has told of."""
    kind, rest = text[:2], text[2:]
    if kind == "t:":
        return interest(rest)
    filter, mark, where = rest.partition("?")
    if kind != "c:" or not mark or not where:
        raise BadInput(f"interest {text!r}: t:FILTER or c:FILTER?CONDITION")
    return interest(unquote(filter), where)


@dataclass(frozen=True)
class Asked:
    """What the filter of a SUBSCRIBE means: an interest, and the group that shares it (4.8.2) or none."""

    interest: Interest
    group: str = ""


def asked(filter: str, where: str = "") -> Asked:
    """What a client asks for by this filter, and perhaps by the user property `where`."""
    group = ""
    if filter.startswith(_SHARE):
        group, slash, filter = filter[len(_SHARE) :].partition("/")
        if not group or not slash or "+" in group or "#" in group:
            raise BadInput("a shared subscription is $share/NAME/FILTER, without + and # in NAME")
    if filter.startswith(_WHERE):
        condition, slash, filter = filter[len(_WHERE) :].partition("/")
        if not slash or not condition:
            raise BadInput("a subscription by content is $where/CONDITION/FILTER, CONDITION percent-encoded")
        where = f"({where}) and ({unquote(condition)})" if where else unquote(condition)
    return Asked(interest(filter, where), group)


def where_filter(filter: str, where: str) -> str:
    """The filter by which any client asks for messages by content."""
    return f"{_WHERE}{quote(where, safe='')}/{filter}" if where else filter
