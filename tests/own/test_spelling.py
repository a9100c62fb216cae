"""Names that look misspelt: a method that is never called is told, a helper of the author's own is not."""

from pathlib import Path

import pytest

from serai.field.kit.family import SENSORS
from serai.opportunistic.kit.family import ROUTERS
from serai.own.loading import find_own
from serai.own.spelling import misspelt

EXAMPLES = Path(__file__).parents[2] / "examples" / "protocols"


def doubts(folder: Path, text: str) -> list[str]:
    file = folder / "mine.py"
    file.write_text(text)
    return [line.removeprefix(f"{file}:") for line in misspelt(find_own(file, "Mine", [ROUTERS, SENSORS]))]


def router(body: str) -> str:
    return f"from serai.opportunistic import Router, setting\n\nclass Mine(Router):\n{body}"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("    def ofers(self, copy, peer, now): return True\n", '4: Mine.ofers is never used; did you mean "offers"?'),
        ("    def recieved(self, copy): pass\n", '4: Mine.recieved is never used; did you mean "received"?'),
        ("    def contactUp(self, peer): pass\n", '4: Mine.contactUp is never used; did you mean "contact_up"?'),
        ("    x = 1\n    stabel = True\n", '5: Mine.stabel is never used; did you mean "stable"?'),
        ("    every: int = setting(10, ge=1)\n", '4: Mine.every is never used; did you mean "every_s"?'),
    ],
)
def test_a_name_that_is_nearly_one_of_the_base_is_told(tmp_path: Path, body: str, told: str) -> None:
    assert doubts(tmp_path, router(body)) == [told]


@pytest.mark.parametrize(
    "body",
    [
        # a helper of the author's own: called, or named like nothing else
        "    def offer(self): return True\n    def offers(self, copy, peer, now): return self.offer()\n",
        "    def offering(self): pass\n    def offers(self, copy, peer, now): return getattr(self, 'offering')\n",
        "    def utility(self, peer): return 0\n    def sender(self): return 0\n    def _ofers(self): return 0\n",
        "    every: int = setting(10, ge=1)\n    def start(self): self.every_s = self.every\n",
        # an older version beside the one that is called
        "    def offers_2(self, copy, peer, now): return True\n    def offers(self, copy, peer, now): return True\n",
    ],
)
def test_what_the_author_uses_himself_is_no_mistake(tmp_path: Path, body: str) -> None:
    assert doubts(tmp_path, router(body)) == []


def test_classes_of_visitors_and_modules_beside_the_file_are_looked_at_too(tmp_path: Path) -> None:
    text = "from serai.field import Sensor, Visitor\nclass Mule(Visitor):\n    def recieved(self): pass\n"
    (tmp_path / "beside.py").write_text(f"{text}class Base(Sensor):\n    def relays(self): pass\n")
    told = doubts(tmp_path, "from beside import Base, Mule\nclass Mine(Base):\n    visitor = Mule\n")
    assert [line.removeprefix(f"{tmp_path}/") for line in told] == [
        'beside.py:5: Base.relays is never used; did you mean "relay"?',
        'beside.py:3: Mule.recieved is never used; did you mean "received"?',
    ]


@pytest.mark.parametrize("file", ["routers.py", "sensors.py"])
def test_nothing_is_told_of_the_examples(file: str) -> None:
    import ast

    text = (EXAMPLES / file).read_text()
    for cls in (node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef)):
        try:
            own = find_own(EXAMPLES / file, cls, [ROUTERS, SENSORS])
        except Exception:
            continue  # a class of visitors is no protocol
        assert misspelt(own) == []
