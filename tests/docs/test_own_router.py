"""The pages on routers of one's own: the tutorial, command by command; and the router that is compiled."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from serai.cli import execute
from serai.opportunistic.kit.checks import TRIAL
from serai.opportunistic.kit.family import ROUTERS
from serai.opportunistic.testing import world
from serai.own.checking import check_protocol
from serai.own.loading import find_own
from tests.adopted import forget_adopted as forget_adopted
from tests.effort import THOROUGH

DOCS = Path(__file__).parents[2] / "docs" / "opportunistic"


def blocks(text: str) -> dict[str, list[str]]:
    """The files that a page shows, by their names."""
    found: dict[str, list[str]] = {}
    for block, name in re.findall(r"```\w+\n(# (\S+\.\w+)\n.*?)```", text, flags=re.DOTALL):
        found.setdefault(name, []).append(block)
    return found


def follow(text: str, folder: Path, capfd: Any) -> dict[str, str]:
    """Do what a page says, from its top to its end: files as they are shown, then the commands below them."""
    files, said = blocks(text), {}
    for part in re.findall(r"```\w+\n# \S+\.\w+\n.*?```|^ {4}(?:serai|python) [^\n]*", text, re.DOTALL | re.M):
        if part.startswith("```"):
            name = re.search(r"# (\S+)", part)[1]  # type: ignore[index]
            (folder / name).write_text(files[name].pop(0))
            continue
        line = part.strip().replace("--seeds 10", "--seeds 3")
        program, *words = line.split()
        if program == "serai":
            assert execute(words) == 0, (line, capfd.readouterr())
        else:
            names = runpy.run_path(words[-1])
            for test in [value for name, value in names.items() if name.startswith("test_")]:
                test()
        said[line] = capfd.readouterr().out
    return said


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: Any) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    yield tmp_path
    sys.modules.pop("mine", None)


def test_the_tutorial_does_what_it_says(in_folder: Path, capfd: Any) -> None:
    text = (DOCS / "tutorial.md").read_text()
    said = follow(text[: text.index("## 5.")], in_folder, capfd)
    assert "delivered     63.9 %" in said["serai run people.toml --protocol mine.py --seed 1"]
    assert "delivered     88.1 %" in said["serai run people.toml --protocol dpsp --seed 1"]
    assert "copies = 8" in said["serai protocols mine.py"]
    assert said["serai protocols check mine.py"].count(" ok ") == 5


@pytest.mark.skipif(not THOROUGH, reason="a sweep takes a minute: make test-all")
def test_its_comparison_does_what_it_says(spark: Any, in_folder: Path, capfd: Any) -> None:
    text = (DOCS / "tutorial.md").read_text()
    (in_folder / "people.toml").write_text(blocks(text)["people.toml"][0])
    (in_folder / "mine.py").write_text(blocks(text)["mine.py"][1])
    said = follow(text[text.index("## 5.") :], in_folder, capfd)["python compare.py"]
    assert said.count("bytes_per_delivery") == said.count("delivery_ratio") == 3
    assert said.count("true") >= 3
    assert (in_folder / "runs" / "mine" / "report.html").is_file()
    assert list((in_folder / "runs" / "mine" / "figures").glob("*.svg"))


def test_its_test_runs_where_the_tutorial_says_and_inside_the_repository_too(tmp_path: Path) -> None:
    text = (DOCS / "tutorial.md").read_text()
    assert "a folder outside the repository" in text
    assert "\n    python -m pytest test_mine.py\n" in text
    (tmp_path / "mine.py").write_text(blocks(text)["mine.py"][1])
    (tmp_path / "test_mine.py").write_text(blocks(text)["test_mine.py"][0])
    settings = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    for inside in (False, True):
        if inside:
            (tmp_path / "pyproject.toml").write_text(settings[settings.index("[tool.pytest") :])
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_mine.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        assert "1 passed" in done.stdout


def test_p_values_are_shown_with_their_exponents() -> None:
    for page in (DOCS / "tutorial.md", DOCS.parent / "sweep.md"):
        shown = re.findall(r"paired\(.*\)\.show\((.*)\)", page.read_text())
        assert shown == ["truncate=False"], page


def test_a_mistake_is_told_as_the_tutorial_says(tmp_path: Path, capfd: Any) -> None:
    text = (DOCS / "tutorial.md").read_text()
    (tmp_path / "people.toml").write_text(blocks(text)["people.toml"][0])
    broken = blocks(text)["mine.py"][0].replace("return peer.wants(copy) or peer.note", "peer.wants(copy) or peer.note")
    (tmp_path / "mine.py").write_text(broken)
    assert execute(["run", str(tmp_path / "people.toml"), "--protocol", str(tmp_path / "mine.py")]) == 2
    shown = re.search(r"`mine.py(:\d+: Climb.offers: answers None, not True or False) \(node", text)
    assert shown is not None
    assert f"mine.py{shown[1]} (node " in capfd.readouterr().err


def test_the_acknowledgements_of_the_reference_clear_stores(tmp_path: Path) -> None:
    file = tmp_path / "acks.py"
    file.write_text(blocks((DOCS / "own.md").read_text())["acks.py"][0])
    own = find_own(file, None, [ROUTERS])
    assert [one.problem for one in check_protocol(own, TRIAL, worlds=20)] == [""] * 5
    back_again = world(
        "0-1 @ 0..10, 1-2 @ 20..30, 1-2 @ 40..50, 0-1 @ 60..70", publish="0 news @ 5 100 B", subscribe="2 news"
    )
    with own.executed() as cls:
        ran = back_again.run(cls)
    assert [row[2:] for row in ran.deliveries] == [(2, 2)]
    assert sorted(row[1:] for row in ran.drops) == [(0, 0, "evicted"), (0, 1, "evicted"), (0, 2, "evicted")]


def compared(folder: Path) -> str:
    """A program that runs the compiled router and its plain class over random worlds."""
    return f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from types import ModuleType
from serai.opportunistic import protocols
share = ModuleType("share")
exec(Path("share.py").read_text(), share.__dict__)
protocols.ROUTING_PROTOCOLS = (*protocols.ROUTING_PROTOCOLS, share.PROTOCOL)
from serai.opportunistic.engine.loop import simulate
from serai.opportunistic.kit.checks import random_world
from serai.opportunistic.kit.family import ROUTERS
from serai.own.loading import find_own, own_protocol
own = own_protocol(find_own(Path("plain.py").absolute(), None, [ROUTERS]))
for seed in range({30 if THOROUGH else 8}):
    world, medium = random_world(seed)
    chosen = {{"copies": 7, "share": [0.1, 0.5, 0.7][seed % 3]}}
    fast, plain = simulate(world, medium, share.Settings(**chosen)), own.simulate(world, medium, own.settings(**chosen))
    rows = [sorted(one.transfer_log.tolist(), key=lambda row: (row[1], row[4:6])) for one in (fast, plain)]
    assert rows[0] == rows[1], seed
    print(len(rows[0]))
"""


def test_the_compiled_router_of_the_page_is_its_plain_class(tmp_path: Path) -> None:
    shown = blocks((DOCS / "compiled.md").read_text())
    for name in ("plain.py", "share.py"):
        (tmp_path / name).write_text(shown[name][0])
    environment = os.environ | {"NUMBA_DISABLE_JIT": "0" if THOROUGH else "1"}  # compiling takes half a minute
    command = [sys.executable, "-c", compared(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sum(map(int, done.stdout.split())) > 100
