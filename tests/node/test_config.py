"""Configurations: what is right, and all that is wrong at once; folders and keys; clocks; beacons."""

import asyncio
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from serai.core.errors import BadInput, BadScenario
from serai.node import clock
from serai.node.checked import file_of, network_key, split_address
from serai.node.clock import NodeClock
from serai.node.config import NodeConfig, parse_config, read_config
from serai.node.discovery import BeaconSettings, Discovery
from serai.node.wire.beacon import Beacon

DOCS = Path(__file__).parents[2] / "docs" / "node" / "operations.md"
RIGHT = """
name = "boat"
clock = "trusted"
[network]
name = "farm"
security = "none"
[links]
listen = "[::1]:4557"
keepalive = "1 min"
[[neighbours]]
address = "pier.example:4556"
name = "pier"
[store]
bytes = "100 MB"
"""
WRONG = """\
name = "boat 1"
colck = "auto"
[network]
name = "farm"
security = "non"
[links]
keepalive = "10 m"
listen = "nowhere"
[[neighbours]]
adress = "a:1"
[store]
bytes = 12
bundles = 0
"""


def test_a_configuration() -> None:
    config = parse_config(RIGHT, "node.toml", Path("here"))
    assert (config.name, config.links.keepalive, config.store.bytes) == ("boat", 60, 100_000_000)
    assert split_address(config.links.listen or "") == ("::1", 4557)
    assert [(one.address, one.name) for one in config.neighbours] == [("pier.example:4556", "pier")]
    assert file_of(config, "node.db") == Path("here/node.db")
    assert network_key(config) == b""


def test_all_that_is_wrong_is_said_at_once_with_its_place() -> None:
    with pytest.raises(BadScenario) as caught:
        parse_config(WRONG, "node.toml", Path())
    said = {(problem.where, problem.line): problem.message for problem in caught.value.problems}
    assert said.keys() == {
        ("name", 1), ("colck", 2), ("network.security", 5), ("links.keepalive", 7), ("links.listen", 8),
        ("neighbours[0].address", 9), ("neighbours[0].adress", 10), ("store.bytes", 12), ("store.bundles", 13),
    }  # fmt: skip
    assert said["colck", 2] == 'unknown key; did you mean "clock"?'
    assert said["neighbours[0].adress", 10] == 'unknown key; did you mean "address"?'
    assert said["network.security", 5] == 'unknown value "non"; did you mean "none"?'
    assert said["links.keepalive", 7].startswith('"m" is a unit of length')
    assert said["store.bundles", 13] == "must be at least 1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = ", "not valid TOML"),
        ('name = "a"', "network: missing"),
        ('name = "a"\nfolder = "b"\n[network]\nname = "n"', "folder: unknown key"),
        ('name = "a"\nnetwork = 7', "network: expected a table"),
        ('name = "-a"\n[network]\nname = "n"', "name: letters"),
    ],
)
def test_other_wrong_texts(text: str, said: str) -> None:
    with pytest.raises(BadScenario, match=said):
        parse_config(text, "node.toml", Path())


def keys(model: Any) -> list[str]:
    tables = {
        name: getattr(field.annotation, "__args__", (field.annotation,))[0]
        for name, field in model.model_fields.items()
    }
    inner = [key for table in tables.values() if hasattr(table, "model_fields") for key in keys(table)]
    return [name for name in tables if name != "folder"] + inner


@pytest.mark.parametrize("key", sorted(set(keys(NodeConfig))))
def test_every_key_is_documented(key: str) -> None:
    assert f"`{key}`" in DOCS.read_text() or f"`[{key}]`" in DOCS.read_text() or f"`[[{key}]]`" in DOCS.read_text()


# -- folders and keys

Run = Callable[..., Any]


