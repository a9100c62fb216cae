"""The check of the code's shape finds what it is there for, and says where."""

from textwrap import dedent, indent

import pytest

from tools import shape

BLOCK = "\n".join(f"step_{number} = take({number})" for number in range(shape.BLOCK_LINES))


def function(lines: int, head: str = "") -> str:
    return f"def long():\n{head}" + "    step()\n" * lines


@pytest.mark.parametrize(("lines", "wrong"), [(shape.MODULE_LINES, False), (shape.MODULE_LINES + 1, True)])
def test_a_module_has_at_most_so_many_lines(lines: int, wrong: bool) -> None:
    found = list(shape.errors({"src/a.py": "step()\n" * lines}, {("src/a.py", "src/a.py"): 0}))
    long = [error for error in found if error.startswith(f"src/a.py: {lines} lines")]
    assert bool(long) == wrong


@pytest.mark.parametrize(
    ("source", "count"),
    [
        (function(60), 60),
        (function(61), 61),
        (function(60, '    """Says.\n\n    Much.\n    """\n'), 60),
        (function(3, "    # said before it begins\n"), 3),
        ("def wide(\n    one,\n    other,\n):\n    return 1\n", 1),
        ('def silent():\n    """Says only this."""\n', 0),
        ("async def late():\n    await one()\n    await other()\n", 2),
    ],
)
def test_a_body_is_counted_without_head_and_docstring(source: str, count: int) -> None:
    assert shape.body_lines(shape.ast.parse(source).body[0]) == count


def test_a_long_function_is_found_where_it_stands_even_in_a_class() -> None:
    source = "class A:\n" + indent(function(61), "    ")
    assert list(shape.function_errors("src/a.py", source)) == [
        "src/a.py:2: long has a body of 61 lines, at most 60",
    ]
    assert not list(shape.function_errors("src/a.py", "class A:\n" + indent(function(60), "    ")))


def test_a_block_that_stands_twice_is_found_in_both_places() -> None:
    sources = {"src/a.py": f"first()\n{BLOCK}\n", "src/b.py": f"{BLOCK}\nlast()\n"}
    assert list(shape.errors(sources, {})) == [
        "src/a.py:2: 8 lines also stand at src/b.py:1 (known: 0): write them once",
    ]


def test_one_line_less_is_no_block() -> None:
    shorter = BLOCK.partition("\n")[2]
    assert not list(shape.errors({"src/a.py": shorter, "src/b.py": shorter}, {}))


def test_indentation_comments_and_blank_lines_do_not_hide_a_block() -> None:
    hidden = "def f():\n" + indent(BLOCK.replace("\n", "  # why\n\n    # said\n", 3), "    ")
    assert [error[:11] for error in shape.errors({"src/a.py": BLOCK, "src/b.py": hidden}, {})] == ["src/a.py:1:"]


def test_a_hash_in_a_text_is_no_comment() -> None:
    one = BLOCK.replace("take(3)", "'#one'")
    other = BLOCK.replace("take(3)", "'#other'")
    assert not list(shape.errors({"src/a.py": one, "src/b.py": other}, {}))


def test_imports_docstrings_and_lone_brackets_are_not_compared() -> None:
    source = dedent(
        '''
        """Says what it is."""
        from a import (
            b,
            c,
        )
        import d

        def f(x):
            """Says."""
            return g(
                x,
            )
        '''
    )
    assert [line.text for line in shape.code_lines(source)] == ["def f(x):", "return g(", "x,"]


def test_a_block_twice_in_one_file_is_found_and_a_run_of_equal_lines_is_not() -> None:
    assert len(list(shape.errors({"src/a.py": f"{BLOCK}\nbetween()\n{BLOCK}\n"}, {}))) == 1
    assert not list(shape.errors({"src/a.py": "step()\n" * 12}, {}))


def test_blocks_outside_the_sources_may_stand_twice() -> None:
    assert not list(shape.errors({"tests/a.py": BLOCK, "tests/b.py": BLOCK}, {}))


def test_a_known_duplicate_may_stay_but_not_grow_and_what_is_gone_leaves_the_list() -> None:
    known = shape.read_known("# said\n8 src/a.py src/b.py\n")
    assert known == {("src/a.py", "src/b.py"): 8}
    assert not list(shape.errors({"src/a.py": BLOCK, "src/b.py": BLOCK}, known))
    longer = f"{BLOCK}\none_more()"
    (grown,) = shape.errors({"src/a.py": longer, "src/b.py": longer}, known)
    assert "9 lines also stand" in grown
    (stale,) = shape.errors({"src/a.py": BLOCK, "src/b.py": "step()"}, known)
    assert "known_duplicates.txt" in stale


def test_the_project_is_read_by_path() -> None:
    sources = shape.read_sources()
    assert {"src/serai/kinds.py", "tests/tools/test_shape.py", "tools/shape.py"} <= sources.keys()
