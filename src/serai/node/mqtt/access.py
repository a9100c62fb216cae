"""Who may connect, read and write: users with scrypt hashes and topic filters."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from serai.core.errors import BadInput
from serai.node.interests import covers, filter_problem, topic_matches

_N, _R, _P = 1 << 14, 8, 1  # 16 MiB and some 50 ms for each guess
_MEMORY: Final = 64 << 20


@dataclass(frozen=True)
class Access:
    """What a client may do: topics that one of the filters asks for."""

    read: tuple[str, ...] = ("#", "$SYS/#")
    write: tuple[str, ...] = ("#",)

    def __post_init__(self) -> None:
        if problems := [problem for filter in (*self.read, *self.write) if (problem := filter_problem(filter))]:
            raise BadInput("; ".join(problems))

    def may_read(self, filter: str) -> bool:
        """Whether all that the filter asks for may be read."""
        return any(covers(wide, filter) for wide in self.read)

    def may_write(self, topic: str) -> bool:
        """Whether messages may be published on the topic."""
        if "#" in self.write and topic[0] != "$":  # as it nearly always is
            return True
        return any(topic_matches(wide, topic) for wide in self.write)


@dataclass(frozen=True)
class User:
    """One user of the configuration; `password` as `hash_password` made it."""

    password: str
    access: Access = field(default_factory=Access)


def hash_password(password: bytes, salt: bytes) -> str:
    """What the configuration keeps instead of a password: `scrypt:N:r:p:SALT:HASH`, in hexadecimal."""
    return f"scrypt:{_N}:{_R}:{_P}:{salt.hex()}:{_hash(password, salt, _N, _R, _P).hex()}"


def password_problem(kept: str) -> str | None:
    """Why this is not what `hash_password` makes."""
    try:
        _parts(kept)
    except ValueError:
        return "not a password's hash: make one with `serai node password`"
    return None


def check_password(kept: str, password: bytes) -> bool:
    """Whether it is the user's password; takes its time, so not in the loop that serves everybody."""
    n, r, p, salt, hashed = _parts(kept)
    return hmac.compare_digest(hashed, _hash(password, salt, n, r, p))


def _parts(kept: str) -> tuple[int, int, int, bytes, bytes]:
    scheme, n, r, p, salt, hashed = kept.split(":")
    if scheme != "scrypt" or 128 * int(n) * int(r) > _MEMORY // 2 or not salt or not hashed:
        raise ValueError(kept)
    return int(n), int(r), int(p), bytes.fromhex(salt), bytes.fromhex(hashed)


def _hash(password: bytes, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password, salt=salt, n=n, r=r, p=p, maxmem=_MEMORY, dklen=32)


def allowed(users: Mapping[str, User], user: str | None, password: bytes | None, *, near: bool) -> Access | None:
    """What a client that says this may do; None: it may not connect. Without a name only from the machine itself."""
    if user is None:
        return Access() if near else None
    found = users.get(user)
    if found is None:
        # As slow as for a known name, or the time it takes would tell which names there are.
        _hash(password or b"", b"nobody", _N, _R, _P)
        return None
    return found.access if check_password(found.password, password or b"") else None
