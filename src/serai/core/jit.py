"""The only file that imports numba: how our loops are compiled, and where the machine code is kept.

`rule` marks a small pure function: plain Python when Python calls it, compiled into every kernel that calls
it. `kernel` marks a loop over arrays: compiled on first use, kept on disk. `step` and `engine` are the same
for the simulation's inner loops, which allocate nothing. Rules and steps are marked in `serai.core.rules`, without
numba; here it gets to know them.

numba notices an edited kernel, but not an edited rule in *another* file: the old machine code would go on
running. So the machine code of a module's kernels is kept in a folder named by a hash of the module and of
all of ours that it imports, directly or not: new source, new folder.
"""

import fcntl
import gc
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TextIO, TypeVar

import numba
import numpy as np
from numba.cpython.unsafe import numbers as _numbers
from numba.extending import overload, register_jitable

from serai.core.linking import link_inlined_functions_only
from serai.core.rules import bit_length, lowest_bit, pass_on_to, rule, step
from serai.core.shared import shared

__all__ = [
    "announced_compilation",
    "bit_length",
    "cache_folder",
    "compilation_notice",
    "engine",
    "kernel",
    "kernels_are_warm",
    "lowest_bit",
    "rule",
    "shared",
    "step",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {
    "cache": True,  # compiled once per source version, not once per process
    "nogil": True,  # kernels touch arrays only, so several runs may share a process by threads
    "fastmath": False,  # sums in the order written: the same seed gives the same bytes on every machine
    "error_model": "python",  # a division by zero is a bug and must raise, as it does without compilation
    # boundscheck stays unset: NUMBA_BOUNDSCHECK=1 turns it on for a test run
}

# Each call that passes a tuple of arrays counts references to every one of them up and down again. For an
# engine whose state is forty arrays that is nearly all of its time (measured: 866 ms a run with, 171 without).
# Code that allocates nothing needs no counting; nor may it return arrays, the caller would count one too few.
_NO_ALLOCATION: dict[str, Any] = {"_nrt": False}

# Rules and steps are called by compiled code alone: no need for a way in from elsewhere.
_INLINED: dict[str, Any] = {"no_cfunc_wrapper": True}

trailing_zeros: Any = _numbers.trailing_zeros  # an intrinsic: its Python signature is another
leading_zeros: Any = _numbers.leading_zeros

_CONFIG: Any = numba.config  # its names are made at run time, out of a type checker's sight
_PACKAGE = Path(__file__).resolve().parents[1]
_IMPORT = re.compile(r"^\s*(?:from|import) +(serai[\w.]*)(?: +import +(?:\(([^)]*)\)|([^\n(]*)))?", re.MULTILINE)
_NO_KERNELS = ("cli", "node", "pipeline", "planning", "replay", "report", "spark", "sweeping")
"""Packages without compiled code, which none of it imports."""
COMPILING_S = 20  # a protocol's kernels, at most, on a core of a few years ago
_FOLDER_NAME = re.compile(r"kernels-[0-9a-f]{16}")
_UNUSED_DAYS = 30
_MOST_KEPT = 200  # whoever edits the sources makes a new folder of some megabytes with every edit,
_IN_USE_DAYS = 1  # but what somebody uses today is kept: other versions may be at work beside this one


def _register(function: Callable[..., Any], is_step: bool) -> None:
    """Tell numba of a rule or a step, so that kernels may call it."""
    options = _INLINED | _NO_ALLOCATION | {"forceinline": True} if is_step else _INLINED
    register_jitable(**options)(function)


pass_on_to(_register)


def kernel(function: _Function) -> _Function:
    """Compile a loop over arrays on first use, and keep the machine code on disk."""
    _keep_code_of(function)
    compiled: _Function = numba.njit(**_OPTIONS)(function)
    return compiled


def engine(function: _Function) -> _Function:
    """A kernel that allocates nothing, for states of many arrays: see `_NO_ALLOCATION`."""
    _keep_code_of(function)
    compiled: _Function = numba.njit(**_OPTIONS, **_NO_ALLOCATION)(function)
    return compiled


@overload(lowest_bit, inline="always")
def _compiled_lowest_bit(bits: Any) -> Callable[[Any], Any]:
    def counted(bits: Any) -> Any:
        return trailing_zeros(bits)

    return counted


@overload(bit_length, inline="always")
def _compiled_bit_length(bits: Any) -> Callable[[Any], Any]:
    def counted(bits: Any) -> Any:
        return 64 - leading_zeros(np.int64(bits))

    return counted


def cache_folder() -> Path:
    """Where machine code is kept: one folder in it for each module with kernels, in each of its versions."""
    return _ROOT


def kernels_are_warm(group: str) -> bool:
    """Whether the kernels of `group` need no compiling: done before for these sources, or never done."""
    return bool(_CONFIG.DISABLE_JIT) or _marker(group).exists()


def compilation_notice(groups: Iterable[str], about_s: int = COMPILING_S) -> str:
    """What is said before kernels are compiled."""
    return f"compiling kernels of {', '.join(groups)} (once per version, about {about_s} s) ..."


@contextmanager
def announced_compilation(group: str, stream: TextIO | None = None, about_s: int = COMPILING_S) -> Iterator[None]:
    """Around the first call of a group of kernels: say (on stderr) what must be compiled first, and for how long."""
    if kernels_are_warm(group):
        yield
        return
    with _alone(group):  # another process may be compiling them: then wait, and load what it made
        if not kernels_are_warm(group):
            print(compilation_notice([group], about_s), file=stream or sys.stderr, flush=True)
        with _no_garbage_collection():
            yield
        with suppress(OSError):  # then the notice comes once more; the run itself has succeeded
            _marker(group).touch()


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A compiler makes millions of small objects, and most stay: looking through them takes a tenth of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def _alone(group: str) -> Iterator[None]:
    """Hold the lock of a group of kernels; where there can be none, every process compiles for itself."""
    try:
        lock = _marker(group).with_suffix(".lock").open("w")
    except OSError:
        yield
        return
    with lock:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _marker(group: str) -> Path:
    return _folder_of(_may_have_kernels()) / f"{group}.compiled"


@cache
def _may_have_kernels() -> frozenset[Path]:
    """The sources that kernels may come from: found once, since every run asks."""
    return frozenset(file for file in _PACKAGE.rglob("*.py") if file.relative_to(_PACKAGE).parts[0] not in _NO_KERNELS)


def _keep_code_of(function: Callable[..., Any]) -> None:
    """Make numba, which asks when a function is marked, keep its machine code in the folder of its sources."""
    _CONFIG.CACHE_DIR = str(_folder_of(_closure(Path(function.__code__.co_filename))))


@cache
def _closure(source: Path) -> frozenset[Path]:
    """The file and all of ours that it imports, directly or not: what its machine code may come from."""
    found, waiting = set(), [source]
    while waiting:
        source = waiting.pop()
        if source not in found:
            found.add(source)
            waiting += _imported(source)
    return frozenset(found)


@cache
def _imported(source: Path) -> list[Path]:
    """The files of ours that a source file names in its imports."""
    names = []
    for module, parenthesis, plain in _IMPORT.findall(source.read_text("utf-8")):
        names += [module, *(f"{module}.{name}" for name in re.findall(r"\w+", parenthesis or plain))]
    places = [_PACKAGE.parent.joinpath(*name.split(".")) for name in names]
    return [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]


@cache
def _folder_of(sources: frozenset[Path]) -> Path:
    """The folder of machine code that comes from these sources."""
    folder = _ROOT / f"kernels-{_stamp(sources)}"
    with suppress(OSError):  # a root that can no longer be written to: numba will say so
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)  # its date says when it was last used
    return folder


