"""The commands about serai itself: protocols and doctor."""

from __future__ import annotations

from typing import Annotated

import typer

from serai.cli.options import AsJson, print_json
from serai.core.errors import BadInput, did_you_mean


def protocols(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Only this protocol.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the protocols and their settings."""
    from serai.cli.present import protocol_as_dict, protocol_as_text
    from serai.kinds import PROTOCOLS

    if name is not None and name not in PROTOCOLS:
        raise BadInput(f'no protocol "{name}"; {did_you_mean(name, PROTOCOLS)}')
    chosen = [PROTOCOLS[name]] if name else list(PROTOCOLS.values())
    if as_json:
        print_json({"protocols": [protocol_as_dict(protocol) for protocol in chosen]})
    else:
        print("\n\n".join(protocol_as_text(protocol) for protocol in chosen))


def doctor(as_json: AsJson = False) -> None:
    """Check that this machine is ready to run serai."""
    from serai.cli.doctor import check_machine
    from serai.cli.present import checked

    checks = check_machine()
    if as_json:
        print_json({"ok": all(check.ok for check in checks), "checks": [vars(check) for check in checks]})
    else:
        print(checked(checks))
    if not all(check.ok for check in checks):
        raise typer.Exit(1)
