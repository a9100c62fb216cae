"""From a TOML file, or the name of a built-in scenario, and changes to it, to a `Scenario`."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from serai.core.errors import BadInput, BadScenario, Problem, did_you_mean
from serai.scenario.catalogue import Catalogue
from serai.scenario.diagnostics import Sources, validated
from serai.scenario.groups import names_in, places_of, repeated_tables
from serai.scenario.locate import KeyPath
from serai.scenario.section import DEFAULT_PROTOCOL, Scenario, switch_protocol
from serai.scenario.wording import dotted, value_at

Overrides = Sequence[str] | Mapping[str, Any]


def with_overrides(first: Mapping[str, Any], overrides: Overrides) -> Overrides:
    """Settings, then changes that win over them, written as the changes are."""
    if isinstance(overrides, Mapping):
        return {**first, **overrides}
    later = [overrides] if isinstance(overrides, str) else overrides
    return [*(f"{key}={json.dumps(value)}" for key, value in first.items()), *later]


def builtin_names() -> list[str]:
    """The names of the built-in scenarios."""
    files = (resources.files("serai.scenario") / "builtin").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def builtin_text(name: str) -> str:
    """The TOML text of a built-in scenario."""
    if name not in builtin_names():
        raise BadInput(f'no built-in scenario "{name}"; {did_you_mean(name, builtin_names())}')
    return (resources.files("serai.scenario") / "builtin" / f"{name}.toml").read_text("utf-8")


def load(catalogue: Catalogue, source: str | Path, overrides: Overrides = (), protocol: str | None = None) -> Scenario:
    """The scenario of a TOML file or of a built-in name, under another protocol if given, then with changes.

    A change is `dotted.key=value` as on the command line, or an item of a mapping: `{"protocol.alpha": 10}`.
    """
    if isinstance(source, str) and source in builtin_names():
        draft, folder = _Draft(catalogue, builtin_text(source), f"{source}.toml (built-in)", source), Path()
    else:
        path = _existing(source)
        draft, folder = _Draft(catalogue, _read(path), str(source), path.stem), path.parent
    draft.adopt_own(folder)
    draft.change(overrides, protocol)
    draft.place_files(folder)
    return draft.scenario()


def parse(
    catalogue: Catalogue,
    text: str,
    source: str = "scenario.toml",
    overrides: Overrides = (),
    protocol: str | None = None,
) -> Scenario:
    """The scenario that a TOML text says; messages call the text `source`.

    Unlike `load` this does not ask for the files that it names, which may have gone since.
    """
    draft = _Draft(catalogue, text, source, "scenario")
    draft.adopt_own(Path())
    draft.change(overrides, protocol)
    return draft.scenario()


class _Change(NamedTuple):
    """A value to be put in, where, and how the user wrote that."""

    path: tuple[str, ...]
    value: Any
    written: str


class _Draft:
    """A scenario on its way: the TOML data, where it came from, and the problems found so far."""

    def __init__(self, catalogue: Catalogue, text: str, source: str, name: str) -> None:
        self.catalogue = catalogue
        self.sources = Sources(source, text)
        self.data = _toml_data(self.sources)
        self.data.setdefault("name", name)
        self.problems: list[Problem] = []

    def adopt_own(self, folder: Path) -> None:
        """If the scenario names a protocol of the user's, read its file, as seen from `folder`."""
        table = self.data.get("protocol")
        if not isinstance(table, dict) or not isinstance(table.get("name", ""), str):
            return
        if isinstance(file := table.get("file"), str) and file:
            wanted = table.get("name")
            table["name"] = self.catalogue.adopt((folder / file).absolute(), wanted)
        elif table.get("name"):
            table["name"] = self.catalogue.known(table["name"], folder)

    def change(self, overrides: Overrides, protocol: str | None) -> None:
        """Switch to the protocol, then put the changes in; one of them may name a protocol, too."""
        if protocol is not None:
            protocol = self.catalogue.known(protocol)
            self.catalogue.check_protocol(protocol)
        changes = [self._with_known_protocol(change) for change in self._changes(overrides)]
        for change in changes:
            if change.path == ("protocol", "name") and change.value in list(self.catalogue.protocols):
                protocol = change.value
        self._switch(protocol)
        for change in changes:
            self._put(change)

    def _with_known_protocol(self, change: _Change) -> _Change:
        if change.path != ("protocol", "name") or not isinstance(change.value, str):
            return change
        return change._replace(value=self.catalogue.known(change.value))

    def place_files(self, folder: Path) -> None:
        """Take the files that are named by relative paths as seen from `folder`, and see that they are there."""
        for key in self.catalogue.described_by(self.data).FILES:
            for path in places_of(self.data, key):
                self._place_file(path, folder)

    def _place_file(self, path: KeyPath, folder: Path) -> None:
        table, file = value_at(self.data, path[:-1]), value_at(self.data, path)
        if not isinstance(file, str | Path) or not str(file):
            return
        seen_from = Path() if path in self.sources.changes else folder  # written on the command line
        table[path[-1]] = str((seen_from / file).absolute())
        place = Path(table[path[-1]])
        if place.is_dir():
            self.problems.append(self.sources.problem(path, f"a folder, not a file: {place}"))
        elif not place.is_file():
            self.problems.append(self.sources.problem(path, f"no such file: {place}"))

    def scenario(self) -> Scenario:
        """The scenario, or else all its problems at once."""
        return validated(self.data, self.sources, self.catalogue, self.problems)

    def _switch(self, name: str | None) -> None:
        """Put the settings of protocol `name`, if given, in place of those of the protocol that is there."""
        table = self.data.setdefault("protocol", {})
        old = table.setdefault("name", name or DEFAULT_PROTOCOL) if isinstance(table, dict) else None
        if name is None or name == old or old not in list(self.catalogue.protocols):
            return
        self.catalogue.check_protocol(name, self.catalogue.scenario_of(old))
        try:
            settings = self.catalogue.protocols[old].settings.model_validate(table, strict=True)
        except ValidationError:
            self.scenario()  # raises: what was written has to be right before it can be changed
            return
        kept = switch_protocol(settings, self.catalogue.protocols[name]).model_dump(
            mode="json", by_alias=True, exclude_defaults=True
        )
        self.data["protocol"] = {"name": name} | kept

    def _changes(self, overrides: Overrides) -> list[_Change]:
        changes = []
        for written, key, value in _key_values(overrides):
            path = _key_path(key)
            if path is None:
                self.problems.append(Problem(written, "no key=value; write it like protocol.alpha=10"))
            else:
                changes.append(_Change(path, value, written))
        return changes

    def _put(self, change: _Change) -> None:
        """Put a value in; the part of a key after a repeated table is the name of one of its groups."""
        table: Any = self.data
        path: KeyPath = ()
        for part in change.path[:-1]:
            place = self._group(path, part)
            if place is not None:
                table, path = (table[place], (*path, place)) if isinstance(table, list) else (table, path)
                continue
            if not isinstance(table, dict):
                self._refuse(change, path)
                return
            table, path = table.setdefault(part, {}), (*path, part)
        if not isinstance(table, dict):
            self._refuse(change, path)
            return
        table[change.path[-1]] = change.value
        self.sources.changes[(*path, change.path[-1])] = change.written

    def _group(self, path: KeyPath, name: str) -> int | None:
        """The place of a group among those of the table at `path`; None: the table has no groups, or not that one."""
        if len(path) != 1 or path[0] not in repeated_tables(self.catalogue.described_by(self.data)):
            return None
        groups = self.data[path[0]]
        groups = groups if isinstance(groups, list) else [groups]
        found = (place for place, group in enumerate(groups) if isinstance(group, dict) and group.get("name") == name)
        return next(found, None)

    def _refuse(self, change: _Change, path: KeyPath) -> None:
        """Say that a change leads nowhere: to a value, or to several groups at once."""
        message = f"{dotted(path)} is not a table"
        if names := names_in(value_at(self.data, path)) if isinstance(value_at(self.data, path), list) else []:
            there = ", ".join(f"{dotted(path)}.{name}" for name in names)
            message = f"there are several groups; write one of {there}"
        self.problems.append(Problem(dotted(change.path), message, change.written))


