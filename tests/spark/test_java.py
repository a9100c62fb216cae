"""Which Java is chosen, and that Spark's request for a missing module is dropped."""

import os
import subprocess
from pathlib import Path

import pytest

from serai.core.errors import CannotRun
from serai.spark import java


def fake_java(folder: Path, version: str) -> Path:
    """A command that says it is Java of that version, and otherwise repeats its arguments."""
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    answer = f"echo 'openjdk version \"{version}\"' >&2"
    command.write_text(f'#!/bin/sh\nif [ "$1" = -version ]; then {answer}; else printf "%s|" "$@"; fi\n')
    command.chmod(0o755)
    return command


@pytest.mark.parametrize(
    ("version", "taken"), [("17.0.15", True), ("21", True), ("11.0.2", False), ("1.8.0_402", False)]
)
def test_the_machines_java_is_taken_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, taken: bool
) -> None:
    command = fake_java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    chosen = java.choose_java()
    assert (chosen.command == command) is taken
    assert chosen.origin == ("of this machine" if taken else "bundled")


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, found = fake_java(tmp_path / "named", "17.0.1"), fake_java(tmp_path / "found", "21.0.1")
    monkeypatch.setenv("PATH", str(found.parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "named"))
    assert java.choose_java().command == named
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert java.choose_java().command == found


def test_without_any_java_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java, "bundled_java", lambda: None)
    with pytest.raises(CannotRun, match="install Java 17 or later"):
        java.choose_java()


def test_the_launcher_drops_one_argument_and_keeps_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = fake_java(tmp_path / "a 'quoted' place", "21")
    home = java.Java(command, "21", "of this machine").home()
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "it's", "$HOME", "-Xmx1g"]
    said = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True).stdout
    assert said == "-cp|a b||it's|$HOME|-Xmx1g|"
    assert os.access(home / "bin" / "java", os.X_OK)


def test_the_bundled_java_runs() -> None:
    found = java.bundled_java()
    assert found is not None
    assert int(found.version.split(".")[0]) >= java.OLDEST
