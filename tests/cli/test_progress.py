"""Long single runs say on a terminal how far they are; the kernels' clocks can be read while they run."""

import io
import threading
import time

import pytest

from serai.cli import progress
from serai.core.progress import measured_by, share_done
from serai.lab import load_scenario, simulate


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("share", "seconds", "expected"),
    [
        (None, 7.2, "simulate   7 s so far"),
        (0.001, 3.0, "simulate   0.1 %, 3 s so far"),
        (0.25, 5.0, "simulate   25 %, about 15 s left"),
    ],
)
def test_words(share: float | None, seconds: float, expected: str) -> None:
    assert progress.told(share, seconds) == expected


def test_a_terminal_sees_it_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_AFTER_S", 0.02)
    monkeypatch.setattr(progress, "_EVERY_S", 0.01)
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        with progress.shown_share(stream), measured_by(lambda: 0.5):
            until_s = time.monotonic() + 5.0
            while not terminal.getvalue() and time.monotonic() < until_s:
                time.sleep(0.01)
    assert " simulate   50 %, about " in terminal.getvalue()
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert file.getvalue() == ""


def test_a_short_run_says_nothing() -> None:
    terminal = Terminal()
    with progress.shown_share(terminal):
        pass
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("scenario", "duration"), [("dpsp", "6 h"), ("ced", "3 h"), ("dg", "20 h")])
def test_the_clock_of_a_kernel_can_be_read_while_it_runs(scenario: str, duration: str) -> None:
    chosen = load_scenario(scenario, [f"duration={duration}"])
    seen: list[float] = []
    over = threading.Event()

    def read() -> None:
        while not over.wait(0.0005):
            if (share := share_done()) is not None:
                seen.append(share)

    reader = threading.Thread(target=read)
    reader.start()
    simulate(chosen)
    over.set()
    reader.join()
    assert share_done() is None
    assert seen == sorted(seen)
    assert any(0.0 < share < 1.0 for share in seen)
