"""What a node is set to: a TOML file, read into frozen settings, or else all its problems at once."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticCustomError

from serai.core.errors import BadInput, BadScenario, Problem, did_you_mean
from serai.core.units import Bytes, Seconds, WholeSeconds
from serai.node.bundle.eid import NAME
from serai.scenario.diagnostics import Sources
from serai.scenario.wording import dotted, in_words, value_at


def _is_name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise PydanticCustomError("name", 'letters, digits, ".", "_" and "-", at most 64, as in the name of a host')
    return text


def _is_address(text: str) -> str:
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.%\w]+)\]|([^:\[\]\s]+)):([0-9]{1,5})", text)
    if found is None or int(found[3]) > 65_535:
        raise PydanticCustomError("address", 'expected a host and a port, such as "192.168.1.7:4556" or "[::1]:4556"')
    return text


def _is_serial(text: str) -> str:
    if not re.fullmatch(r"[0-9A-Fa-f]+", text):
        raise PydanticCustomError("serial", "expected the serial number of a certificate, in hexadecimal digits")
    return text


Name = Annotated[str, AfterValidator(_is_name)]
HostPort = Annotated[str, AfterValidator(_is_address)]
Serial = Annotated[str, AfterValidator(_is_serial)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_by_name=True)


class NetworkTable(_Table):
    """The network that a node belongs to, and the files by which others know that it does."""

    name: Name = Field(description="name of the network; channels are dtn://NAME/~TOPIC")
    security: Literal["tls", "none"] = Field("tls", description="none: whoever can connect belongs to it")
    ca: str = Field("ca.pem", description="certificate of the network's authority")
    certificate: str = Field("node.pem", description="certificate of this node")
    private_key: str = Field("node.key", description="its private key")
    key: str = Field("network.key", description="key of the network: 64 hexadecimal digits")
    revoked: tuple[Serial, ...] = Field((), description="serial numbers of certificates that are not accepted")


class NeighbourTable(_Table):
    """A neighbour that is dialled."""

    address: HostPort = Field(description="where it is: host:port")
    name: Name | None = Field(None, description="its name, if it is known: its beacon then wakes the dialling")


class LinksTable(_Table):
    """Sessions with neighbours."""

    listen: HostPort | None = Field("0.0.0.0:4556", description="where sessions are taken")
    keepalive: WholeSeconds = Field(10, ge=1, le=600, description="so often a node is heard, at least")
    user_timeout: Seconds = Field(5.0, gt=0, le=600, description="after so long without an answer TCP gives up")
    dial_timeout: Seconds = Field(5.0, gt=0, le=600, description="for a connection")
    sessions: int = Field(64, ge=1, le=10_000, description="at most so many at once")


class BeaconTable(_Table):
    """Beacons, by which nodes find each other."""

    on: bool = Field(True, description="whether beacons are sent and heard")
    port: int = Field(3003, ge=1, le=65_535, description="UDP port")
    period: WholeSeconds = Field(10, ge=1, le=3600, description="between two beacons")
    quiet: bool = Field(False, description="leaves out the node's name")


class StoreTable(_Table):
    """What the node keeps on disk."""

    path: str = Field("node.db", description="the file")
    bytes: Bytes = Field(1 << 30, ge=1, description="of payloads carried for others")
    bundles: int = Field(1_000_000, ge=1, description="at most so many")
    free: Bytes = Field(64 << 20, ge=0, description="so much of the disk is left alone")
    durability: Literal["power", "crash"] = Field(
        "power", description="crash: safe against kill, not against power failure"
    )
    keep_own: int = Field(1, ge=0, description="neighbours that must have an own publication before it may be evicted")
    when_full: Literal["oldest", "soonest", "refuse"] = Field("oldest", description="what leaves a full store")


class UserTable(_Table):
    """Somebody who may connect from elsewhere."""

    password: str = Field(description="its hash: scrypt:N:r:p:SALT:HASH")
    read: tuple[str, ...] = Field(("#", "$SYS/#"), description="topic filters that may be subscribed to")
    write: tuple[str, ...] = Field(("#",), description="topic filters that may be published to")


class MqttTable(_Table):
    """The server for applications."""

    listen: HostPort | None = Field("127.0.0.1:1883", description="where clients connect")
    lifetime: Seconds = Field(7 * 86_400.0, gt=0, description="of a message whose publisher names none")
    session: Seconds = Field(30 * 86_400.0, gt=0, description="of a session of 3.1.1 that is not clean")
    largest: Bytes = Field(
        16 << 20, ge=1, le=64 << 20, description="the largest message: a node has it in memory when it comes and goes"
    )
    certificate: str | None = Field(None, description="a PEM file: the server then speaks TLS")
    private_key: str | None = Field(None, description="the PEM file of its key")
    anonymous: bool = Field(True, description="whether clients on this machine need no user")
    users: Mapping[str, UserTable] = Field({}, description="who may connect from elsewhere, by name")


class WebTable(_Table):
    """The page about the node."""

    listen: HostPort | None = Field("127.0.0.1:8080", description="where it is shown")


class NodeConfig(_Table):
    """A node."""

    name: Name = Field(description="of the node: dtn://NAME/")
    carries: bool = Field(True, description="whether it carries for others")
    clock: Literal["auto", "trusted", "untrusted"] = Field(
        "auto", description="auto: the kernel says whether it is right"
    )
    network: NetworkTable
    links: LinksTable = LinksTable()
    beacon: BeaconTable = BeaconTable()
    neighbours: tuple[NeighbourTable, ...] = ()
    store: StoreTable = StoreTable()
    mqtt: MqttTable = MqttTable()
    web: WebTable = WebTable()
    folder: Path = Field(Path(), exclude=True, description="of the file; other files are named as seen from here")


def read_config(path: Path) -> NodeConfig:
    """The configuration in a file; BadScenario with all its problems and their places."""
    if path.is_dir():
        path = path / "node.toml"
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"no such file: {path}; `serai node init` or `serai node enrol` make one") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}") from None
    return parse_config(text, str(path), path.parent)


def parse_config(text: str, source: str, folder: Path) -> NodeConfig:
    """The configuration that a text is."""
    sources = Sources(source, text)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        said = f"not valid TOML: {str(error).partition(' (at ')[0]}"
        if found is None:
            raise BadScenario([Problem("", said, source)]) from None
        position = sum(len(line) + 1 for line in text.split("\n")[: int(found[1]) - 1]) + int(found[2]) - 1
        raise BadScenario([sources.problem_at(position, said)]) from None
    problems = [sources.problem(("folder",), "unknown key", at_key=True)] if "folder" in data else []
    try:
        config = NodeConfig.model_validate({**data, "folder": folder}, strict=False)
    except ValidationError as error:
        problems += [_problem(details, data, sources) for details in error.errors(include_url=False)]
        raise BadScenario(sorted(dict.fromkeys(problems), key=lambda one: (one.line or 0, one.column or 0))) from None
    if problems:
        raise BadScenario(problems)
    return config


def _problem(details: ErrorDetails, data: Mapping[str, Any], sources: Sources) -> Problem:
    path = details["loc"]
    if details["type"] == "extra_forbidden":
        siblings = list(_keys_in(path[:-1]))
        return sources.problem(path, f"unknown key; {did_you_mean(str(path[-1]), siblings)}", at_key=True)
    context = details.get("ctx") or {}
    known = {dotted(path): field} if (field := _field(path)) else {}
    said = in_words(details["type"], details["msg"], context, path, data, known)
    if details["type"] == "missing" and field is not None:
        said = f"missing: {field.description}" if field.description else "missing table"
    if value_at(data, path) is None and details["type"] == "tuple_type":
        said = "expected a list"
    return sources.problem(path, said)


def _table_at(path: tuple[int | str, ...]) -> type[BaseModel] | None:
    """The table at a path."""
    table: type[BaseModel] = NodeConfig
    named = False
    for part in path:
        if isinstance(part, int) or named:  # one of several
            named = False
            continue
        field = table.model_fields.get(part)
        named = part == "users"
        if field is None:
            return None
        found = [
            kind for kind in (field.annotation, *getattr(field.annotation, "__args__", ())) if isinstance(kind, type)
        ]
        tables = [kind for kind in found if issubclass(kind, BaseModel)]
        if not tables:
            return None
        table = tables[0]
    return table


def _field(path: tuple[int | str, ...]) -> FieldInfo | None:
    table = _table_at(path[:-1])
    return table.model_fields.get(str(path[-1])) if table else None


def _keys_in(path: tuple[int | str, ...]) -> list[str]:
    table = _table_at(path)
    return [key for key in table.model_fields if key != "folder"] if table else []
