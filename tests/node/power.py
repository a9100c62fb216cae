"""Power failures of a running node: what it wrote, up to any moment, as a disk would have it then.

strace writes down what a node does to its files and what it says to others, in one order. A disk keeps what was
synced; of what was written since it may have anything, in any order, and sectors of a write without the rest of it.
Names in a directory are safe when the directory was synced; before that an earlier state of it may come back.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

CALLS = "openat,pwrite64,ftruncate,fdatasync,fsync,unlink,rename,sendto,write,writev"
TRACING = ["-f", "-y", "-xx", "-s", "1000000", "-e", f"trace={CALLS}"]
_SECTOR = 512
_RETURNED = r"\) += (?P<result>-?\d+).*"
_INTERRUPTED = r" <unfinished \.\.\.>(?:\) += \?.*)?|\) += \?.*"  # by another thread's turn, or by the process's end
_BEGUN = re.compile(rf"(?P<pid>\d+) +(?P<call>\w+)\((?P<given>.*?)(?:{_RETURNED}|{_INTERRUPTED})$")
_RESUMED = re.compile(r"(?P<pid>\d+) +<\.\.\. (?P<call>\w+) resumed>.*\) += (?P<result>-?\d+)")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_FILE = re.compile(r"(-?\d+)<((?:\\x[0-9a-f]{2})*)[^>]*>")


class Event(NamedTuple):
    """Something that a node did."""

    call: str
    name: str = ""  # of a file, or a number for a connection
    data: bytes = b""
    number: int = 0  # an offset, or a length
    to: str = ""


def read_trace(path: Path, store: str) -> list[Event]:
    """What was done to a store, and said to others; a sync counts when it is over."""
    events: list[Event] = []
    syncing: dict[str, Event] = {}
    for line in path.read_text().splitlines():
        if (resumed := _RESUMED.match(line)) is not None:
            if resumed["pid"] in syncing:
                events.append(syncing.pop(resumed["pid"]))
            continue
        begun = _BEGUN.match(line)
        if begun is None or (begun["result"] or "0").startswith("-"):
            continue
        for event in _events(begun["call"], begun["given"]):
            if event.call != "say" and not _matters(event, store):
                continue
            if event.call in ("sync", "sync names") and begun["result"] is None:
                syncing[begun["pid"]] = event
            else:
                events.append(event)
    return events


def _matters(event: Event, store: str) -> bool:
    """Files of the store, but for those that are only for processes that run at the same time; and their folder."""
    name = Path(event.name).name
    return event.call == "sync names" or (name.startswith(store) and not name.endswith(("-shm", ".lock")))


def _is_socket(name: str) -> bool:
    """asyncio says what it has to say by sendto, uvloop as to a file."""
    return name.startswith(("TCP:", "TCPv6:", "socket:"))


def _events(call: str, given: str) -> Iterator[Event]:
    texts = [bytes.fromhex(text.replace("\\x", "")) for text in _TEXT.findall(given)]
    files = [(number, bytes.fromhex(text.replace("\\x", "")).decode()) for number, text in _FILE.findall(given)]
    rest = _TEXT.sub('""', given)
    if call == "openat" and "O_CREAT" in given:
        yield Event("create", texts[0].decode())
    elif call == "unlink":
        yield Event("unlink", texts[0].decode())
    elif call == "rename":
        yield Event("rename", texts[0].decode(), to=texts[1].decode())
    elif call == "sendto" or (call in ("write", "writev") and files and _is_socket(files[0][1])):
        yield Event("say", files[0][0] if files else "", b"".join(texts))
    elif call == "pwrite64" and files:
        yield Event("write", files[0][1], texts[0], int(rest.rsplit(", ", 1)[1]))
    elif call == "ftruncate" and files:
        yield Event("truncate", files[0][1], number=int(rest.rsplit(", ", 1)[1]))
    elif call in ("fdatasync", "fsync") and files:
        yield Event("sync names" if Path(files[0][1]).is_dir() else "sync", files[0][1])


@dataclass
class File:
    """What is certainly on disk of a file, and what was written to it since."""

    kept: bytearray = field(default_factory=bytearray)
    since: list[Event] = field(default_factory=list)

    def change(self, content: bytearray, event: Event, sectors: Any = None) -> None:
        """Write or cut; `sectors(n)`: which of so many are written."""
        if event.call == "truncate":
            del content[event.number :]
            content.extend(bytes(event.number - len(content)))
            return
        end = event.number + len(event.data)
        content.extend(bytes(max(0, end - len(content))))
        pieces = range(0, len(event.data), _SECTOR)
        written = sectors(len(pieces)) if sectors else [True] * len(pieces)
        for start, is_written in zip(pieces, written, strict=True):
            if is_written:
                piece = event.data[start : start + _SECTOR]
                content[event.number + start : event.number + start + len(piece)] = piece

    def sync(self) -> None:
        """What was written is on disk."""
        for event in self.since:
            self.change(self.kept, event)
        self.since.clear()


class Disk:
    """A disk while a node writes to it: `after` takes the next event, `fails` says what is there if power fails now."""

    def __init__(self) -> None:
        self.names: dict[str, File] = {}
        self.earlier: list[dict[str, File]] = [{}]
        """States of the directory that may come back, since it was synced."""

    def after(self, event: Event) -> None:
        """One more."""
        if event.call == "sync names":
            self.earlier = [dict(self.names)]
            return
        if event.call in ("create", "unlink", "rename"):
            before = dict(self.names)
            if event.call == "create":
                self.names.setdefault(event.name, File())
            elif event.call == "unlink":
                self.names.pop(event.name, None)
            else:
                self.names[event.to] = self.names.pop(event.name)
            if before != self.names:
                self.earlier.append(dict(self.names))
        elif event.name in self.names:
            file = self.names[event.name]
            if event.call == "sync":
                file.sync()
            else:
                file.since.append(event)

    def fails(self, chance: random.Random, how: str) -> dict[str, bytes]:
        """The files after a power failure: with `all` that was written, with `none` that was not synced, or `some`."""
        names = {"all": self.names, "none": self.earlier[0]}.get(how) or chance.choice(self.earlier)
        found = {}
        for name, file in names.items():
            content = bytearray(file.kept)
            for event in file.since if how != "none" else ():
                torn = chance.random() < 0.3
                if how == "all":
                    file.change(content, event)
                elif torn:
                    file.change(content, event, lambda count: [chance.random() < 0.5 for _ in range(count)])
                elif chance.random() < 0.5:
                    file.change(content, event)
            found[name] = bytes(content)
        return found
