"""From a class of the user's to a protocol: its settings, and how it is run.

It runs with the user's rights: checks here are against mistakes, not against malice.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, create_model

from serai.core.errors import BadInput
from serai.core.units import TIME, Seconds, parse_quantity
from serai.own.declaring import Setting
from serai.own.mistakes import Place, no_endless_calls, told_with_place
from serai.own.origins import File, Origin, find_installed
from serai.scenario.protocol import Protocol
from serai.scenario.section import FilePath


class Engine(Place, typing.Protocol):
    """A run of a class, ready to begin."""

    def run(self) -> Any:
        """The outcome of the run."""


class Family(NamedTuple):
    """What a class of the user's may be derived from, and how the plain engine of its kind of network runs it."""

    base: type
    name: str  # of the base class, for people
    settings: type[BaseModel]  # what every protocol of this kind can be told
    engine: Callable[..., Engine]
    """Of the class, its own settings by name, and what a protocol of this kind is given: world, limits, settings."""
    parts: tuple[tuple[str, type], ...] = ()
    """Attributes of the class that hold a class of the author's, too, and from what that is derived."""


class Own(NamedTuple):
    """A class of the user's."""

    origin: Origin
    cls: str
    family: Family
    name: str  # of the protocol: that of its class, or that under which a package offers it

    @contextmanager
    def executed(self) -> Iterator[type]:
        """The class, from a module that nobody has touched."""
        with self.origin.executed() as module:
            yield _class(self.origin, module, self.cls, [self.family])[0]

    def texts(self) -> dict[str, str]:
        """All that its author wrote, by file; or by package, what tells its version from another one."""
        return self.origin.texts()


def find_own(file: Path, wanted: str | None, families: Sequence[Family]) -> Own:
    """The class in a file; `wanted`: its name, where there are several."""
    origin = File(str(file))
    with origin.executed() as module:
        name = wanted or _only_class(origin, module, families)
        return Own(origin, name, _class(origin, module, name, families)[1], name)


def find_offered(name: str, families: Sequence[Family]) -> Own | None:
    """The class that an installed package offers under a name; None: there is none."""
    found = find_installed(name)
    if found is None:
        return None
    origin, cls = found
    with origin.executed() as module:
        return Own(origin, cls, _class(origin, module, cls, families)[1], name)


def own_protocol(own: Own) -> Protocol:
    """The protocol of a class of the user's."""
    file = Path(own.origin.path) if isinstance(own.origin, File) else None
    with own.executed() as cls:
        doc = (cls.__doc__ or "").strip().split("\n")[0].rstrip(".")
        settings = _settings_of(cls, own.name, file, own.family)
    paper = file.name if file is not None else own.origin.name
    return Protocol(own.name, doc or own.name, paper, settings, partial(simulate_own, own), own=own)


def built_in(cls: type, name: str, paper: str, family: Family) -> Protocol:
    """The protocol of a class that is part of serai."""
    title = (cls.__doc__ or name).strip().rstrip(".")
    settings = _settings_of(cls, name, None, family)
    return Protocol(name, title, paper, settings, partial(simulate_class, cls, family))


def simulate_own(
    own: Own, world: Any, limits: Any, settings: BaseModel, *, change: Callable[[type], type] | None = None
) -> Any:
    """Run the class over a world; `change` makes another class of it."""
    with own.executed() as cls:
        return simulate_executed(own, cls, world, limits, settings, change=change)


def simulate_executed(
    own: Own, cls: type, world: Any, limits: Any, settings: BaseModel, *, change: Callable[[type], type] | None = None
) -> Any:
    """The same with the class of a module that is in use; what its author did wrong is told with its place."""
    engine = _engine(change(cls) if change else cls, own.family, world, limits, settings)
    with told_with_place(cls, own.origin, engine), no_endless_calls(own.origin):
        return engine.run()


def simulate_class(cls: type, family: Family, world: Any, limits: Any, settings: BaseModel) -> Any:
    """Run a class as it is over a world."""
    return _engine(cls, family, world, limits, settings).run()


def _engine(cls: type, family: Family, world: Any, limits: Any, settings: BaseModel) -> Engine:
    return family.engine(cls, {key: getattr(settings, key) for key in _declared(cls)}, world, limits, settings)


# ---- classes


def _classes_in(module: ModuleType, families: Sequence[Family]) -> dict[str, tuple[type, Family]]:
    """The protocols that a module defines itself."""
    return {
        name: (value, family)
        for name, value in vars(module).items()
        for family in families
        if isinstance(value, type) and issubclass(value, family.base) and value.__module__ == module.__name__
    }


def _only_class(origin: File, module: ModuleType, families: Sequence[Family]) -> str:
    names = list(_classes_in(module, families))
    if len(names) == 1:
        return names[0]
    if not names:
        bases = " or ".join(family.name for family in families)
        raise BadInput(f"{origin.name}: no protocol in it; write a class derived from {bases}")
    raise BadInput(
        f"{origin.name}: which of its protocols? Write {Path(origin.path).name}:{names[0]}, or one of"
        f" {', '.join(names[1:])}"
    )


def _class(origin: Origin, module: ModuleType, wanted: str, families: Sequence[Family]) -> tuple[type, Family]:
    classes = _classes_in(module, families)
    if wanted not in classes:
        raise BadInput(f"{origin.name}: no protocol {wanted} in it; it has: {', '.join(classes) or 'none'}")
    cls, family = classes[wanted]
    if cls.__init__ is not object.__init__:  # type: ignore[misc]
        raise BadInput(f"{origin.name}: {wanted}: write start() instead of __init__(): the engine makes the objects")
    return cls, family


# ---- settings


def declared_settings(cls: type) -> dict[str, Any]:
    """The settings that a class declares, with their defaults as the protocol reads them."""
    return {key: _default(declared) for key, declared in _declared(cls).items()}


def _declared(cls: type) -> dict[str, Setting]:
    return {name: value for one in reversed(cls.__mro__) for name, value in vars(one).items() if type(value) is Setting}


def _settings_of(cls: type, name: str, file: Path | None, family: Family) -> type[BaseModel]:
    """The settings that a class declares, besides those that every protocol of its kind has."""
    fields: dict[str, Any] = {"name": (Literal[name], name)}
    if file is not None:
        fields["file"] = (FilePath, Field(file, description="The file with the protocol's class."))
    for key, declared in _declared(cls).items():
        if key in family.settings.model_fields or key in fields:
            raise BadInput(
                f"{cls.__name__}.{key}: every protocol of its kind has this setting; choose another name for yours"
            )
        fields[key] = _field(cls, key, declared)
    return create_model(f"{cls.__name__}Settings", __base__=family.settings, **fields)


def _field(cls: type, key: str, declared: Setting) -> tuple[Any, Any]:
    default = _default(declared)
    limits: dict[str, Any] = {"ge": declared.ge, "le": declared.le, "description": declared.doc or key}
    if declared.time:
        return Seconds, Field(default, **limits)
    if declared.choices is None:
        if type(default) not in (bool, int, float, str):
            raise BadInput(f"{cls.__name__}.{key}: the default of a setting is a number, a text or True or False")
        return type(default), Field(default, **limits)
    choice: Any = Literal[declared.choices]
    kind = Annotated[tuple[choice, ...], Field(strict=False)] if isinstance(default, tuple) else choice
    return kind, Field(default, description=declared.doc or key)


def _default(declared: Setting) -> Any:
    return parse_quantity(declared.default, TIME) if declared.time else declared.default
