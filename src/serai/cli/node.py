"""The commands of live nodes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from serai.cli.options import PLAIN, AsJson, print_json
from serai.core.errors import BadInput, CannotRun

if TYPE_CHECKING:
    from serai.node.client import Node as Application

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
    days: Annotated[int, typer.Option("--days", metavar="N", min=1, help="How long the certificate is valid.")] = 3650,
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
    days: Annotated[int, typer.Option("--days", metavar="N", min=1, help="How long the certificate is valid.")] = 1825,
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
    verbose: Annotated[bool, typer.Option("--verbose", help="Log more of what happens.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run a node until it is stopped (Ctrl-C, SIGTERM)."""
    from serai.node.checked import hand_over
    from serai.node.config import read_config

    settings = read_config(config)
    hand_over(settings.model_dump() | {"folder": settings.folder}, verbose=verbose, as_json=as_json)


WhichNode = Annotated[
    str | None,
    typer.Option(
        "--node", metavar="NODE", help="Its folder, or HOST:PORT; default: on this machine.", show_default=False
    ),
]
Quality = Annotated[int, typer.Option("--qos", metavar="Q", min=0, max=2, help="Quality of service: 0, 1 or 2.")]
UserName = Annotated[
    str | None, typer.Option("--user", metavar="U", help="Your user name; the password is in SERAI_PASSWORD.")
]


@nodes.command("status")
def node_status(node: WhichNode = None, as_json: AsJson = False) -> None:
    """Show a running node: neighbours, store, applications."""
    import http.client

    from serai.node.status import summary

    host, port = _door(node, "web")
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", "/status.json", headers={"Host": "localhost"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200 or not isinstance(status := json.loads(body), dict):
            raise ValueError(answer.reason)
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise CannotRun(f"no node's page at {host}:{port}: {why}; `serai node run` starts one") from None
    finally:
        connection.close()
    if as_json:
        print_json(status)
    else:
        print(summary(status))


@nodes.command("publish")
def node_publish(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to publish on.", show_default=False)],
    payload: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="The message; default: each line of stdin.")
    ] = None,
    node: WhichNode = None,
    qos: Quality = 1,
    retain: Annotated[bool, typer.Option("--retain", help="Retain it for those who subscribe later.")] = False,
    lifetime: Annotated[
        str | None, typer.Option("--lifetime", metavar="T", help="How long the message lives, such as '2 h'.")
    ] = None,
    user: UserName = None,
    as_json: AsJson = False,
) -> None:
    """Publish a message, or each line of stdin as one."""
    import asyncio

    from serai.core.units import TIME, parse_quantity

    try:
        lifetime_s = None if lifetime is None else max(1, round(parse_quantity(lifetime, TIME)))
    except ValueError as error:
        raise BadInput(f"--lifetime: {error}") from None
    lines = [payload] if payload is not None else (line.rstrip("\n") for line in sys.stdin)

    async def send() -> int:
        sent = 0
        async with _application(node, user) as there:
            for line in lines:
                await there.publish(topic, line, qos=qos, retain=retain, lifetime_s=lifetime_s)
                sent += 1
        return sent

    sent = asyncio.run(send())
    if as_json:
        print_json({"topic": topic, "published": sent})
    else:
        print(f"{sent} published on {topic}", file=sys.stderr)


@nodes.command("subscribe")
def node_subscribe(
    filter: Annotated[str, typer.Argument(metavar="FILTER", help="Topics; + and # stand for any.")] = "#",
    where: Annotated[
        str, typer.Option("--where", metavar="C", help="Only messages that meet this condition: t > 30.")
    ] = "",
    count: Annotated[
        int | None, typer.Option("--count", metavar="N", min=1, help="Stop after this many messages.")
    ] = None,
    node: WhichNode = None,
    qos: Quality = 1,
    user: UserName = None,
    as_json: AsJson = False,
) -> None:
    """Print messages as they come, one per line: topic, then text."""
    import asyncio

    async def listen() -> None:
        async with _application(node, user) as there:
            messages, heard = there.messages(filter, where=where, qos=qos), 0
            while heard != count:
                one = await anext(messages)
                text = one.payload.decode(errors="replace")
                said = {"topic": one.topic, "payload": text, "retained": one.retained}
                print(json.dumps(said, ensure_ascii=False) if as_json else f"{one.topic} {text}", flush=True)
                heard += 1
            await messages.aclose()

    asyncio.run(listen())


@nodes.command("password")
def node_password(as_json: AsJson = False) -> None:
    """Read a password and print the hash that node.toml holds."""
    import getpass
    import secrets

    from serai.node.mqtt.access import hash_password

    typed = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not typed:
        raise BadInput("no password: type one, or give it as a line on stdin")
    kept = hash_password(typed.encode(), secrets.token_bytes(16))
    print_json({"password": kept}) if as_json else print(kept)


@nodes.command("demo")
def node_demo(as_json: AsJson = False) -> None:
    """Play three nodes and a ferry on this machine, in 15 seconds."""
    from serai.node.demo import play

    lines: list[str] = []
    as_it_should_be = play(lines.append if as_json else print)
    if as_json:
        print_json({"as_it_should_be": as_it_should_be, "told": lines})
    if not as_it_should_be:
        raise CannotRun("not every message arrived exactly once: is this machine very busy?")


def _application(node: str | None, user: str | None) -> Application:
    """A connection to a node, as applications have it."""
    from serai.node.client import Node

    host, port = _door(node, "mqtt")
    password = os.environ.get("SERAI_PASSWORD", "").encode() if user else None
    return Node(host, port, user=user, password=password)


def _door(node: str | None, name: str) -> tuple[str, int]:
    """Where a node answers: as its configuration says, or as was told."""
    from serai.node.checked import split_address
    from serai.node.config import read_config

    if node is None:
        return "127.0.0.1", {"mqtt": 1883, "web": 8080}[name]
    if Path(node).exists():
        listen: str | None = getattr(read_config(Path(node)), name).listen
        if listen is None:
            raise BadInput(f"{node}: {name}.listen is not set, so there is no way in")
        return split_address(listen)
    host, colon, port = node.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 0xFFFF:
        raise BadInput(f"--node {node}: no such folder or file, and not HOST:PORT")
    return host.strip("[]"), int(port)


@nodes.command("log")
def node_log(
    stores: Annotated[list[Path], typer.Argument(metavar="STORE", help="The stores of the nodes.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The run folder to write.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Make a run folder of what nodes have logged."""
    from serai.node.log import write_recorded

    run = write_recorded(stores, out)
    if as_json:
        print_json({"run": str(out), "nodes": len(run.names), "counts": run.counts()})
    else:
        print(f"{', '.join(run.in_numbers())}: written to {out}")
        print(f"See it with: serai report {out}")
