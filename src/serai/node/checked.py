"""A configuration that was read and checked, as a running node has it.

What reads and checks it (`serai.node.config`) takes as much memory as the node itself, and is needed once. So `serai
node run` hands over to a program that loads only what a running node needs: `python -m serai.node`, with the checked
settings in a file that only the two have open.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

from serai.core.errors import BadInput

if TYPE_CHECKING:
    from serai.node.config import NodeConfig


class Table(dict[str, Any]):
    """A table of the configuration; its keys are attributes, as those of `NodeConfig` are."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Start(NamedTuple):
    """What a node is started with."""

    config: NodeConfig
    verbose: bool
    as_json: bool


def hand_over(values: Mapping[str, Any], *, verbose: bool, as_json: bool) -> NoReturn:
    """Go on as the program that runs nodes; the process, its terminal and its standing with systemd stay."""
    with tempfile.TemporaryFile("w+") as file:
        json.dump({"config": values, "verbose": verbose, "as_json": as_json}, file, default=str)
        file.seek(0)
        os.set_inheritable(file.fileno(), True)
        sys.stdout.flush()
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # -X dev, -W error ...
        os.execv(sys.executable, [sys.executable, *flags, "-m", "serai.node", str(file.fileno())])


def taken_over(descriptor: int) -> Start:
    """What was handed over."""
    with open(descriptor, encoding="utf-8") as file:
        said = json.load(file, object_hook=Table)
    return Start(cast("NodeConfig", said.config), said.verbose, said.as_json)


def file_of(config: NodeConfig, name: str) -> Path:
    """A file that the configuration names, as seen from its folder."""
    return Path(config.folder) / name


def network_key(config: NodeConfig) -> bytes:
    """The key of the network; b"" where there is no security."""
    if config.network.security == "none":
        return b""
    path = file_of(config, config.network.key)
    try:
        text = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"network.key: cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if not re.fullmatch(r"[0-9A-Fa-f]{64}", text):
        raise BadInput(f"network.key: {path} holds no key of 64 hexadecimal digits; `serai node enrol` writes one")
    return bytes.fromhex(text)


def split_address(text: str) -> tuple[str, int]:
    """Host and port of an address that was checked."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)
