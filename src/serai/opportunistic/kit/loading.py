"""From a file of the user's to a protocol: `mine.py`, or `mine.py:Class` where it has several.

The file runs with the user's rights: checks here are against mistakes, not against malice. It is executed afresh for
every run, so that nothing in it survives from one run to the next.
"""

from __future__ import annotations

import hashlib
import linecache
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, create_model

from serai.core.errors import BadInput
from serai.core.units import TIME, Seconds, parse_quantity
from serai.opportunistic.kit.router import Router, Setting
from serai.opportunistic.rules import RouterSettings, shared_rules
from serai.scenario.protocol import Protocol
from serai.scenario.section import FilePath

if TYPE_CHECKING:
    from serai.opportunistic.engine.state import Medium, Outcome
    from serai.opportunistic.world import ContactWorld

_TEXTS: dict[str, str] = {}
"""What each file said when it was last read: on a worker the file itself may not be there."""
_KEPT: dict[str, ModuleType] = {}
"""Modules that are looked at before and after a run."""


def load_own(file: Path, wanted: str | None = None) -> Protocol:
    """The protocol in a file; `wanted`: the name of its class, where the file has several."""
    path = str(file)
    name = wanted or _only_router(path)
    router = _router(path, name)
    doc = (router.__doc__ or "").strip().split("\n")[0].rstrip(".")
    simulate = partial(_simulate, path, name)
    return Protocol(name, doc or name, file.name, _settings_of(router, name, file), simulate, adopted=True)


def text_of(file: Path) -> str:
    """What the file of a protocol says, or said when it was last read."""
    return _text(str(file))


def remember_text(file: Path, text: str) -> None:
    """What a file says that may not be there on this machine."""
    _TEXTS[str(file)] = text


def _text(path: str) -> str:
    try:
        _TEXTS[path] = Path(path).read_text("utf-8")
    except FileNotFoundError:
        if path not in _TEXTS:
            raise BadInput(f"no such file: {path}") from None
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8 text") from None
    return _TEXTS[path]


def _module(path: str) -> ModuleType:
    """The file's module, executed afresh."""
    if path in _KEPT:
        return _KEPT[path]
    text = _text(path)
    module = ModuleType(f"serai_protocol_{hashlib.sha256(text.encode()).hexdigest()[:16]}")
    module.__file__ = path
    linecache.cache[path] = (len(text), None, text.splitlines(True), path)  # a traceback shows the line
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except SyntaxError as error:
        raise BadInput(f"{path}:{error.lineno}: not valid Python: {error.msg}") from None
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        raise BadInput(f"{path}:{lines[-1] if lines else 1}: {type(error).__name__}: {error}") from None
    return module


def _routers_in(module: ModuleType) -> dict[str, type[Router]]:
    """The routers that a module defines itself."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Router) and value.__module__ == module.__name__
    }


def _only_router(path: str) -> str:
    names = list(_routers_in(_module(path)))
    if len(names) == 1:
        return names[0]
    if not names:
        raise BadInput(f"{path}: no protocol in it; write a class derived from serai.opportunistic.Router")
    raise BadInput(
        f"{path}: which of its protocols? Write {Path(path).name}:{names[0]}, or one of {', '.join(names[1:])}"
    )


def _router(path: str, wanted: str) -> type[Router]:
    routers = _routers_in(_module(path))
    if wanted not in routers:
        raise BadInput(f"{path}: no protocol {wanted} in it; it has: {', '.join(routers) or 'none'}")
    router = routers[wanted]
    if router.__init__ is not object.__init__:
        raise BadInput(f"{path}: {wanted}: write start() instead of __init__(): the engine makes the objects")
    return router


def declared_settings(router: type[Router]) -> dict[str, Any]:
    """The settings that a class declares, with their defaults as the router reads them."""
    return {key: _default(declared) for key, declared in _declared(router).items()}


def own_state(file: Path, name: str, run: Callable[[], Any]) -> tuple[dict[str, str], dict[str, str]]:
    """What the module and the class of a protocol hold, as text, before and after a run of that very module."""
    module = _module(str(file))
    _KEPT[str(file)] = module
    try:
        before = _held(module, name)
        run()
        return before, _held(module, name)
    finally:
        del _KEPT[str(file)]


def _held(module: ModuleType, name: str) -> dict[str, str]:
    plain = {key: repr(value) for key, value in vars(module).items() if not key.startswith("__")}
    own = {f"{name}.{key}": repr(value) for key, value in vars(vars(module)[name]).items() if not key.startswith("__")}
    return plain | own


def _declared(router: type[Router]) -> dict[str, Setting]:
    return {
        name: value for cls in reversed(router.__mro__) for name, value in vars(cls).items() if type(value) is Setting
    }


def _settings_of(router: type[Router], name: str, file: Path) -> type[RouterSettings]:
    """The settings that a class declares, besides those that every router has."""
    where = Field(file, description="The file with the protocol's class.")
    fields: dict[str, Any] = {"name": (Literal[name], name), "file": (FilePath, where)}
    for key, declared in _declared(router).items():
        if key in RouterSettings.model_fields or key in fields:
            raise BadInput(f"{router.__name__}.{key}: every router has this setting; choose another name for yours")
        fields[key] = _field(router, key, declared)
    return create_model(f"{router.__name__}Settings", __base__=RouterSettings, **fields)


def _field(router: type[Router], key: str, declared: Setting) -> tuple[Any, Any]:
    default = _default(declared)
    limits: dict[str, Any] = {"ge": declared.ge, "le": declared.le, "description": declared.doc or key}
    if declared.time:
        return Seconds, Field(default, **limits)
    if declared.choices is None:
        if type(default) not in (bool, int, float, str):
            raise BadInput(f"{router.__name__}.{key}: the default of a setting is a number, a text or True or False")
        return type(default), Field(default, **limits)
    choice: Any = Literal[declared.choices]
    kind = Annotated[tuple[choice, ...], Field(strict=False)] if isinstance(default, tuple) else choice
    return kind, Field(default, description=declared.doc or key)


def _default(declared: Setting) -> Any:
    return parse_quantity(declared.default, TIME) if declared.time else declared.default


def _simulate(path: str, wanted: str, world: ContactWorld, medium: Medium, settings: RouterSettings) -> Outcome:
    """Run the class over a world, from a module that nobody has touched."""
    from serai.opportunistic.kit.engine import Network
    from serai.opportunistic.kit.mistakes import no_endless_calls, told_with_place

    router = _router(path, wanted)
    chosen = {key: getattr(settings, key) for key in _declared(router)}
    network = Network(world, medium, router, chosen, shared_rules(settings, lists=router.lists or None))
    with told_with_place(router, path, network), no_endless_calls(lambda: network.steps):
        return network.run()
