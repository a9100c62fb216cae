"""The folder of a node: its configuration, and its keys where it has some."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Final

from serai.core.errors import BadInput
from serai.core.placing import check_new
from serai.node.bundle.eid import NAME

NODE_TOML: Final = """\
name = "{node}"

[network]
name = "{network}"
security = "{security}"

# Neighbours that beacons do not reach:
# [[neighbours]]
# address = "192.168.1.7:4556"
"""


def init(node: str, network: str, folder: Path) -> None:
    """Write the folder of a node of a network without keys, to try things out."""
    check_name("node", node)
    check_name("network", network)
    write_folder(folder, {"node.toml": NODE_TOML.format(node=node, network=network, security="none")}, secret=())


def check_name(what: str, name: str) -> None:
    """Complain about a name that a node or a network cannot have."""
    if not NAME.fullmatch(name):
        raise BadInput(f'"{name}" cannot be the name of a {what}: letters, digits, ".", "_" and "-", at most 64')


def write_folder(folder: Path, files: dict[str, str], secret: Collection[str]) -> None:
    """Write a new folder: whole, or not at all; nobody else may read what is secret."""
    check_new(folder, folder, " is there already; remove it, or name another folder with --out")
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, text in files.items():
            handle = os.open(aside / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if name in secret else 0o644)
            with os.fdopen(handle, "w") as file:
                file.write(text)
        aside.chmod(0o755)
        aside.rename(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
