"""The commands that work on Spark: what they answer, write and refuse."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from serai.cli.spark import rate_and_rest
from serai.sweeping.store import Store

Run = Callable[..., Any]
TINY = [
    *("--set", "duration=5 min", "--set", "events.quiet=0 s", "--set", "field.width=60 m"),
    *("--set", "field.height=60 m", "--set", "field.cells=4"),
]


def test_demo_compares_with_the_papers_and_writes_its_report(serai: Run, spark: Any, tmp_path: Path) -> None:
    found = json.loads(serai("demo", "--seeds", "2", "--json").out)
    assert found["seeds"] == 2
    assert list(found["protocols"]) == ["ced", "cet", "dg"]
    ratio = found["protocols"]["ced"]["delivery_ratio"]
    assert (ratio["published"], ratio["runs"]) == (0.865, 2)
    assert abs(ratio["mean"] - 0.865) < 0.1
    lifetime = found["protocols"]["dg"]["lifetime_days"]  # of two seeds: the interval is as wide as the number
    assert (lifetime["verdict"], "missed" in lifetime) == ("cannot be told", False)
    assert Path(found["report"]).resolve() == tmp_path / "serai-demo" / "report.html"
    assert Path(found["replay"]).resolve() == tmp_path / "serai-demo" / "replay.html"
    page = Path(found["report"]).read_text()
    assert '<a href="replay.html">play a run</a>' in page
    assert 'id="figure-field"' in page
    assert 'id="figure-lost-cet"' in page

    answer = serai("demo", "--seeds", "2")  # nothing is run again
    assert answer.code == 0, answer.err
    assert max(map(len, answer.out.splitlines())) <= 80
    rows = {line.split()[0]: line for line in answer.out.splitlines() if re.match(r" (CED|CET|DG) ", line)}
    assert list(rows) == ["CED", "CET", "DG"]
    assert re.findall(r"[\d.]+", rows["CED"])[-4:] == ["86.5", "230.6", "4.2", "3.57"]
    assert rows["DG"].split()[-1] == "6.04?"
    assert all(row.count("±") == 4 for row in rows.values())
    assert "? cannot be told" in answer.out
    assert "report.html" in answer.out

    (tmp_path / "serai-demo" / "sweep.json").write_text(
        (tmp_path / "serai-demo" / "sweep.json").read_text().replace('"sources": "', '"sources": "other')
    )
    again = serai("demo", "--seeds", "1", "--json")  # a demo of another version makes room
    assert json.loads(again.out)["protocols"]["dg"]["mean_delay_s"]["half_width"] is None


def test_sweep_answers_for_programs_and_for_people(serai: Run, spark: Any, tmp_path: Path) -> None:
    words = ["sweep", "dg", *TINY, "--set", "sensors.count=8,9", "--seeds", "3", "--out", "out", "--no-report"]
    found = json.loads(serai(*words, "--json").out)
    assert [point["settings"] for point in found["points"]] == [{"sensors.count": 8}, {"sensors.count": 9}]
    assert found["points"][1]["protocols"]["dg"]["delivery_ratio"]["runs"] == 3
    assert found["report"] is None
    answer = serai(*words)
    assert answer.code == 0, answer.err
    assert max(map(len, answer.out.splitlines())) <= 80
    assert "count 9" in answer.out
    assert Store(tmp_path / "out").table.exists()
    assert not (tmp_path / "out" / "report.html").exists()


def test_sweep_says_how_far_it_is(serai: Run, spark: Any) -> None:
    answer = serai("sweep", "dg", *TINY, "--seeds", "3", "--out", "out", "--no-report", "--json")
    assert re.search(r"simulate +3/3 runs, [\d.e+]+ per s in \d+ s", answer.err)
    simulated, total = (int(re.search(rf" {name} .*?(\d+) s", answer.err)[1]) for name in ("simulate.* in", "total"))
    assert total >= simulated
    assert answer.err.splitlines()[-1].startswith(" total ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sweep field --set protocol.alpha=5..2 --out out", "wrong way round"),
        ("sweep field --set protocol.alfa=5,7 --out out", 'did you mean "alpha"'),
        ("sweep field --protocols ced,gd --out out", 'did you mean "dg"'),
        ("sweep field --keep all --out out", "one of: ledger, log"),
        ("sweep field --until-ci wide --out out", "write it like 1%"),
        ("sweep nowhere --out out", 'no scenario "nowhere"'),
        ("sweep field", "--out"),
        ("sweep field --out out --master local[2] --remote sc://x", "not both"),
        ("sweep field --out here/file", "is a file, not a folder"),
        ("demo --out here", "holds no sweep"),
        ("collect here --out here/file/x", "here/file is a file, not a folder"),
        ("stream --events here --subscriptions here/s.csv --out here/file", "here/file is a file, not a folder"),
        ("match --events here/s.csv --subscriptions here/s.csv --out here/file/x", "here/file is a file, not a folder"),
        ("stream --events here --subscriptions here/s.csv --out out --poll -1s", '--poll "-1s": a time that is not'),
        ("sweep dg --out s3a://bucket/x", "s3a://bucket/x: only folders of this machine"),
        ("collect runs --out s3a://bucket/x", "s3a://bucket/x: only folders of this machine"),
        ("stream --events here --subscriptions here/s.csv --out s3a://bucket/x", "only folders of this machine"),
        ("match --events here/s.csv --subscriptions here/s.csv --out s3a://bucket/x", "only folders of this machine"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(serai: Run, tmp_path: Path, words: str, said: str) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").write_text("")
    (tmp_path / "here" / "s.csv").write_text("event,subscription,where\n1,1,a < 1\n")
    answer = serai(*words.split())
    assert answer.code == 2
    assert said in answer.err
    assert "Traceback" not in answer.err
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_a_cluster_that_does_not_answer_fails_with_one_sentence(serai: Run, tmp_path: Path) -> None:
    answer = serai("sweep", "dg", *TINY, "--out", "out", "--master", "spark://127.0.0.1:1")
    assert answer.code == 1
    assert "does not answer" in answer.err.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("done", "total", "seconds", "said"),
    [(0, 10, 5.0, ""), (5, 10, 2.0, ", 2.5 per s, 2 s left"), (10, 10, 4.0, ", 2.5 per s in 4 s")],
)
def test_rate_and_rest(done: int, total: int, seconds: float, said: str) -> None:
    assert rate_and_rest(done, total, seconds) == said
