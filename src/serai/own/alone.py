"""The alone test: the calls that each node got in a run, played to a fresh object of the class in another process.

If it answers anything else there, what it says does not follow from what it was told: it shares state with other nodes,
or asks a clock, `random`, `id()` or the order of a set.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from serai.own.content import frozen
from serai.own.declaring import Guarded, put
from serai.own.loading import Own, declared_settings
from serai.own.mistakes import Mistake

_NEVER: Final = frozenset(("note", "rank"))
"""Slots that are not told to the other process: the author's own, and what only the engine looks at."""


class Part(NamedTuple):
    """A class of which each node has an object, and what the engine lets that see."""

    base: type
    attribute: str  # of the protocol's class, where this class stands; empty: it is the protocol's class
    sees: tuple[str, ...]  # attributes that the engine keeps up to date
    asks: tuple[str, ...]  # functions of the engine, under the names of the attributes that have them
    always: tuple[str, ...] = ()  # methods that do something even if nobody overrides them


class _Ref(NamedTuple):
    """An object that the engine changes, by its number on the tape."""

    number: int


class _Object(NamedTuple):
    """What such an object says, where it is new or has changed."""

    number: int
    kind: type[Guarded]
    says: dict[str, Any]


class _Asked(NamedTuple):
    """What a function of the engine answered, and what the object saw afterwards."""

    name: str
    given: Any
    answer: Any
    objects: list[_Object]
    sees: dict[str, Any]


class _Call(NamedTuple):
    """A method was called."""

    method: str
    given: Any
    objects: list[_Object]
    sees: dict[str, Any]
    asked: list[_Asked]
    answer: list[Any]  # of one


class Tape:
    """All calls that one object got."""

    def __init__(self, part: Part, node: int, key: int) -> None:
        self.part, self.node, self.key = part, node, key
        self.calls: list[_Call] = []


# ---- recording


