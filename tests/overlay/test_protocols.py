"""What makes a protocol different stands in its file: known answers of the hooks, and nobody asks for its name."""

import ast
from pathlib import Path

import numpy as np
import pytest

import serai.overlay
from serai.overlay import pub2sub, tinymq
from serai.overlay.engine import run as overlay
from serai.overlay.engine.trees import plant
from serai.overlay.protocols import PROTOCOLS
from serai.overlay.tinymq import OverlaySettings
from tests.overlay.stories import TwoLayers
from tests.overlay.test_runs import line_of_five

FOLDER = Path(serai.overlay.__file__).parent
OWN_FILES = {f"{name}.py" for name in PROTOCOLS} | {"protocols.py", "paper.py"}  # the paper compares the two


@pytest.mark.parametrize("file", sorted(set(FOLDER.rglob("*.py")) - {FOLDER / name for name in OWN_FILES}), ids=str)
def test_nobody_asks_for_the_name_of_a_protocol(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    default = {"tinymq"} if file.name == "sections.py" else set()  # the protocol of a scenario that names none
    assert words & PROTOCOLS.keys() == default
    asked = {
        ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "Settings"
    }
    assert not asked


@pytest.mark.parametrize(
    ("settings", "layers", "own"),
    [
        (tinymq.Settings(), [[0, 1, 2]], [0, 0, 0, 0]),
        (pub2sub.Settings(), [[0], [1], [2]], [0, 1, 2, 0]),
        (TwoLayers(), [[0, 2], [1]], [0, 1, 0, 1]),
    ],
    ids=lambda value: type(value).__module__ if isinstance(value, OverlaySettings) else "",
)
def test_layers_and_the_own_one(settings: OverlaySettings, layers: list[list[int]], own: list[int]) -> None:
    assert settings.layers(3) == layers
    assert [settings.own_layer(node, len(layers)) for node in range(4)] == own


def test_own_trees_of_a_protocol_with_two_layers() -> None:
    """A line of five with the roots 0, 1, 4: trees 0 and 2 share the nodes out, tree 1 spans them."""
    settings = TwoLayers()
    roots = np.array([0, 1, 4], np.int32)
    layers = plant(line_of_five().graph, roots, settings.layers(3), settings.routing_code(), 4)
    assert [layer.nodes["tree"].tolist() for layer in layers] == [[0, 0, 0, 2, 2], [1, 1, 1, 1, 1]]
    assert overlay.own_trees(settings, layers).tolist() == [0, 1, 0, 1, 2]


def test_a_protocol_has_to_answer() -> None:
    class Silent(OverlaySettings):
        """Says nothing."""

    with pytest.raises(TypeError, match="abstract"):
        Silent()  # type: ignore[abstract]