def _key_values(overrides: Overrides) -> Iterator[tuple[str, str, Any]]:
    """Each change as it was written, its key and its value; an empty key if there is none."""
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            yield f"{key} = {value!r}", key, value
        return
    for written in [overrides] if isinstance(overrides, str) else overrides:
        key, equals, value = written.partition("=")
        yield f"--set {written}", key if equals else "", toml_value(value)


def _key_path(key: str) -> tuple[str, ...] | None:
    """The parts of a dotted key, which may be quoted as in TOML; None if it is no key."""
    try:
        data: Any = tomllib.loads(f"{key.strip()} = 0")
    except (ValueError, RecursionError):
        return None
    path: tuple[str, ...] = ()
    while isinstance(data, dict):
        if len(data) != 1:
            return None
        ((part, data),) = data.items()
        path = (*path, part)
    return path


def toml_value(text: str) -> Any:
    """The value that `text` means: in TOML if it is that, else the text itself (11 m/s, each-contact)."""
    try:
        data = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text.strip()
    return data["value"] if len(data) == 1 else text.strip()


def _toml_data(sources: Sources) -> dict[str, Any]:
    """What the text says as TOML; a BadScenario with line, column and caret if it is none."""
    try:
        return tomllib.loads(sources.text)
    except RecursionError:
        raise BadScenario([Problem("", "not valid TOML: nested too deeply", sources.file)]) from None
    except ValueError as error:
        problem = _syntax_problem(str(error), sources)
        raise BadScenario([problem]) from None


def _syntax_problem(said: str, sources: Sources) -> Problem:
    what = said.partition(" (at ")[0]
    found = re.search(r"\(at line (\d+), column (\d+)\)", said)
    lines = sources.text.split("\n")
    line, column = (int(found[1]), int(found[2])) if found else (len(lines), len(lines[-1]) + 1)
    position = sum(len(text) + 1 for text in lines[: line - 1]) + column - 1
    advice = _syntax_advice(lines[line - 1]) if what.startswith(("Invalid value", "Expected newline")) else ""
    message = f"not valid TOML: {what[:1].lower()}{what[1:]}{advice}"
    return sources.problem_at(position, message)


def _syntax_advice(line: str) -> str:
    """What was probably meant by a value that is neither a number nor in quotes."""
    found = re.match(r"[^=#]*=\s*([^\s\"'\[{#=][^#\"']*)", line)
    return f'; if it is a text or has a unit, write it in quotes: "{found[1].strip()}"' if found else ""


def _existing(source: str | Path) -> Path:
    path = Path(source)
    if path.is_dir():
        raise BadInput(f"{path} is a folder, not a scenario")
    if path.exists():
        return path
    if path.suffix or len(path.parts) > 1:
        raise BadInput(f"no such file: {source}")
    built_in = did_you_mean(str(source), builtin_names())
    raise BadInput(f'no scenario "{source}", neither a file nor built-in; {built_in}')


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