def test_a_network_and_a_node_by_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from serai.cli import execute

    monkeypatch.chdir(tmp_path)
    assert execute(["node", "network", "farm"]) == 0
    assert execute(["node", "enrol", "boat", "--network", "farm"]) == 0
    config = read_config(tmp_path / "boat")
    assert config.name == "boat"
    assert len(network_key(config)) == 32
    assert {stat.S_IMODE((tmp_path / "boat" / name).stat().st_mode) for name in ("node.key", "network.key")} == {0o600}
    assert not (tmp_path / "boat" / "ca.key").exists()
    assert execute(["node", "init", "buoy", "--network", "sea", "--out", "b"]) == 0
    assert read_config(tmp_path / "b").network.security == "none"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("node init there", "there is there already"),
        ("node init two/words", "cannot be the name of a node"),
        ("node network -x", "No such option"),
        ("node network x..", "cannot be the name of a network"),
        ("node enrol a --network nowhere", "nowhere/ca.pem cannot be read"),
        ("node enrol a", "Missing option"),
    ],
)
def test_bad_input_of_commands(
    command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from serai.cli import execute

    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    assert execute(command.split()) == 2
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_missing_file_and_a_bad_key_are_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        read_config(tmp_path / "none.toml")
    config = parse_config('name = "a"\n[network]\nname = "n"', "node.toml", tmp_path)
    with pytest.raises(BadInput, match=r"network\.key: cannot read"):
        network_key(config)
    (tmp_path / "network.key").write_text("secret")
    with pytest.raises(BadInput, match="64 hexadecimal digits"):
        network_key(config)


# -- clocks


class Machine:
    """A machine whose clock can be set."""

    def __init__(self) -> None:
        self.wall_s, self.mono_s = 1_800_000_000.0, 5.0

    def pass_s(self, seconds: float) -> None:
        self.wall_s += seconds
        self.mono_s += seconds

    def time(self) -> float:
        return self.wall_s

    def monotonic(self) -> float:
        return self.mono_s


def test_time_never_goes_back_whatever_is_done_to_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    monkeypatch.setattr(clock, "time", machine)
    mine = NodeClock("trusted")
    first = mine.instant().node_s
    assert first == machine.wall_s - datetime(2000, 1, 1, tzinfo=UTC).timestamp()
    machine.wall_s -= 3 * 86_400  # set back
    machine.pass_s(10)
    assert mine.instant().node_s == pytest.approx(first + 10)
    machine.wall_s += 5 * 86_400  # set forward
    assert mine.instant().node_s == pytest.approx(first + 10 + 2 * 86_400)
    again = NodeClock("trusted", last_s=first + 9e6)  # after a start with a clock that is behind
    assert again.instant().node_s == pytest.approx(first + 9e6)


def test_time_is_taken_from_a_neighbour_who_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    monkeypatch.setattr(clock, "time", machine)
    lost = NodeClock("untrusted")
    now_s = lost.instant().node_s
    lost.heard(round((now_s + 1000) * 1000), clock.TAKEN)  # it does not know itself
    assert (lost.instant().node_s, lost.trust()) == (now_s, clock.NO_CLOCK)
    lost.heard(round((now_s + 1000) * 1000), clock.TRUSTED)
    assert lost.instant().node_s == pytest.approx(now_s + 1000)
    assert lost.trust() == clock.TAKEN
    sure = NodeClock("trusted")
    sure.heard(round((now_s + 1000) * 1000), clock.TRUSTED)
    assert (sure.instant().node_s, sure.trust()) == (now_s, clock.TRUSTED)


# -- beacons


def test_beacons_are_heard_on_this_machine() -> None:
    async def story() -> None:
        heard: dict[str, set[str]] = {"a": set(), "b": set()}
        settings = BeaconSettings(port=39_003, period_s=1)
        both = [
            Discovery(
                settings,
                Beacon(f"dtn://{name}/", 1, (("tcpcl", 4556),), bytes(8)),
                lambda beacon, host, name=name: heard[name].add(beacon.node),
            )  # type: ignore[misc]
            for name in heard
        ]
        for one in both:
            await one.start()
        async with asyncio.timeout(5):
            while heard != {"a": {"dtn://b/"}, "b": {"dtn://a/"}}:
                await asyncio.sleep(0.02)
        both[0].datagram_received(b"\xff\x00", ("127.0.0.1", 1))  # no beacon: nothing happens
        for one in both:
            one.stop()

    asyncio.run(story())
