"""The outline of a TOML text: every key and value is found where it stands."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serai.scenario.locate import locate

TEXT = '''\
# a comment with = and [brackets]
title = "x # y" # not "z"
"a.b" . 'c' = [1, [2, 3], {x = 1}, "s]",
  # comment ]
  4 ]
when = 1979-05-27 07:32:00  # two words
long = """several
"quoted" ] \\""" lines"""""
literal = \'\'\'it's = here\'\'\'
[events.attributes]
A1 = {kind = "real", low = -1.5e3 , high= 10}
[[list]]
x = 1
[[ list ]]
x = {y.z = 2 , q = []}
[list.sub]
k=true\r
'''


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        (("title",), "title", '"x # y"'),
        (("a.b",), '"a.b"', None),
        (("a.b", "c", 1, 0), "2", "2"),
        (("a.b", "c", 2, "x"), "x", "1"),
        (("a.b", "c", 3), '"s]"', '"s]"'),
        (("a.b", "c", 4), "4", "4"),
        (("when",), "when", "1979-05-27 07:32:00"),
        (("long",), "long", '"""several\n"quoted" ] \\""" lines"""""'),
        (("literal",), "literal", "'''it's = here'''"),
        (("events", "attributes"), "[events.attributes]", None),
        (("events", "attributes", "A1", "low"), "low", "-1.5e3"),
        (("events", "attributes", "A1", "high"), "high", "10"),
        (("list", 0, "x"), "x", "1"),
        (("list", 1), "[[ list ]]", None),
        (("list", 1, "x", "y", "z"), "z", "2"),
        (("list", 1, "x", "q"), "q", "[]"),
        (("list", 1, "sub", "k"), "k", "true"),
    ],
)
def test_each_key_and_value_is_found(path, key, value):
    tomllib.loads(TEXT)
    place = locate(TEXT)[path]
    assert TEXT[slice(*place.key)] == key
    assert (TEXT[slice(*place.value)] if place.value else None) == value


def test_an_empty_text_has_no_places():
    assert locate("") == {}
    assert locate("\n# nothing\n") == {}


KEYS = st.text(alphabet="ab-_.\" '=#]é", min_size=1, max_size=4)
SCALARS = st.booleans() | st.integers(-99, 99) | st.text(alphabet="ab=[]{}#,'\"\\\n é", max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def written(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {written(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(inner) + " # ]\n" for inner in value) + "]"
    return json.dumps(value)


def leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not isinstance(value, dict | list):
        yield path, value
    for part, inner in items:
        yield from leaves(inner, (*path, part))


@given(st.dictionaries(KEYS, VALUES, max_size=4), st.dictionaries(KEYS, VALUES, max_size=3))
def test_every_value_of_any_text_is_found(top, table):
    lines = [f"{json.dumps(key)} = {written(value)} # = \n" for key, value in top.items()]
    inner = [f" {json.dumps(key)}={written(value)}\n" for key, value in table.items()]
    text = "".join(lines) + '["the table".x]\n' + "".join(inner)
    # An inline table may not hold line breaks, so comments go only where there is none.
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        text = text.replace(" # ]\n", "")
        data = tomllib.loads(text)
    places = locate(text)
    for path, value in leaves(data):
        span = places[path].value
        assert tomllib.loads(f"value = {text[slice(*span)]}") == {"value": value}
