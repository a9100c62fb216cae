"""The language of subscriptions: `A1 < 3.2 and (site in ('north', 'east') or not alarm = true)`, read into comparisons.

What is asked is always brought to alternatives, of which one must hold: lists of comparisons that must all hold.
`not` goes down to the comparisons. A missing value meets no comparison, and so it meets no negated one either.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, NoReturn

from serai.core.errors import BadSubscription, did_you_mean

MOST_ALTERNATIVES: Final = 1000
_IN_NAME = r"(?:[A-Za-z0-9_.-]|(?![≤≥≠∧∨¬∈\s])[^\x00-\x7f])"  # every script, with its marks; but no signs of ours
_NAME = rf"(?![0-9.-]){_IN_NAME}+"
_WORDS: Final = ("and", "or", "not", "in", "true", "false")
LITERAL = r"""
      (?P<time>[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?)
    | (?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
"""
"""What may stand for a value, but for true and false, as a regular expression (verbose)."""
PIECE = re.compile(
    rf"(?<!{_IN_NAME})({re.sub(r'[(][?]P<[a-z]+>', '(?:', LITERAL)})", re.VERBOSE | re.IGNORECASE | re.DOTALL
)
"""A literal in a text, where it does not belong to a name."""
_TOKEN = re.compile(
    rf"""\s*(?:{LITERAL}
    | (?P<open>['"].*)
    | (?P<and>and(?!{_IN_NAME})|∧|&&?)
    | (?P<or>or(?!{_IN_NAME})|∨|\|\|?)
    | (?P<in>in(?!{_IN_NAME})|∈)
    | (?P<boolean>(?:true|false)(?!{_IN_NAME}))
    | (?P<operator>starts\s+with(?!{_IN_NAME})|<=|>=|==|!=|<>|≤|≥|≠|<|>|=)
    | (?P<not>not(?!{_IN_NAME})|¬|!)
    | (?P<name>{_NAME}|`(?:[^`]|``)+`)
    | (?P<left>\()
    | (?P<right>\))
    | (?P<comma>,)
    | (?P<hole>\?)
    | (?P<end>\Z)
    | (?P<unknown>.)
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_SAME = {"==": "=", "≤": "<=", "≥": ">=", "<>": "!=", "≠": "!="}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_DENIED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "=", "starts with": "not starts with"}
_OPERATORS = "< <= > >= or ="
_A_VALUE = {
    ("number",): "a number",
    ("number", "hole"): "a number or ?",
    ("number", "text", "time", "boolean"): "a number, a text in quotes or a time",
}


class Token(NamedTuple):
    """A piece of a subscription text, and where it stands."""

    kind: str
    text: str
    position: int


class Comparison(NamedTuple):
    """`name operator bound`; operators are < <= > >= = != "starts with" and "not starts with"."""

    name: str
    operator: str
    bound: Token


Alternatives = list[list[Comparison]]


def is_name(text: str) -> bool:
    """Whether an attribute may be called so without being put in backquotes."""
    return re.fullmatch(_NAME, text) is not None and text.lower() not in _WORDS


def interval(operator: str, bound: float) -> tuple[float, float]:
    """The closed interval of float64 that holds exactly the numbers for which the comparison is true."""
    low = {"=": bound, ">=": bound, ">": math.nextafter(bound, math.inf)}.get(operator, -math.inf)
    high = {"=": bound, "<=": bound, "<": math.nextafter(bound, -math.inf)}.get(operator, math.inf)
    return low, high


def alternatives(text: str, names: Iterable[str] | None, values: tuple[str, ...]) -> Alternatives:
    """What a text asks, with values of these kinds of tokens; only `names` may be named."""
    return _Parser(text, None if names is None else list(names), values).whole()


def comparisons(text: str, names: Iterable[str] | None, values: tuple[str, ...]) -> list[Comparison]:
    """The comparisons of a text that asks for one box: a range per attribute."""
    found = alternatives(text, names, values)
    if len(found) > 1 or any(part.operator == "!=" for part in found[0]):
        # Each engine of a simulation keeps one range per attribute and subscriber.
        expected = "one range for each attribute; write a subscription for each of the alternatives"
        raise refused(text, next(_signs_of_alternatives(text)), expected)
    return found[0]


def _signs_of_alternatives(text: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(text):
        sign = found[0].strip()
        if found.lastgroup in ("or", "not", "in") or sign in ("!=", "<>", "≠"):
            yield Token("sign", sign, found.end() - len(sign))


def refused(text: str, token: Token, expected: str) -> BadSubscription:
    """The error that says what was expected where the token stands."""
    seen = "the end" if token.kind == "end" else f'"{token.text}"'
    message = f"expected {expected}, found {seen}"
    return BadSubscription(text, token.position, message, expected, max(1, len(token.text)))


class _Parser:
    """Recursive descent over the tokens of one text; `denied`: an odd number of `not` stands before."""

    def __init__(self, text: str, names: list[str] | None, values: tuple[str, ...]) -> None:
        self.text = text
        self.names = names
        self.values = values
        self.a_value = _A_VALUE[values]
        self.position = 0
        self.token = self.read()

    def whole(self) -> Alternatives:
        found = self.either(False)
        if self.token.kind != "end":
            self.fail("and, or the end")
        return found

    def either(self, denied: bool) -> Alternatives:
        """either := all { "or" all }"""
        found = self.all(denied)
        while self.token.kind == "or":
            self.take()
            more = self.all(denied)
            found = self.times(found, more) if denied else found + more
        return found

    def all(self, denied: bool) -> Alternatives:
        """all := one { "and" one }"""
        found = self.one(denied)
        while self.token.kind == "and":
            self.take()
            more = self.one(denied)
            found = found + more if denied else self.times(found, more)
        return found

    def one(self, denied: bool) -> Alternatives:
        """one := "not" one | "(" either ")" | comparison"""
        if self.token.kind == "not":
            self.take()
            return self.one(not denied)
        if self.token.kind == "left":
            self.take()
            found = self.either(denied)
            if self.token.kind != "right":
                self.fail("and, or, or )")
            self.take()
            return found
        return self.comparison(denied)

    def times(self, some: Alternatives, others: Alternatives) -> Alternatives:
        """The alternatives of which one of the first and one of the second holds."""
        if len(some) * len(others) > MOST_ALTERNATIVES:
            self.fail(f"at most {MOST_ALTERNATIVES:,} alternatives; write it as several subscriptions")
        return [[*one, *other] for one in some for other in others]

    def comparison(self, denied: bool) -> Alternatives:
        """comparison := name operator value | name ["not"] "in" list | value operator name [ operator value ]"""
        if self.token.kind == "name":
            name = self.name()
            if self.token.kind in ("in", "not"):
                return self.listed(name, denied)
            operator = self.operator("text" in self.values)
            return [[Comparison(name, _DENIED[operator] if denied else operator, self.value())]]
        if self.token.kind not in self.values:
            self.fail("a comparison such as A1 < 3")
        first, first_operator = self.value(), self.operator()
        name = self.name()
        found = [Comparison(name, _TURNED[first_operator], first)]
        if self.token.kind == "operator":
            found.append(Comparison(name, self.second_operator(first_operator), self.value()))
        return [[each._replace(operator=_DENIED[each.operator])] for each in found] if denied else [found]

    def listed(self, name: str, denied: bool) -> Alternatives:
        """list := "(" value { "," value } ")" """
        if self.token.kind == "not":
            self.take()
            denied = not denied
        for kind, expected in (("in", "in"), ("left", "( and a list of values")):
            if self.token.kind != kind:
                self.fail(expected)
            self.take()
        found = [Comparison(name, "!=" if denied else "=", self.value())]
        while self.token.kind == "comma":
            self.take()
            found.append(found[0]._replace(bound=self.value()))
        if self.token.kind != "right":
            self.fail(", or )")
        self.take()
        return [found] if denied else [[each] for each in found]

    def second_operator(self, first: str) -> str:
        """The operator after `2 <= A2`, which must point the same way."""
        allowed = {"<": "< or <=", ">": "> or >="}.get(first[0])
        if allowed is None:
            self.fail("and, or the end")
        token = self.token
        operator = self.operator()
        if operator[0] != first[0]:
            self.fail(f"{allowed}, so that the range points one way", token)
        return operator

    def name(self) -> str:
        if self.token.kind != "name":
            self.fail("the name of an attribute")
        token = self.take()
        name = token.text[1:-1].replace("``", "`") if token.text[0] == "`" else token.text
        if self.names is not None and name not in self.names:
            message = f'unknown attribute "{name}"; {did_you_mean(name, self.names)}'
            raise BadSubscription(self.text, token.position, message, ", ".join(self.names), len(token.text))
        return name

    def operator(self, with_beginnings: bool = False) -> str:
        text = self.token.text.lower()
        beginning = text.startswith("starts")
        if self.token.kind != "operator" or (beginning and not with_beginnings):
            self.fail("< <= > >= = or starts with" if with_beginnings else _OPERATORS)
        self.take()
        return "starts with" if beginning else _SAME.get(text, text)

    def value(self) -> Token:
        if self.token.kind == "open" and "text" in self.values:
            self.fail(f"a text that ends with {self.token.text[0]}")
        if self.token.kind not in self.values:
            self.fail(self.a_value)
        if self.token.kind == "number" and math.isinf(float(self.token.text)):
            self.fail("a number that is not too large")
        return self.take()

    def take(self) -> Token:
        """The token under the cursor, which moves on to the next."""
        token, self.token = self.token, self.read()
        return token

    def read(self) -> Token:
        found = _TOKEN.match(self.text, self.position)
        assert found is not None  # whatever is there is at least `unknown`
        assert found.lastgroup is not None
        self.position = found.end()
        return Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup))

    def fail(self, expected: str, token: Token | None = None) -> NoReturn:
        raise refused(self.text, token or self.token, expected)
