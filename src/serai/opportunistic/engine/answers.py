"""The protocols' answers to the loop's questions, each as one function for all protocols.

The loop is compiled once for all of them: compiling takes many seconds, and a program for each protocol would take them
again and again. So which protocol runs is a number in the rules. numba cannot call through a table of functions without
giving up inlining; therefore each question becomes a function that asks "is it this protocol?" for one after the other,
written here once, as a text, from the registry. Nested functions would say the same without a text, but numba compiles
each of them by itself: 16.2 CPU s for the loop instead of 14.5.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from serai.core.rules import step
from serai.opportunistic.protocols import ROUTING_PROTOCOLS
from serai.opportunistic.routing import RoutingProtocol
from serai.opportunistic.rules import RouterRules
from serai.opportunistic.settings import RouterSettings

Answer = Callable[..., Any]


def compiled_rules(settings: RouterSettings) -> RouterRules:
    """The rules of the protocol that has these settings, as the loop reads them."""
    code = [protocol.name for protocol in ROUTING_PROTOCOLS].index(protocol_of(settings).name)
    rules = [protocol.rules_of(protocol.settings()) for protocol in ROUTING_PROTOCOLS]
    rules[code] = ROUTING_PROTOCOLS[code].rules_of(settings)
    return rules[code]._replace(protocol=code, own=tuple(each.own for each in rules))


def protocol_of(settings: RouterSettings) -> RoutingProtocol:
    """The protocol that has these settings."""
    return next(protocol for protocol in ROUTING_PROTOCOLS if isinstance(settings, protocol.settings))


def _answer(question: str, arguments: str) -> Answer:
    """One function for all protocols' answers to a question: `if rules.protocol == 0: return ...`, and so on."""
    common: Any = {field.name: field.default for field in fields(RoutingProtocol)}[question]
    lines = [f"def {question}(rules, {arguments}):"]
    names: dict[str, Answer] = {"common": common}
    for code, protocol in enumerate(ROUTING_PROTOCOLS):
        if (own := getattr(protocol, question)) is not common:
            names[f"own_{code}"] = own
            lines.append(f" if rules.protocol == {code}: return own_{code}(rules.own[{code}], {arguments})")
    lines.append(f" return common(None, {arguments})")
    exec("\n".join(lines), names)
    return step(names[question])


offers = _answer("offers", "offer")
prefers = _answer("prefers", "one, other")
splits = _answer("splits", "offer")
writes = _answer("writes", "net, link")
learns = _answer("learns", "net, link")
meets = _answer("meets", "net, link")
looks = _answer("looks", "net, link, channel")
