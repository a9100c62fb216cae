"""`match` and `collect` over Spark Connect, on a real server, with every format of files."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_match import EVENTS, EXPECTED, SUBSCRIPTIONS, read, write
from tests.effort import THOROUGH
from tests.spark.cluster import processes, start_cluster, start_connect_server

Run = Callable[..., Any]
pytestmark = pytest.mark.skipif(not THOROUGH, reason="starts servers of Spark: with SERAI_THOROUGH=1")


def own_process(folder: Path, *arguments: str) -> dict[str, Any]:
    """What a command answers that runs in a process of its own: this one has another session."""

    from tests.cli.conftest import SERAI, environment

    done = subprocess.run([*SERAI, *arguments, "--json"], cwd=folder, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_match_and_collect_over_connect(tmp_path: Path) -> None:
    with processes(tmp_path) as group:
        remote = start_connect_server(group)
        for suffix in ("parquet", "csv", "jsonl"):
            tables = [
                ("--events", write(EVENTS, tmp_path / f"events.{suffix}")),
                ("--subscriptions", write(SUBSCRIPTIONS, tmp_path / f"subscriptions.{suffix}")),
            ]
            for engine in ("index", "keys"):
                out = f"pairs-{engine}.{suffix}"
                words = [word for pair in tables for word in pair] + ["--out", out, "--engine", engine]
                own_process(tmp_path, "match", *words, "--remote", remote)
                assert read(tmp_path / out) == EXPECTED
        own_process(
            tmp_path, "run", "ced", "--set", "duration=10 min", "--set", "sensors.count=20", "--out", "runs/one"
        )
        here = own_process(tmp_path, "collect", "runs", "--out", "here")
        there = own_process(tmp_path, "collect", "runs", "--out", "there", "--remote", remote)
        assert here == there


def test_match_and_stream_on_a_cluster(tmp_path: Path) -> None:
    with processes(tmp_path) as group:
        master, _ = start_cluster(group, 2)
        (tmp_path / "in").mkdir()
        write(EVENTS, tmp_path / "in" / "events.parquet")
        asked = ("--subscriptions", write(SUBSCRIPTIONS, tmp_path / "subscriptions.parquet"), "--master", master)
        own_process(tmp_path, "match", "--events", "in", *asked, "--out", "pairs")
        assert read(tmp_path / "pairs") == EXPECTED
        said = own_process(tmp_path, "stream", "--events", "in", *asked, "--out", "streamed", "--once")
        assert (said["events"], said["pairs"]) == (3, 6)
