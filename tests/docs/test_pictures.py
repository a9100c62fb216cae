"""The pictures of the documentation are those that the tools make."""

from pathlib import Path

from tools.pictures import FOLDER, drawings

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_drawings_are_as_the_tool_makes_them() -> None:
    for name, svg in drawings().items():
        assert (FOLDER / name).read_text() == svg, f"{name}: python tools/pictures.py writes it again"


def test_the_first_picture_is_a_real_run() -> None:
    assert README.index("docs/pictures/replay.png") < README.index("##")
    assert (FOLDER / "replay.png").stat().st_size > 50_000
