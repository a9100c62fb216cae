"""Text cut into words, words as numbers and names: against Python, one word at a time."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from serai.core.errors import BadInput
from serai.traces import words as module
from serai.traces.words import Words, chunks

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
in_one_file = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)


def read(tmp_path: Path, text: str, size: int = 1 << 20) -> list[Words]:
    path = tmp_path / "words.txt"
    path.write_bytes(text.encode())
    return list(chunks(path, size=size))


def slow_lines(text: str) -> list[list[str]]:
    lines = text.split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    return [
        re.split(r"[ \t\r]+", line.split("#")[0].strip(" \t\r")) if line.split("#")[0].strip(" \t\r") else []
        for line in lines
    ]


def lines_in(found: list[Words]) -> list[list[str]]:
    return [
        [words.word(place) for place in range(words.first[line], words.first[line + 1])]
        for words in found
        for line in range(words.counts.size)
    ]


@in_one_file
@given(st.text("ab1# \t\r\n", max_size=60), st.integers(1, 20))
def test_words_are_what_splitting_gives_in_pieces_of_any_size(tmp_path: Path, text: str, size: int) -> None:
    found = read(tmp_path, text, size)
    assert lines_in(found) == slow_lines(text)
    line = 1
    for words in found:
        assert words.first_line == line
        line += words.counts.size


written = st.one_of(
    st.text("0123456789.eE+-", min_size=1, max_size=12),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(lambda number: f"{number:.4f}"),
    st.integers(-(10**20), 10**20).map(str),
)


@in_one_file
@given(st.lists(written, min_size=1, max_size=20))
@example(["9007199254740993", "0.1", "1e23", "1e-400", "1e400", "-0", "+5", "nan", "inf", "1_0", ".", "1e", "5."])
def test_numbers_are_those_of_python_to_the_last_bit(tmp_path: Path, texts: list[str]) -> None:
    (words,) = read(tmp_path, " ".join(texts))
    values, fine = words.numbers(np.arange(len(texts)))
    for text, value, reads in zip(texts, values.tolist(), fine.tolist(), strict=True):
        expected = float(text) if NUMBER.fullmatch(text) else None
        assert reads == (expected is not None and abs(expected) != float("inf"))
        if reads:
            assert value == expected
            assert np.signbit(value) == np.signbit(expected)


@in_one_file
@given(st.lists(st.text("ab1", min_size=1, max_size=3), max_size=40))
def test_names_are_numbered_as_they_appear(tmp_path: Path, names: list[str]) -> None:
    book: dict[str, int] = {"known": 0}
    expected = {"known": 0}
    for words in read(tmp_path, " ".join(names)):
        numbers = words.names(np.arange(words.start.size), book)
        assert numbers.tolist() == [expected.setdefault(name, len(expected)) for name in names]
    assert book == expected


def test_many_names_make_the_table_grow(tmp_path: Path) -> None:
    names = [f"node-{number * 7919}" for number in range(3000)]
    (words,) = read(tmp_path, " ".join(names * 2))
    book: dict[str, int] = {}
    assert words.names(np.arange(6000), book).tolist() == [*range(3000)] * 2
    assert list(book) == names


@in_one_file
@given(st.lists(st.sampled_from(["up", "down", "u", "upp", "UP"]), max_size=10))
def test_which_words_are_a_word(tmp_path: Path, texts: list[str]) -> None:
    for words in read(tmp_path, " ".join(texts)):
        assert words.are(np.arange(len(texts)), b"up").tolist() == [text == "up" for text in texts]


def test_a_file_without_lines_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_LINE", 100)
    with pytest.raises(BadInput, match="no end of a line"):
        read(tmp_path, "x" * 500, size=50)
