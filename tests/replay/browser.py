"""A page in real Chromium, and what is asked of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from tests.programs import program

PATIENCE_S = 60.0


def start_chromium() -> webdriver.Chrome:
    """A browser without a window; it has no network either."""
    options, driver = Options(), Service(program("chromedriver"))
    options.binary_location = program("chromium")
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,800"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=driver)
    browser.execute_cdp_cmd("Network.enable", {})
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    return browser


class Page:
    """One page of a replay, opened from its file."""

    def __init__(self, browser: webdriver.Chrome, file: Path, moment: str = "", **media: str) -> None:
        self.browser = browser
        self.emulate(**media)
        self.size(1280, 800)
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get(f"{file.as_uri()}{moment}")
        begun = time.monotonic()
        while self.js("return document.documentElement.dataset.ready") != "1":
            assert time.monotonic() - begun < PATIENCE_S, f"the page is not ready: {self.complaints()}"
            time.sleep(0.05)

    def emulate(self, **media: str) -> None:
        """Light or dark (`color_scheme`), with or without motion (`reduced_motion`); nothing: as the browser is."""
        features = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in media.items()]
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def size(self, width: int, height: int) -> None:
        shape = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", shape)
        self.hear()

    def hear(self) -> None:
        """Two pictures later the page has heard of what was changed."""
        frames = "const [done] = arguments; requestAnimationFrame(() => requestAnimationFrame(done))"
        self.browser.execute_async_script(frames)

    def js(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """What the console says."""
        return [row["message"] for row in self.browser.get_log("browser")]

    def go(self, t: float) -> None:
        self.js("replay.go(arguments[0])", t)

    def state(self, t: float | None = None) -> dict[str, list[float]]:
        """Level and spending of every node, at t or now."""
        if t is not None:
            self.go(t)
        told: dict[str, list[float]] = self.js(
            "const s = replay.state; return {level: [...s.level], spent: [...s.spent]}"
        )
        return told

    def number(self, name: str) -> int:
        """A number of the sentence, or of the card."""
        return int(self.js(f"return document.getElementById('{name}').textContent").replace(",", ""))

    def press(self, keys: str) -> None:
        """Keys, by their names, one after the other: "space d shift+ArrowRight"."""
        for key in keys.split():
            name, shift = key.removeprefix("shift+"), key.startswith("shift+")
            name = " " if name == "space" else name
            how = {"key": name, "modifiers": 8 if shift else 0, "text": name if len(name) == 1 else ""}
            if name == "Enter":
                how |= {"text": "\r", "windowsVirtualKeyCode": 13}
            if name == "Tab":
                how |= {"text": "", "windowsVirtualKeyCode": 9}
            self.browser.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", **how})
            self.browser.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyUp", **how})
