"""Where tables and folders lie: on this machine or on a shared disk; other addresses are refused."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from serai.core.errors import BadInput, CannotRun

_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # also as Path leaves it, with one slash


def is_address(path: str | Path) -> bool:
    """Whether this is the address of something that may not lie on this machine: hdfs://name/x, s3a://bucket/x."""
    return _ADDRESS.match(str(path)) is not None and not str(path).startswith("file:/")


def local_path(path: str | Path) -> Path:
    """The path of a file or folder that must be reached as one; `file:` addresses are such paths."""
    if is_address(path):
        raise BadInput(
            f"{path}: only folders of this machine, or of a disk that it shares with the workers, can be used here;"
            " name a folder, and copy it from there or to there"
        )
    text = str(path)
    return Path(unquote(urlsplit(text).path)) if text.startswith("file:/") else Path(text)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """While nobody else is at work in the folder; a process that dies leaves no lock behind."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise CannotRun(
                    f"{folder}: another serai is at work in this folder; wait for its end, or name another folder"
                ) from None
            # Some shared disks cannot lock: there nobody is kept out, as before.
        yield
    finally:
        with suppress(OSError):
            os.close(handle)
