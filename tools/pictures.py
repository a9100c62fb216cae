"""The pictures of the documentation, made by serai itself from one real run: python tools/pictures.py

SVGs are written with the same code that reports use; the replay is photographed in Chromium, if there is one.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import serai
from serai.log.run import SimulatedRun
from serai.replay.run import page_of
from serai.report.maps import energy_map, field_map

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
SCENARIO, PROTOCOL, SEED = "field", "cet", 3
MOMENT: Final = "#t=1222&e=1184"
"""An event that eight of ten subscribers get within 70 s, and two never: docs/replay.md tells why."""


OWN_MOMENT: Final = "#t=1277&e=1184"
"""The same event under SERAI, when it was left in another community for the last one: docs/field/serai.md."""


def drawings() -> dict[str, str]:
    """Each SVG by the name of its file."""
    run = serai.simulate(SCENARIO, PROTOCOL, SEED)
    assert isinstance(run, serai.FieldRun)
    pictures = field_map(run), energy_map(run, int(run.ledger.event_pj.max()), "p1")
    return {f"{picture.name}.svg": picture.svg + "\n" for picture in pictures}


def photograph(run: SimulatedRun, file: Path, chromium: str, moment: str = MOMENT) -> None:
    """A picture of a moment of the run's replay."""
    with tempfile.TemporaryDirectory() as aside:
        page = Path(aside) / "replay.html"
        page.write_text(page_of(run)[0], encoding="utf-8")
        how = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,800"]
        waits = ["--virtual-time-budget=20000", f"--screenshot={file}", f"{page.as_uri()}{moment}"]
        subprocess.run([chromium, *how, *waits], check=True, capture_output=True, timeout=120)


def main() -> int:
    """Write all of them; without Chromium the photograph stays as it is."""
    FOLDER.mkdir(exist_ok=True)
    for name, svg in drawings().items():
        (FOLDER / name).write_text(svg, encoding="utf-8")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium:
        photograph(serai.simulate(SCENARIO, PROTOCOL, SEED, full_log=True), FOLDER / "replay.png", chromium)
        ours = serai.simulate(SCENARIO, "serai", SEED, full_log=True)
        photograph(ours, FOLDER / "replay-serai.png", chromium, OWN_MOMENT)
    else:
        print("no Chromium here: the photographs of replays stay as they are", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
