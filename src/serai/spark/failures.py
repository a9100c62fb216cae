"""What Spark says when it fails, in one sentence; the rest of it is of no use to whoever gave the command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from serai.core.errors import BadInput, CannotRun, SeraiError

_FULL = re.compile(r"No space left on device|Disk quota exceeded|\[Errno 28\]|\[Errno 122\]")
_NO_STORE = re.compile(
    r'No FileSystem for scheme "?([\w+.-]+)|ClassNotFoundException: Class (org\.apache\.hadoop\.fs\.\S+)'
)
_STORE = re.compile(r"(AWS Error [^(:]+|Generic \w+ error|Azure[^:]+|google::cloud[^:]+)")
_AWAY = re.compile(r"\[Errno \d+\]|OSError|AWS Error|Generic \w+ error|Input/output error|Stale file handle")
_NOISE = ("at ", "File ", "...", "Driver stacktrace", "Traceback", "Caused by", "SQLSTATE")


@contextmanager
def said_plainly(place: str | Path, kept: str = "") -> Iterator[None]:
    """Let Spark's errors, and those of its workers, come out as one sentence; `kept` says what is not lost."""
    try:
        yield
    except SeraiError:
        raise
    except Exception as error:
        raise plainly(error, place, kept) from error


def plainly(error: BaseException, place: str | Path, kept: str = "") -> BaseException:
    """The error as one sentence about the place, if it is Spark's or the disk's; other errors as they are."""
    if isinstance(error, SeraiError):
        return error
    text = str(error)
    if _is_of_a_table(error):
        return CannotRun(
            f"{place}: cannot be used now ({text.splitlines()[0][:200]}); {kept}give the same command again"
        )
    ours = isinstance(error, OSError) or type(error).__module__.partition(".")[0] in ("pyspark", "py4j", "grpc")
    if ours and _FULL.search(text):
        return CannotRun(f"{place}: no space left; {kept}free some space and give the same command again")
    if ours and (missing := _NO_STORE.search(text)):
        return BadInput(f"{place}: this Spark cannot read such addresses ({missing[1] or missing[2]} is missing)")
    if isinstance(error, OSError) and (away := _STORE.search(text)):
        return CannotRun(f"{place}: cannot be reached ({away[1]}); {kept}give the same command again")
    if isinstance(error, OSError) or not ours:
        return error
    return CannotRun(f"{place}: Spark gave up: {telling_line(text) or type(error).__name__}")


def may_pass(error: BaseException) -> bool:
    """Whether a disk or a store is to blame, which may be well again in a moment."""
    if isinstance(error, OSError) or _is_of_a_table(error):
        return True
    of_spark = type(error).__module__.partition(".")[0] in ("pyspark", "py4j")
    return of_spark and (_FULL.search(str(error)) or _AWAY.search(str(error))) is not None


def _is_of_a_table(error: BaseException) -> bool:
    """Whether Delta says it, whose errors are of no class that Python knows."""
    return type(error).__module__.partition(".")[0] in ("deltalake", "_internal")


def telling_line(text: str) -> str:
    """The line of Spark's many that says something: what a worker raised last, or else the first that is no frame."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[A-Za-z_.]+(Error|Exception|BadInput|CannotRun): ", line)]
    telling = raised or [line for line in lines if not line.startswith(_NOISE)]
    return (telling or lines or [""])[0][:300]