def _stamp(sources: Iterable[Path]) -> str:
    """A name for all that the machine code depends on besides the processor, which numba itself looks at."""
    stamp = hashlib.blake2b(digest_size=8)
    # The path counts because numba files code by path, the bounds check because numba's own key forgets it.
    context = (str(_PACKAGE), numba.__version__, sys.version, bool(_CONFIG.BOUNDSCHECK))
    stamp.update(repr(context).encode())
    for source in sorted(sources):
        text = source.read_bytes()
        stamp.update(f"{source} {len(text)}\n".encode())
        stamp.update(text)
    return stamp.hexdigest()


def _cache_root() -> Path:
    """The user's choice of a folder, or the usual place."""
    if chosen := os.environ.get("SERAI_CACHE_DIR"):
        return Path(chosen).absolute()
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen).absolute()
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen).absolute() / "serai"
    return Path.home() / ".cache" / "serai"


def _usable(folder: Path) -> bool:
    """Whether we can write to the folder, creating it if need be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _private_temporary_root() -> Path:
    """A temporary folder that belongs to this user alone, since machine code is loaded from it."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    root = Path(tempfile.gettempdir()) / f"serai-{user}"
    try:
        root.mkdir(mode=0o700, exist_ok=True)
        status = root.lstat()
    except OSError:
        return Path(tempfile.mkdtemp(prefix="serai-"))
    ours = not root.is_symlink() and (not hasattr(os, "getuid") or status.st_uid == user)
    return root if ours else Path(tempfile.mkdtemp(prefix="serai-"))


def _choose_root() -> Path:
    """The user's cache, or a temporary folder if that is read-only."""
    try:
        root = _cache_root()
    except RuntimeError:  # no home folder
        return _private_temporary_root()
    return root if _usable(root) else _private_temporary_root()


def _remove_unused(root: Path) -> None:
    """Remove what was not used for a month, and of what is not in use all but the latest folders."""
    now = time.time()
    oldest, in_use = now - _UNUSED_DAYS * 86_400, now - _IN_USE_DAYS * 86_400
    folders = [folder for folder in root.glob("kernels-*") if _FOLDER_NAME.fullmatch(folder.name)]
    last_used = sorted(((_last_used(folder), folder) for folder in folders), reverse=True)
    for rank, (used, folder) in enumerate(last_used):
        if used < oldest or (rank >= _MOST_KEPT and used < in_use):
            shutil.rmtree(folder, ignore_errors=True)


def _last_used(folder: Path) -> float:
    """When a process last chose the folder; never, if another process has just removed it."""
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


link_inlined_functions_only()
_ROOT = _choose_root()
_remove_unused(_ROOT)
