"""The page about a node: what it shows, over real HTTP, in a real browser, and what it refuses."""

import asyncio
import copy
import http.client
import json
import re
import socket
import threading
from contextlib import contextmanager
from html.parser import HTMLParser

import pytest

from serai.node.status import count, metrics, middle, page, size, span
from serai.node.web import WebServer
from tests.node.mqtt.served import until
from tests.programs import program

STATUS = {
    "name": "dtn://barn/",
    "version": "1.2",
    "uptime_s": 93_784.0,
    "neighbours": [
        {"name": "dtn://ferry/", "for_s": 75.0, "under_way": 3, "bytes_under_way": 900, "rate_bps": 8e6, "lists": 2}
    ],
    "before": [{"name": "dtn://bus-7/", "ago_s": 7200.0, "for_s": 61.0}],
    "store": {
        "bundles": 1234,
        "bytes": 300_000_000,
        "capacity_bytes": 1 << 30,
        "own": 5,
        "waiting_bytes": 2048,
        "remembered": 99_999,
    },
    "sessions": [
        {"client": "<b>sensor</b>", "queued": 0, "subscriptions": 0},
        {"client": 'dash"board', "queued": 7, "subscriptions": 2},
    ],
    "entries": 17,
    "drops": {"expired": 1, "evicted": 2, "full": 0},
    "transfers": {"relayed": 4321, "duplicate": 1, "refused": 0, "late": 0, "broken": 2, "unfinished": 0},
    "mqtt": {
        "connected": 2,
        "in_flight": 1,
        "waiting_for_room": 0,
        "published": 10,
        "refused": 0,
        "dropped": 3,
        "errors": 0,
        "wills": 0,
    },
    "problems": ["the disk is full: nothing is accepted"],
}


class Texts(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.texts, self.tags = [], set()
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


def test_what_the_page_says():
    found = Texts(middle(STATUS))
    text = "|".join(found.texts)
    for said in (
        "barn",
        "up for 1 d 2 h",
        "Neighbours now: 1",
        "ferry|1 min 15 s|3|1 MB/s",
        "bus-7|2 h ago|1 min 1 s",
        "Store: 28% full",
        "bundles carried|1,234|their bytes|300 MB of 1.07 GB",
        'dash"board|7|2|<b>sensor</b>|0|0',
        "QoS 0, dropped|3",
        "relayed|4,321",
        "evicted|2",
        "the disk is full: nothing is accepted",
    ):
        assert said in text, said
    assert "b" not in found.tags  # a client's name is text, whatever it holds


def test_the_page_has_nothing_from_elsewhere():
    whole = page(STATUS)
    assert not re.search(r"(src|href)=.?(https?:)?//", whole)
    assert "url(" not in whole


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (size(0), "0 B"),
        (size(999), "999 B"),
        (size(1000), "1 kB"),
        (size(12_345), "12.3 kB"),
        (size(999_600), "1 MB"),
        (size(5e12), "5000 GB"),
        (span(0), "0 s"),
        (span(59.9), "59 s"),
        (span(60), "1 min"),
        (span(3600), "1 h"),
        (span(86_400 + 59), "1 d"),
        (span(200), "3 min 20 s"),
        (count(1234567), "1,234,567"),
    ],
)
def test_numbers_for_people(shown, expected):
    assert shown == expected


def test_metrics_in_the_text_format():
    text = metrics(STATUS)
    values = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            assert re.fullmatch(r'[a-z_]+(\{[a-z]+="(\\.|[^"\\])*"\})? [0-9.e+-]+', line), line
            name, value = line.rsplit(" ", 1)
            values[name] = float(value)
    assert values["serai_store_bytes"] == 300_000_000
    assert values['serai_drops_total{cause="evicted"}'] == 2
    assert values['serai_session_queued{client="dash\\"board"}'] == 7
    assert values['serai_mqtt_total{what="published"}'] == 10
    for name in {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}:
        assert text.count(f"# TYPE {name} ") == 1


@contextmanager
def shown(status):
    """A page on a free port; `status` is looked at again and again."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = WebServer(lambda: status)

    def run(coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(10)

    try:
        yield run(server.listen("127.0.0.1", 0))
    finally:
        run(server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def ask(port, method, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


def test_over_http():
    with shown(STATUS) as port:
        status, headers, body = ask(port, "GET", "/")
        assert (status, body.decode()) == (200, page(STATUS))
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert json.loads(ask(port, "GET", "/status.json?x=1")[2]) == STATUS
        assert ask(port, "GET", "/metrics")[2].decode() == metrics(STATUS)
        assert ask(port, "HEAD", "/")[2] == b""
        assert ask(port, "GET", "/etc/passwd")[0] == 404
        assert ask(port, "POST", "/")[0] == 405
        assert ask(port, "GET", "/", Host="evil.example")[0] == 403
        assert ask(port, "GET", "/", Host=f"localhost:{port}")[0] == 200
        keep = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        for _ in range(3):  # on one connection
            keep.request("GET", "/metrics")
            assert keep.getresponse().read()
        keep.close()


@pytest.mark.parametrize("noise", [b"\x16\x03\x01", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"A" * 40_000, b""])
def test_what_is_not_http(noise):
    with shown(STATUS) as port:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
            raw.sendall(noise)
            raw.shutdown(socket.SHUT_WR)
            assert raw.recv(12) in (b"HTTP/1.1 400", b"HTTP/1.1 431", b"")
        assert ask(port, "GET", "/")[0] == 200


def test_events_tell_of_changes():
    status = copy.deepcopy(STATUS)
    with shown(status) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
        raw.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stream = raw.makefile("rb")

        def told():
            while not (line := stream.readline()).startswith(b"data: "):
                assert line
            return json.loads(line[6:])

        assert "1,234" in told()
        status["store"]["bundles"] = 1235
        assert "1,235" in told()


@pytest.fixture(scope="module")
def browser():
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    driver, options = program("chromedriver"), Options()
    options.binary_location = program("chromium")
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chromium = webdriver.Chrome(options, Service(driver))
    yield chromium
    chromium.quit()


def test_in_a_browser(browser, tmp_path):
    """It is live, nothing is refused or missing, and nothing has to be scrolled sideways, on a screen or a phone."""
    status = copy.deepcopy(STATUS)
    with shown(status) as port:
        for width, dark in ((1280, False), (390, True)):
            scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
            metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            browser.get(f"http://127.0.0.1:{port}/")
            until(lambda: browser.execute_script("return document.getElementById('said').textContent") == "live")
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            wide = "return [...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth).length"
            assert browser.execute_script(wide) == 0
            colours = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, re.findall(r"\d+", colours)[:3])) < 200) is dark
            browser.save_screenshot(str(tmp_path / f"node-{width}.png"))
        status["store"]["bundles"] = 777_777
        until(lambda: "777,777" in browser.execute_script("return document.body.innerText"))
    until(lambda: "does not answer" in browser.execute_script("return document.body.innerText"))
    problems = [line for line in browser.get_log("browser") if "ERR_CONNECTION_REFUSED" not in line["message"]]
    assert [line for line in problems if "ERR_INCOMPLETE" not in line["message"]] == []
