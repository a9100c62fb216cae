"""Why a node cannot listen somewhere: a port in use says by what, where the system tells."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Final

from serai.core.errors import BadInput

_LISTENS: Final = "0A"  # TCP_LISTEN in /proc/net/tcp


def cannot_listen(what: str, host: str, port: int, error: OSError) -> BadInput:
    """What to tell whoever has started the node."""
    said = f"{what} cannot listen on {host}:{port}: {error.strerror or error}"
    if error.errno == errno.EADDRINUSE:
        holder = listener(port)
        said = f"{what} cannot listen on {host}:{port}: address already in use{f' by {holder}' if holder else ''}"
    return BadInput(said)


def listener(port: int, proc: Path = Path("/proc")) -> str:
    """The process that listens on a port of this machine, as Linux tells; "" where it does not."""
    sockets = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{fields[9]}]")
    for process in proc.glob("[0-9]*") if sockets else ():
        try:
            if any(str(file.readlink()) in sockets for file in (process / "fd").iterdir()):
                return f"{(process / 'comm').read_text().strip()} (process {process.name})"
        except OSError:  # it is another user's, or has just ended
            continue
    return ""
