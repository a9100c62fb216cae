import re
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]


def test_help_lists_commands_by_purpose(shell: Run) -> None:
    answer = shell("--help")
    assert answer.code == 0
    assert answer.err == ""
    listed = re.findall(r"^(\w[\w ]+:)$|^  (\w+)  ", answer.out[answer.out.index("Simulate") :], flags=re.MULTILINE)
    assert ["".join(words) for words in listed] == [
        *("Simulate and compare:", "demo", "run", "sweep", "paper", "report", "replay"),
        *("Plan and prepare:", "plan", "scenario"),
        *("Data pipeline:", "match", "stream", "collect", "pipeline"),
        *("Live nodes:", "emulate", "node"),
        *("Housekeeping:", "protocols", "doctor", "version", "help", "examples"),
    ]


@pytest.mark.parametrize(
    "command",
    [
        "--help",
        "demo --help",
        "run --help",
        "sweep --help",
        "paper --help",
        "report --help",
        "replay --help",
        "emulate --help",
        "scenario --help",
        "scenario list --help",
        "scenario show --help",
        "scenario check --help",
        "scenario new --help",
        "scenario schema --help",
        "match --help",
        "stream --help",
        "collect --help",
        "pipeline --help",
        "pipeline run --help",
        "pipeline status --help",
        "pipeline retry --help",
        "examples copy --help",
        "node --help",
        "node init --help",
        "node network --help",
        "node enrol --help",
        "node run --help",
        "node status --help",
        "node publish --help",
        "node subscribe --help",
        "node password --help",
        "node demo --help",
        "protocols --help",
        "doctor --help",
        "protocols",
        "scenario list",
    ],
)
def test_what_is_printed_fits_in_80_columns_and_is_not_cut_off(serai: Run, command: str) -> None:
    answer = serai(*command.split())
    assert answer.code == 0
    assert max(map(len, answer.out.splitlines())) <= 80
    assert "..." not in answer.out.replace("]...", "]")  # an argument that may stand several times


def test_without_a_command_there_is_help(serai: Run) -> None:
    assert serai() == serai("--help")
    assert serai("scenario") == serai("scenario", "--help")


def test_help_is_a_command_too(serai: Run) -> None:
    assert serai("help").out == serai("--help").out
    assert serai("help", "scenario", "check").out == serai("scenario", "check", "--help").out
    answer = serai("help", "scenaro")
    assert (answer.code, answer.err) == (2, 'no command "scenaro"; did you mean "scenario"?\n')
    assert "it has none" in serai("help", "run", "fast").err


def test_version_is_a_command_too(serai: Run) -> None:
    assert serai("version").out == serai("--version").out


def test_shells_can_complete(shell: Run) -> None:
    answer = shell(_SERAI_COMPLETE="complete_bash", COMP_WORDS="serai scen", COMP_CWORD="1")
    assert answer.out.split() == ["scenario"]


def test_version(serai: Run) -> None:
    answer = serai("--version")
    assert (answer.code, answer.out) == (0, "serai 0.1.0\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("rum ced", "'run'"),
        ("protocol", "'protocols'"),
        ("scenario chek x.toml", "'check'"),
        ("run ced --sed 3", "--seed"),
        ("run ced --protocol cde", '"ced"'),
        ("run cedd", '"ced"'),
        ("scenario new mine.toml --from feild", '"field"'),
        ("protocols cett", '"cet"'),
        ("run ced --set protocol.alhpa=3", '"alpha"'),
        ("run ced --set protcol.alpha=3", '"protocol"'),
    ],
)
def test_a_misspelt_word_is_recognised(serai: Run, typed: str, meant: str) -> None:
    answer = serai(*typed.split())
    assert answer.code == 2
    assert answer.out == ""
    assert meant in answer.err
