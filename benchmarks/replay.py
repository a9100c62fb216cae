"""Pages that play runs: how large, how long to write, how quick in Chromium.

    make bench                 three fields, a few minutes
    python benchmarks/replay.py --quick

Script time is what the page's own code takes for a picture while it plays; the browser draws without a graphics card.
On a busy machine wall-clock times say little: the load is printed beside them, and the best of three choices counts.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from field import machine

import serai
from serai.replay import write_replay
from tests.replay.browser import Page, start_chromium

SIZES: dict[int, dict[str, Any]] = {
    100: {},
    2_000: {"duration": "30 min", "field.width": "894 m", "field.height": "894 m", "field.cells": 67,
            "subscribers.count": 60},
    20_000: {"duration": "30 min", "field.width": "2828 m", "field.height": "2828 m", "field.cells": 212,
             "subscribers.count": 11},
}  # fmt: skip
SPEEDS = (1, 20, 200)
FRAMES = 90
DRAWN = 40  # times and nodes

FRAME_TIMES = """
const [speed, frames, done] = arguments, times = [], own = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (next) => own((now) => {
  const begun = performance.now();
  next(now);
  times.push(performance.now() - begun);
  if (times.length === frames) { window.requestAnimationFrame = own; replay.toggle(false); done(times); }
});
replay.speed = speed;
replay.go(replay.m.end / 3);
replay.toggle(true);
"""
SCRUB_TIMES = """
const out = replay.m.blank(), times = [];
for (const share of arguments[0]) {
  const begun = performance.now();
  replay.m.state(share * replay.m.end, out);
  times.push(performance.now() - begun);
}
return times;
"""
CHOICE_TIMES = """
const times = [], choose = (node) => {
  const begun = performance.now();
  replay.select({ node });
  return performance.now() - begun;
};
times.push(choose(0));   // the first one makes indexes
for (const node of arguments[0]) times.push(Math.min(choose(node), choose(node), choose(node)));
return times;
"""


def measured(sensors: int, folder: Path, chromium: Any) -> None:
    """One field: its page, and what a browser makes of it."""
    changes = SIZES[sensors] | {"sensors.count": sensors}
    run = serai.simulate(serai.load_scenario("field", changes, protocol="cet"), seed=3, full_log=True)
    transfers = len(run.full.transfers.event)
    serai.write_run(run, folder / str(sensors))
    begun = time.process_time()
    made = write_replay(folder / str(sensors))
    cpu_s = time.process_time() - begun
    page = Page(chromium, made.page)
    ready_s = page.js("return replay.took.all") / 1000
    page.browser.set_script_timeout(300)
    frames = [page.browser.execute_async_script(FRAME_TIMES, speed, FRAMES) for speed in SPEEDS]
    shares = [(7 * k % DRAWN + 0.5) / DRAWN for k in range(DRAWN)]
    scrubs = sorted(page.js(SCRUB_TIMES, shares))
    page.js("replay.go(replay.m.end * .9)")
    choices = page.js(CHOICE_TIMES, [1 + k * (sensors - 2) // DRAWN for k in range(DRAWN)])
    print(
        f"{sensors:8,}{transfers:12,}{made.bytes / 1e6:9.2f}{(made.bytes - 150_000) / transfers:12.2f}{cpu_s:8.2f}"
        f"{ready_s:8.2f}{'':3}{' / '.join(f'{statistics.median(times):.1f}' for times in frames):>18}"
        f"{scrubs[DRAWN // 2]:9.1f}{scrubs[-2]:7.1f}{statistics.median(choices):9.0f}{max(choices):7.0f}"
        f"{os.getloadavg()[0]:7.1f}",
        flush=True,
    )


def main() -> None:
    """Every field in one browser, its page opened from the disk."""
    print(f"replays of CET, {machine()}")
    print(
        f"\n{'':20}{'page':>9}{'bytes /':>12}{'write':>8}{'ready':>8}{'':3}{'script a frame, ms':>18}"
        f"{'state(t), ms':>16}{'choosing, ms':>16}\n{'sensors':>8}{'transfers':>12}{'MB':>9}{'transfer':>12}"
        f"{'CPU s':>8}{'s':>8}{'':3}"
        f"{'1x / 20x / 200x':>18}{'median':>9}{'p95':>7}{'median':>9}{'worst':>7}{'load':>7}"
    )
    print(
        f"{'aims':>8}{'':12}{'':9}{'3.6':>12}{'2':>8}{'1':>8}{'':3}{'4 (20,000: 10)':>18}{'':9}{'10':>7}{'':9}{'50':>7}"
    )
    chromium = start_chromium()
    try:
        with tempfile.TemporaryDirectory() as aside:
            for sensors in list(SIZES)[: 1 if "--quick" in sys.argv else None]:
                measured(sensors, Path(aside), chromium)
    finally:
        chromium.quit()


if __name__ == "__main__":
    main()
