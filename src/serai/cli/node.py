"""The commands of live nodes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from serai.cli.options import PLAIN, AsJson, print_json
from serai.core.errors import BadInput, CannotRun

nodes = typer.Typer(**PLAIN)

NodeName = Annotated[str, typer.Argument(metavar="NAME", help="What the node is called.", show_default=False)]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="The folder to write; default: the name.")]


@nodes.callback(invoke_without_command=True)
def _node(context: typer.Context) -> None:
    """Live nodes: make a network, enrol nodes, run one."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@nodes.command("init")
def node_init(
    name: NodeName,
    network: Annotated[str, typer.Option("--network", metavar="NET", help="The network that it belongs to.")] = "home",
    out: Out = None,
    as_json: AsJson = False,
) -> None:
    """Write the folder of a node without keys, to try things out."""
    from serai.node.folder import init

    folder = out or Path(name)
    init(name, network, folder)
    if as_json:
        print_json({"node": name, "network": network, "folder": str(folder)})
    else:
        print(f"{folder / 'node.toml'} written, without keys: whoever can connect belongs to the network {network}.")
        print(f"Run it with: serai node run {folder}")


@nodes.command("network")
def node_network(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the network is called.", show_default=False)],
    out: Out = None,
    days: Annotated[int, typer.Option("--days", metavar="N", min=1, help="How long it is valid.")] = 3650,
    as_json: AsJson = False,
) -> None:
    """Make a network: its authority and its key, on your own machine."""
    make_network, _ = _keys()
    folder = out or Path(name)
    make_network(name, folder, datetime.now(UTC), days)
    if as_json:
        print_json({"network": name, "folder": str(folder)})
    else:
        print(f"{folder} holds the keys of the network {name}: keep it safe, and off the nodes.")
        print(f"Next: serai node enrol NODE --network {folder}")


@nodes.command("enrol")
def node_enrol(
    name: NodeName,
    network: Annotated[
        Path, typer.Option("--network", metavar="DIR", help="The folder of the network.", show_default=False)
    ],
    out: Out = None,
    days: Annotated[int, typer.Option("--days", metavar="N", min=1, help="How long it is valid.")] = 1825,
    as_json: AsJson = False,
) -> None:
    """Write the folder of a node of a network: settings and keys."""
    _, enrol = _keys()
    folder = out or Path(name)
    serial = enrol(name, network, folder, datetime.now(UTC), days)
    if as_json:
        print_json({"node": name, "folder": str(folder), "serial": serial})
    else:
        print(f"{folder} is for the node {name}: copy it there, whole, and run: serai node run {folder.name}")
        print(f"Serial number of its certificate, to revoke it: {serial}")


def _keys() -> tuple[Callable[..., None], Callable[..., str]]:
    """What makes networks and enrols nodes, where the package for it is installed."""
    try:
        from serai.node.keys import enrol, make_network
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "cryptography":
            raise
        raise BadInput("making keys needs the package cryptography: pip install 'serai[keys]'") from None
    return make_network, enrol


@nodes.command("run")
def node_run(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="node.toml, or its folder.", show_default=False)],
    verbose: Annotated[bool, typer.Option("--verbose", help="Say more of what happens.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a node until it is told to stop (Ctrl-C, SIGTERM)."""
    import logging

    from serai.node.config import read_config
    from serai.node.daemon import Ports, run, serve

    settings = read_config(config)
    logging.basicConfig(format="%(message)s", level=logging.DEBUG if verbose else logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.WARNING)

    def ready(ports: Ports) -> None:
        if as_json:
            print(json.dumps({"node": settings.name, "network": settings.network.name, "ports": ports}), flush=True)
        else:
            doors = ", ".join(f"{name} {port}" for name, port in ports.items() if port is not None)
            print(f"node {settings.name} of the network {settings.network.name} is up; ports: {doors}", flush=True)

    try:
        run(serve(settings, ready))
    except CannotRun as error:
        print(error, file=sys.stderr)
        raise typer.Exit(3) from None
