"""The commands about serai itself: protocols, doctor, version and help."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import typer

from serai import __version__
from serai.cli.options import WIDTH, AsJson, print_json
from serai.core.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from serai.cli.doctor import Check
    from serai.scenario.protocol import Protocol


def protocols(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME | check FILE.py]", help="Only this protocol; check: try one of your own.", show_default=False
        ),
    ] = None,
    new: Annotated[Path | None, typer.Option(metavar="FILE.py", help="Write a protocol file to start from.")] = None,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="The kind of network: opportunistic or field.")
    ] = "opportunistic",
    as_json: AsJson = False,
) -> None:
    """List protocols and their settings, or try one of your own."""
    from serai.kinds import CATALOGUE, PROTOCOLS

    if new is not None:
        _write_skeleton(new, kind)
        return
    if words and words[0] == "check":
        _check(words[1:], as_json)
        return
    if words and len(words) > 1:
        raise BadInput(f'serai protocols: one name at a time, or "check FILE.py"; not {" ".join(words)}')
    name = CATALOGUE.known(words[0]) if words else None
    if name is not None and name not in PROTOCOLS:
        raise BadInput(f'no protocol "{name}"; {did_you_mean(name, PROTOCOLS)}')
    if name is None:
        _know_installed()
    chosen = [PROTOCOLS[name]] if name else list(PROTOCOLS.values())
    if as_json:
        print_json({"protocols": [_protocol_as_dict(protocol) for protocol in chosen]})
    else:
        print("\n\n".join(_protocol_as_text(protocol) for protocol in chosen))


def _know_installed() -> None:
    """List those that installed packages offer, too; one that cannot be used is told and left out."""
    from serai.kinds import CATALOGUE
    from serai.own.origins import installed_protocols

    for name in installed_protocols():
        try:
            CATALOGUE.known(name)
        except BadInput as error:
            typer.echo(f"{name}: {error}", err=True)


def _write_skeleton(file: Path, kind: str) -> None:
    """A protocol to start from, unless there is something already."""
    scenarios = {"opportunistic": "dpsp", "field": "field"}
    if kind not in scenarios:
        raise BadInput(f'--kind "{kind}": {did_you_mean(kind, scenarios)}')
    text = (resources.files(f"serai.{kind}.kit") / "skeleton.txt").read_text("utf-8")
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text.replace("FILE", str(file)))
    except FileExistsError:
        raise BadInput(f"{file} is there already; choose another name") from None
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}; choose another place") from None
    print(f"written to {file}; try: serai run {scenarios[kind]} --protocol {file} --seed 1")


def _check(words: Sequence[str], as_json: bool) -> None:
    """Try a protocol of the user's with small and random worlds."""
    from serai.kinds import CATALOGUE, PROTOCOLS, check_own

    name = CATALOGUE.known(words[0]) if len(words) == 1 else ""
    if name not in PROTOCOLS or PROTOCOLS[name].own is None:
        raise BadInput("serai protocols check: name one protocol of your own, such as mine.py or mine.py:Mine")
    found = []
    for one in check_own(name):
        found.append(one)
        if not as_json:  # each as soon as it is known
            problem = f"\n     {one.problem}" if one.problem else ""
            print(f" {'!!' if one.problem else 'ok'}  {one.what}{problem}", flush=True)
    if as_json:
        print_json({"ok": not any(one.problem for one in found), "checks": [one._asdict() for one in found]})
    if any(one.problem for one in found):
        raise typer.Exit(2)


def version(as_json: AsJson = False) -> None:
    """Show the version."""
    if as_json:
        print_json({"version": __version__})
    else:
        print(f"serai {__version__}")


def show_help(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]", help="The command to explain.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a command does, and its options."""
    here: Any = context.find_root()
    for word in words or ():
        known = getattr(here.command, "commands", {})
        if word not in known:
            raise BadInput(f'no command "{word}"; {did_you_mean(word, known) if known else "it has none"}')
        here = type(here)(known[word], info_name=word, parent=here)
    if as_json:
        print_json({"help": here.get_help()})
    else:
        print(here.get_help())


def _protocol_as_dict(protocol: Protocol) -> dict[str, Any]:
    """A protocol and its settings, ready for JSON."""
    fields = protocol.settings.model_fields
    return {
        "name": protocol.name,
        "title": protocol.title,
        "paper": protocol.paper,
        "settings": [_setting(key, field) for key, field in fields.items() if key not in ("name", "file")],
    }


def _setting(key: str, field: FieldInfo) -> dict[str, Any]:
    """One setting as a scenario file writes it: key, default with its unit, choices, meaning."""
    from serai.core.units import quantity_of

    unit = quantity_of(field)
    several = get_origin(field.annotation) is tuple
    kind = get_args(field.annotation)[0] if several else field.annotation
    choices = [False, True] if kind is bool else list(get_args(kind))
    return {
        "name": field.alias or key,
        "default": unit.format(field.default) if unit else field.default,
        "choices": choices,
        "meaning": field.description,
    }


def _protocol_as_text(protocol: Protocol) -> str:
    """A protocol with its paper, and each setting with default, choices and meaning."""
    from serai.own.loading import Own

    lines = [f"{protocol.name}: {protocol.title}", f"    {protocol.paper}"]
    settings = _protocol_as_dict(protocol)["settings"]
    if isinstance(protocol.own, Own):  # what its author declares is what one looks for
        common = [field.alias or key for key, field in protocol.own.family.settings.model_fields.items()]
        own = [setting for setting in settings if setting["name"] not in common]
        lines += [" of its own:" if own else " of its own: no settings", *_settings_as_text(own)]
        lines.append(" as every protocol of its kind:")
        settings = [setting for setting in settings if setting["name"] in common]
    return "\n".join([*lines, *_settings_as_text(settings)])


def _settings_as_text(settings: Iterable[dict[str, Any]]) -> list[str]:
    lines = []
    for setting in settings:
        default_is = setting["default"]
        others = [
            json.dumps(choice)
            for choice in setting["choices"]
            if choice != default_is and not (isinstance(default_is, tuple) and choice in default_is)
        ]
        default = f"  {setting['name']} = {json.dumps(setting['default'])}"
        lines.append(default + (f"  (or {', '.join(others)})" if others else ""))
        lines += textwrap.wrap(setting["meaning"], WIDTH - 2, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return lines


def doctor(as_json: AsJson = False) -> None:
    """Check that this machine is ready to run serai."""
    from serai.cli.doctor import check_machine

    checks = check_machine()
    if as_json:
        print_json({"ok": all(check.ok for check in checks), "checks": [vars(check) for check in checks]})
    else:
        print(_checked(checks))
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def _checked(checks: Iterable[Check]) -> str:
    """What `serai doctor` found, with what to do where something is missing."""
    lines = []
    for check in checks:
        lines.append(f" {'ok' if check.ok else '!!'}  {check.name:<9} {check.found}")
        lines += [] if check.ok else [f"     {check.advice}"]
    return "\n".join(lines)