class _Recorder:
    """Writes the tape of an object."""

    def __init__(self, part: Part, of: Any) -> None:
        self.tape, self.of = Tape(part, of.node, of._key), of
        self.numbers: dict[int, tuple[int, Guarded]] = {}  # by the object's address; kept, so that it stays theirs
        self.said: list[dict[str, Any]] = []
        self.news: list[_Object] = []
        self.busy = False
        for name in part.asks:
            setattr(of, name, self.asking(name, getattr(of, name)))

    def call(self, method: str, given: Sequence[Any], do: Callable[..., Any]) -> Any:
        """Do what the engine asks for, and note it, unless it is part of a call that is noted."""
        if self.busy:
            return do(self.of, *given)
        written, sees = [self.written(one) for one in given], self.sees()
        call = _Call(method, written, self.changes(), sees, [], [])
        self.tape.calls.append(call)
        self.busy = True
        try:
            answer = do(self.of, *given)
        finally:
            self.busy = False
        call.answer.append(self.written(answer))
        return answer

    def asking(self, name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        """A function of the engine whose answers are noted."""

        def ask(*given: Any) -> Any:
            if not self.busy:
                return do(*given)
            written = [self.written(one) for one in given]
            answer = do(*given)
            said, sees = self.written(answer), self.sees()
            self.tape.calls[-1].asked.append(_Asked(name, written, said, self.changes(), sees))
            return answer

        return ask

    def sees(self) -> dict[str, Any]:
        return {name: self.written(getattr(self.of, name)) for name in self.tape.part.sees}

    def changes(self) -> list[_Object]:
        news, self.news = self.news, []
        return news

    def written(self, value: Any) -> Any:
        """A value with numbers in place of objects."""
        if isinstance(value, Guarded):
            return _Ref(self.number(value))
        if isinstance(value, MappingProxyType):
            return {key: self.written(one) for key, one in value.items()}
        if isinstance(value, list) and value and isinstance(value[0], Guarded):
            return [self.written(one) for one in value]
        return _answer(value)

    def number(self, one: Guarded) -> int:
        """The number of an object; what has changed of it goes onto the tape."""
        known = self.numbers.get(id(one))
        first = known is None
        if known is None:
            known = self.numbers[id(one)] = len(self.numbers), one
            self.said.append({})
        number, before = known[0], self.said[known[0]]
        says = {name: value for name, value in _says(one).items() if first or name not in one.OWN}
        changed = {name: value for name, value in says.items() if name not in before or before[name] != value}
        if changed:
            before.update(changed)
            self.news.append(_Object(number, type(one), changed))
        return number


def _says(one: Guarded) -> dict[str, Any]:
    """What an object says, as plain data."""
    names = [name for cls in type(one).__mro__ for name in getattr(cls, "__slots__", ()) if name not in _NEVER]
    values = {name: getattr(one, name) for name in names}
    return {name: value.seen_by(one) if hasattr(value, "seen_by") else _answer(value) for name, value in values.items()}


def _answer(value: Any) -> Any:
    """What a method answered, as plain data; of anything else its kind: nobody looks at the answer of `contact_up`."""
    try:
        return frozen(value, "its answer")
    except Mistake:
        return f"a {type(value).__name__}"


def recorded(cls: type, parts: Sequence[Part], tapes: dict[int, Tape]) -> type:
    """The class with a tape for each of its objects; the tapes are by node."""
    main, *others = parts
    changed = {
        part.attribute: _with_tapes(getattr(cls, part.attribute), part, tapes, {})
        for part in others
        if getattr(cls, part.attribute) is not part.base
    }
    return _with_tapes(cls, main, tapes, changed)


def _with_tapes(cls: type, part: Part, tapes: dict[int, Tape], more: Mapping[str, Any]) -> type:
    recorders: dict[int, _Recorder] = {}

    def noted(method: str) -> Callable[..., Any]:
        do = getattr(cls, method)

        @wraps(do)
        def call(self: Any, *given: Any) -> Any:
            if self.node not in recorders:
                recorders[self.node] = _Recorder(part, self)
                tapes[self.node] = recorders[self.node].tape
            return recorders[self.node].call(method, given, do)

        return call

    methods = {name: noted(name) for name in _methods(cls, part)}
    return type(cls.__name__, (cls,), {**methods, **more, "__module__": cls.__module__})


def _methods(cls: type, part: Part) -> list[str]:
    """What the engine may call and the author has written."""
    public = [name for name, value in vars(part.base).items() if inspect.isfunction(value) and name[0] != "_"]
    return [
        name for name in public if name in ("start", *part.always) or getattr(cls, name) is not getattr(part.base, name)
    ]


# ---- playing


def disagreement(own: Own, tape: Tape) -> str:
    """The first answer on the tape that a fresh object does not give; empty: it gives all of them."""
    with own.executed() as cls:
        part = getattr(cls, tape.part.attribute) if tape.part.attribute else cls
        return _Player(tape, part).play()


class _Player:
    """Plays a tape to an object."""

    def __init__(self, tape: Tape, cls: type) -> None:
        self.tape, self.cls = tape, cls
        one: Any = object.__new__(cls)
        self.one = one
        self.objects: dict[int, Guarded] = {}
        self.call = tape.calls[0]
        self.asked = 0
        self.seen: dict[str, dict[Any, Any]] = {}
        for name, value in declared_settings(cls).items():
            setattr(self.one, name, value)
        for name in tape.part.asks:
            setattr(self.one, name, self.answering(name))
        self.one.node, self.one._key = tape.node, tape.key

    def play(self) -> str:
        """The first answer that is another one than on the tape; empty: none is."""
        for call in self.tape.calls:
            self.call = call
            self.asked = 0
            self.look(self.call.objects, self.call.sees)
            try:
                answer = getattr(self.one, self.call.method)(*map(self.read, self.call.given))
            except Exception as error:
                return self.told(f"{type(error).__name__}: {error}")
            if self.asked < len(self.call.asked):
                return self.told(f"without {self.call.asked[self.asked].name.strip('_')}, which it called then")
            if self.call.answer and self.written(answer) != self.call.answer[0]:
                return self.told(f"{_short(self.written(answer))} instead of {_short(self.call.answer[0])}")
        return ""

    def told(self, what: str) -> str:
        code = getattr(self.cls, self.call.method).__code__
        names = list(inspect.signature(getattr(self.tape.part.base, self.call.method)).parameters)[1:]
        time = f", t = {self.call.given[names.index('now')]:g} s" if "now" in names else ""
        place = f"{code.co_filename}:{code.co_firstlineno}: {self.cls.__name__}.{self.call.method}"
        return f"{place}: alone, told the same, it answers {what} (node {self.tape.node}{time})"

    def look(self, objects: Sequence[_Object], sees: Mapping[str, Any]) -> None:
        """Bring all that the object sees up to date."""
        for number, kind, says in objects:
            if number not in self.objects:
                self.objects[number] = object.__new__(kind)
                put(self.objects[number], note=None)
            put(self.objects[number], **says)
        for name, value in sees.items():
            read = self.read(value)
            if isinstance(read, dict):
                kept = self.seen.setdefault(name, {})
                kept.clear()
                kept.update(read)
                read = MappingProxyType(kept)
            setattr(self.one, name, read)

    def answering(self, name: str) -> Callable[..., Any]:
        """A function of the engine that answers as it did."""

        def answer(*given: Any) -> Any:
            if self.asked >= len(self.call.asked):
                raise ValueError(f"{name.strip('_')} was not called then")
            asked = self.call.asked[self.asked]
            self.asked += 1
            if (asked.name, asked.given) != (name, [self.written(one) for one in given]):
                raise ValueError(f"{asked.name.strip('_')} was called of something else then")
            self.look(asked.objects, asked.sees)
            return self.read(asked.answer)

        return answer

    def read(self, value: Any) -> Any:
        """A value with objects in place of their numbers."""
        if isinstance(value, _Ref):
            return self.objects[value.number]
        if type(value) is dict:  # a `Told` has no objects in it
            return {key: self.read(one) for key, one in value.items()}
        if type(value) is list:
            return [self.read(one) for one in value]
        return value

    def written(self, value: Any) -> Any:
        """What it answers, as on the tape."""
        if isinstance(value, Guarded):
            return next((_Ref(number) for number, one in self.objects.items() if one is value), None)
        return _answer(value)


def _short(answer: Any) -> str:
    text = repr(answer)
    return text if len(text) <= 60 else f"{text[:57]}..."
