"""Nothing that a user can meet is left undocumented, and nothing documented is missing."""

import pkgutil
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from serai.cli import app
from serai.kinds import CATALOGUE, FIELD, PROTOCOLS
from serai.opportunistic.sections import OpportunisticScenario
from serai.scenario.load import builtin_names
from serai.scenario.section import PlanTable, Scenario, SweepTable
from serai.sweeping.columns import sweep_schema

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
TEXTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + [DOCS / page for page in PAGES]


def page(name: str) -> str:
    return (DOCS / name).read_text()


def code_words(text: str) -> set[str]:
    """Every word inside `code` or a code block."""
    blocks = re.findall(r"```.*?```", text, flags=re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    indented = re.findall(r"^ {4}.*$", text, flags=re.MULTILINE)
    return set(re.findall(r"[\w-]+", "\n".join(blocks + spans + indented)))


def sections(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every key of a scenario file with the table it stands in; protocols are looked at apart."""
    for name, field in model.model_fields.items():
        key = field.alias or name
        inner = section_model(field)
        if key == "protocol":
            continue
        if inner is None:
            yield prefix, key
        else:
            yield from sections(inner, key)


def section_model(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


@pytest.mark.parametrize(("table", "key"), list(sections(Scenario)))
def test_scenario_key_is_documented(table: str, key: str) -> None:
    words = code_words(page("scenario.md"))
    assert key in words, f"docs/scenario.md does not mention {key} of [{table}]"


@pytest.mark.parametrize(
    ("protocol", "key"),
    [
        (protocol.name, field.alias or key)
        for protocol in PROTOCOLS.values()
        for key, field in protocol.settings.model_fields.items()
    ],
)
def test_protocol_setting_is_documented(protocol: str, key: str) -> None:
    where = page_of(protocol)
    assert key in code_words(page(where)), f"docs/{where} does not mention {key} of {protocol}"


def page_of(protocol: str) -> str:
    """The page that has the settings of a protocol."""
    network = CATALOGUE.scenario_of(protocol).network
    if protocol == "serai":
        return "field/serai.md"
    return "opportunistic/dpsp.md" if network == "opportunistic" else f"{network}/protocols.md"


@pytest.mark.parametrize(
    ("protocol", "key", "choice"),
    sorted(
        {
            (protocol.name, key, choice)
            for protocol in PROTOCOLS.values()
            for key, field in protocol.settings.model_fields.items()
            for choice in get_args(field.annotation)
            if isinstance(choice, str)
        }
    ),
)
def test_choice_of_a_protocol_setting_is_documented(protocol: str, key: str, choice: str) -> None:
    where = page_of(protocol)
    assert choice in code_words(page(where)), f"docs/{where} does not mention {key} = {choice!r}"


@pytest.mark.parametrize("metric", FIELD.definitions)
def test_metric_is_documented(metric: str) -> None:
    assert metric in code_words(page("metrics.md"))


def commands(command: Any, path: str = "serai") -> Iterator[tuple[str, Any]]:
    """Every command that can be typed."""
    inner = getattr(command, "commands", {})
    if not inner:
        yield path, command
    for name, child in inner.items():
        yield from commands(child, f"{path} {name}")


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_documented_with_its_options(command: str) -> None:
    text = page("index.md")
    assert f"`{command}" in text
    options = [option for parameter in COMMANDS[command].params for option in parameter.opts if option[:2] == "--"]
    for option in options:
        assert f"`{option}" in text or option == "--help", f"docs/index.md does not mention {option} of {command}"


@pytest.mark.parametrize("command", COMMANDS)
def test_command_takes_json_and_says_what_it_does(command: str) -> None:
    assert any("--json" in parameter.opts for parameter in COMMANDS[command].params)
    assert COMMANDS[command].help


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_in_the_text_exist(text: Path) -> None:
    lines = re.findall(r"^ {4}(?:\.venv/bin/)?(serai|make) (.+)$|`(serai|make) ([^`]+)`", text.read_text(), flags=re.M)
    for line in lines:
        program, arguments = (line[0] or line[2]), (line[1] or line[3]).split("#")[0].split()
        if program == "make":
            assert all(re.search(rf"^{re.escape(word)}:", makefile(), flags=re.M) for word in arguments[:1]), line
        else:
            check_command(arguments)


def test_files_of_the_readme_are_there() -> None:
    """What its commands read exists, or a command before has written it."""
    written = {"mine.toml", "birds.toml"}
    for line in re.findall(r"^ {4}\.venv/bin/serai (.+)$", (ROOT / "README.md").read_text(), flags=re.M):
        words = line.split("#")[0].split()
        outs = {words[place + 1] for place, word in enumerate(words) if word == "--out"}
        for word in words[2:]:
            if re.search(r"\.(toml|csv|parquet|txt)$", word) and word not in outs | written:
                assert (ROOT / word).is_file(), line


def test_examples_are_small() -> None:
    assert sum(file.stat().st_size for file in (ROOT / "examples").rglob("*") if file.is_file()) < 1_000_000


def test_built_in_scenarios_and_protocols_are_named() -> None:
    (listed,) = re.findall(r"^\| `serai scenario list` .*$", page("index.md"), flags=re.M)
    assert set(builtin_names()) <= set(re.findall(r"`(\w+)`", listed))
    (named,) = re.findall(r"^\| `name` \| `\"ced\"` .*$", page("scenario.md"), flags=re.M)
    assert set(PROTOCOLS) == set(re.findall(r'`"([\w-]+)"`', named))


def makefile() -> str:
    return (ROOT / "Makefile").read_text()


def check_command(arguments: list[str]) -> None:
    """The command exists, and so do its options."""
    if arguments[0].startswith("--"):
        assert arguments[0] in ("--help", "--version", "--json", "--install-completion", "--show-completion"), arguments
        return
    groups = ("scenario", "node", "pipeline", "examples")
    path = " ".join(["serai", *arguments[: 2 if arguments[0] in groups else 1]])
    if path.removeprefix("serai ") in groups:
        return
    assert path in COMMANDS, arguments
    known = {option for parameter in COMMANDS[path].params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in arguments if word.startswith("--")} <= known | {"--help"}, arguments


def test_nav_lists_every_page() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    listed = sorted(re.findall(r"'([^']+\.md)'", str(nav)))
    assert listed == PAGES


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(text: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text.read_text()):
        assert target.startswith("https://") or (text.parent / target).exists(), target


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_code_that_the_text_names_exists(text: Path) -> None:
    spans = re.findall(r"`([^`\n]+)`", text.read_text())
    folders = r"(?:src|tests|benchmarks|examples|docs|tools|serai)"
    for span in spans:
        if path := re.fullmatch(rf"{folders}/[\w./-]*", span):
            assert (ROOT / path[0]).exists() or (ROOT / "src" / path[0]).exists(), span
        elif name := re.match(r"serai\.[a-z_]+(?:\.\w+)*", span):
            pkgutil.resolve_name(name[0])


def repository_files() -> list[Path]:
    """Every text file of the repository: those that git knows or would know."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):  # a source distribution has no git
        names = [path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.py")]
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def test_no_path_of_somebodys_machine() -> None:
    pattern = re.compile(r"(?<![\w.~])/(?:home|root|Users|work|tmp|opt)/\w")
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in repository_files()
        if path != Path(__file__)
        for line in path.read_text(errors="replace").splitlines()
        if pattern.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("column", ["point", "undelivered_pairs", "delay_bin", "delay_count"])
def test_column_of_a_sweep_is_documented(column: str) -> None:
    assert column in sweep_schema("field").names
    assert column in code_words(page("sweep.md"))


def test_sweep_and_plan_tables_are_documented() -> None:
    assert {field.alias or name for name, field in SweepTable.model_fields.items()} <= code_words(page("sweep.md"))
    assert set(PlanTable.model_fields) <= code_words(page("plan.md"))


def test_no_table_of_keys_has_a_key_twice() -> None:
    for name in ("scenario.md", "overlay/index.md", "opportunistic/index.md"):
        for table in re.findall(r"\| key \| default \|.*?\n\n", page(name), flags=re.DOTALL):
            keys = re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)
            assert len(keys) == len(set(keys)), (name, keys)


def test_every_router_is_named_where_the_page_begins() -> None:
    begin = page("opportunistic/index.md").partition("## ")[0]
    assert set(OpportunisticScenario.PROTOCOLS) <= code_words(begin)
