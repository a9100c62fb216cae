"""The file of a pipeline: where logs arrive, what identifies an event, who is told, and when somebody should look."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from serai.core.errors import BadInput, did_you_mean
from serai.core.units import TIME, parse_quantity
from serai.pipeline.spool import Broker
from serai.spark.places import is_address, local_path
from serai.spark.stores import Bucket, Folder, Store, store_at

_KEYS: Final = ("home", "source", "subscriptions", "nodes", "deliver", "alerts", "good_clocks", "spark", "events")
_ALERTS: Final = ("silent", "missing", "quarantined", "clocks", "battery")
_FOLDER: Final = '{kind = "folder", path = "inbox"}'
_MQTT: Final = '{kind = "mqtt", broker = "mqtt://gateway:1883", topics = ["field/+/events"]}'
_EVENTS: Final = ("id", "time", "rename")


@dataclass(frozen=True)
class Alerts:
    """When somebody should look: nodes silent for so long, so much missing, so many files set aside, clocks wrong,
    a battery below."""

    silent_s: float | None = None
    missing: float | None = None
    quarantined: int | None = None
    clocks: bool = False
    battery: float | None = None


@dataclass(frozen=True)
class Pipeline:
    """What a pipeline was told."""

    home: Store
    sources: Mapping[str, Path | Bucket]  # folders, also those of brokers; by what the file calls them
    subscriptions: Path
    nodes: Path | None = None  # where they stand
    receivers: tuple[str, ...] = ()
    alerts: Alerts = field(default_factory=Alerts)
    good_clocks: tuple[str, ...] = ()  # whose clocks are right; if nobody: carriers that agree
    brokers: Mapping[str, Broker] = field(default_factory=dict)
    master: str | None = None  # of Spark; None: this process does the work by itself
    id: tuple[str, ...] = ("node", "epoch", "seq")
    time: str = "time"
    rename: Mapping[str, str] = field(default_factory=dict)

    @property
    def numbered(self) -> bool:
        """Whether events are counted by their nodes, so that what is missing is known."""
        return len(self.id) == 3


def load_pipeline(path: str | Path) -> Pipeline:
    """The pipeline that a TOML file describes; paths in it are relative to the file."""
    place = local_path(path)
    try:
        text = place.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; name the TOML file of a pipeline") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 text (byte {error.start}); name the TOML file of a pipeline") from None
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: {error}") from None
    reader = _Reader(str(path), place.parent)
    found = reader.pipeline(said)
    if reader.problems:
        raise BadInput("\n".join(f"{path}: {problem}" for problem in reader.problems))
    assert found is not None
    return found


class _Reader:
    """Reads the tables of a file, and remembers all that is wrong with them."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder
        self.problems: list[str] = []

    def pipeline(self, said: Mapping[str, Any]) -> Pipeline | None:
        self.check_keys("", said, _KEYS)
        events = self.table(said, "events", _EVENTS)
        alerts = self.table(said, "alerts", _ALERTS)
        for key in ("home", "subscriptions"):
            if not isinstance(said.get(key), str):
                self.problems.append(f'{key}: missing; write {key} = "path"')
        home = self.home(str(said.get("home", "home")))
        sources = dict(self.sources(said.get("source", []), home))
        if not isinstance(said.get("nodes", ""), str):
            self.problems.append('nodes: write nodes = "nodes.csv", a table with node, x, y or node, lat, lon')
        identity = self.identity(events.get("id", ["node", "epoch", "seq"]))
        receivers = tuple(self.receivers(said.get("deliver", [])))
        told = self.alerts(alerts)
        master = self.master(said.get("spark", {"master": "local[*]"}))
        good = said.get("good_clocks", [])
        if not isinstance(good, list) or not all(isinstance(name, str) for name in good):
            self.problems.append('good_clocks: write good_clocks = ["ferry", "gateway"]')
        rename = events.get("rename", {})
        if not isinstance(rename, dict) or not all(isinstance(name, str) for name in rename.values()):
            self.problems.append('events.rename: write rename = {temp = "temperature"}')
        if self.problems:
            return None
        return Pipeline(
            home=home,
            sources={name: each.folder if isinstance(each, Broker) else each for name, each in sources.items()},
            brokers={name: each for name, each in sources.items() if isinstance(each, Broker)},
            subscriptions=self.path(said["subscriptions"]),
            nodes=self.path(said["nodes"]) if "nodes" in said else None,
            receivers=receivers,
            alerts=told,
            good_clocks=tuple(good),
            master=master,
            id=identity,
            time=str(events.get("time", "time")),
            rename=rename,
        )

    def check_keys(self, where: str, said: Iterable[str], allowed: tuple[str, ...]) -> None:
        for key in said:
            if key not in allowed:
                self.problems.append(f"{where}{key}: unknown key; {did_you_mean(key, allowed)}")

    def table(self, said: Mapping[str, Any], key: str, allowed: tuple[str, ...]) -> Mapping[str, Any]:
        found = said.get(key, {})
        if not isinstance(found, dict):
            self.problems.append(f"{key}: should be a table with the keys {', '.join(allowed)}")
            return {}
        self.check_keys(f"{key}.", found, allowed)
        return found

    def home(self, text: str) -> Store:
        return store_at(text if is_address(text) else self.path(text))

    def path(self, text: str) -> Path:
        return self.folder.absolute() / local_path(text)

    def sources(self, said: Any, home: Store) -> Iterable[tuple[str, Path | Bucket | Broker]]:
        listed = said if isinstance(said, list) else [said]
        if not listed:
            self.problems.append(f"source: missing; write source = [{_FOLDER}]")
        for place, each in enumerate(listed):
            kind = each.get("kind") if isinstance(each, dict) else None
            if kind == "folder" and isinstance(each.get("path"), str):
                self.check_keys("source.", each, ("kind", "path"))
                yield each["path"], self.inbox(each["path"])
            elif kind == "mqtt":
                # What a broker sent has to be on a disk before it is acknowledged.
                beside = home.path if isinstance(home, Folder) else self.folder.absolute()
                yield from self.broker(each, beside / f"spool-{place}")
            else:
                self.problems.append(f"source: write {_FOLDER}, or {_MQTT}")

    def inbox(self, text: str) -> Path | Bucket:
        if is_address(text):
            try:
                store = store_at(text)
            except BadInput as error:
                self.problems.append(f"source.path: {error}")
            else:
                assert isinstance(store, Bucket)
                return store
        return self.path(text) if not is_address(text) else self.folder

    def broker(self, said: Mapping[str, Any], folder: Path) -> Iterable[tuple[str, Broker]]:
        self.check_keys("source.", said, ("kind", "broker", "topics", "flush", "client"))
        address, topics = str(said.get("broker", "")), said.get("topics", [])
        if not address.startswith(("mqtt://", "mqtts://")) or not isinstance(topics, list) or not topics:
            self.problems.append(f"source: write {_MQTT}")
            return
        try:
            flush_s = parse_quantity(said.get("flush", "5 s"), TIME)
        except ValueError as error:
            self.problems.append(f"source.flush: {error}")
            return
        told = tuple(map(str, topics))
        yield f"{address} {' '.join(told)}", Broker(address, told, folder, flush_s, said.get("client"))

    def identity(self, said: Any) -> tuple[str, ...]:
        names = (said,) if isinstance(said, str) else tuple(said) if isinstance(said, list) else ()
        if len(names) not in (1, 3) or not all(isinstance(name, str) for name in names):
            self.problems.append('events.id: write id = ["node", "epoch", "seq"], or the name of one unique column')
        return names

    def receivers(self, said: Any) -> Iterable[str]:
        for each in said if isinstance(said, list) else [said]:
            if str(each).startswith("folder:"):
                yield f"folder:{self.path(str(each).removeprefix('folder:'))}"
            elif str(each).startswith(("http://", "https://", "mqtt://", "mqtts://")):
                yield str(each)
            else:
                self.problems.append(
                    f'deliver: "{each}" is none of folder:PATH, http://..., https://..., mqtt://host/topic, mqtts://...'
                )

    def alerts(self, said: Mapping[str, Any]) -> Alerts:
        try:
            silent = None if "silent" not in said else parse_quantity(said["silent"], TIME)
            missing = None if "missing" not in said else _share(said["missing"])
            quarantined = None if "quarantined" not in said else int(said["quarantined"])
            battery = None if "battery" not in said else float(said["battery"])
        except (TypeError, ValueError) as error:
            self.problems.append(
                f'alerts: {error}; write {{silent = "2 d", missing = "5 %", quarantined = 1, clocks = true,'
                " battery = 0.2}"
            )
            return Alerts()
        return Alerts(silent, missing, quarantined, said.get("clocks") is True, battery)

    def master(self, said: Any) -> str | None:
        if said is False:
            return None
        if isinstance(said, dict) and isinstance(said.get("master", "local[*]"), str):
            self.check_keys("spark.", said, ("master",))
            return str(said.get("master", "local[*]"))
        self.problems.append('spark: write spark = {master = "local[*]"}, or spark = false')
        return None


def _share(said: Any) -> float:
    if isinstance(said, str) and said.strip().endswith("%"):
        return float(said.strip().removesuffix("%")) / 100
    return float(said)
