"""Files that commands read and write: checked before a run, and named when they fail."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from serai.cli.scenarios import _write_new
from serai.core.errors import BadInput, CannotRun
from serai.sweeping.plan import plan_sweep
from serai.sweeping.run import waiting_notice
from serai.sweeping.store import Store
from tests.cli.conftest import Answer

Run = Callable[..., Answer]
EXAMPLES = Path(__file__).parents[2] / "examples"
BAD_FILES = [
    ("field", '[sensors]\nplacement = "file"\nfile = "data.csv"', "x,y\n1,2\n3,hello\n", "line 3"),
    ("field", '[sensors]\nplacement = "file"\nfile = "data.csv"', "x,y\n1,2\n900,1\n", "outside"),
    ("overlay", '[nodes]\nplacement = "links"\nfile = "data.csv"', "from,to\na,b\nc,d\n", "in 2 parts"),
    ("opportunistic", '[contacts]\nsource = "trace"\nfile = "data.csv"', "hello\n", "data.csv"),
]
PROTOCOL = {"field": "ced", "overlay": "tinymq", "opportunistic": "dpsp"}


@pytest.mark.parametrize(("kind", "text", "data", "said"), BAD_FILES)
def test_check_reads_the_files_that_a_scenario_names(
    serai: Run, tmp_path: Path, kind: str, text: str, data: str, said: str
) -> None:
    (tmp_path / "data.csv").write_text(data)
    (tmp_path / "mine.toml").write_text(f'protocol.name = "{PROTOCOL[kind]}"\n{text}\n')
    answer = serai("scenario", "check", "mine.toml")
    assert answer.code == 2, answer.out
    assert said in answer.err
    assert "data.csv" in answer.err
    answer = serai("scenario", "check", "mine.toml", "--json")
    assert answer.code == 2
    found = json.loads(answer.out)
    assert not found["ok"]
    assert said in found["problems"][0]["message"]


def test_check_reads_messages_and_subscriptions(serai: Run, tmp_path: Path) -> None:
    (tmp_path / "messages.csv").write_text("time,source\nsoon,1\n")
    (tmp_path / "mine.toml").write_text('protocol.name = "dpsp"\n[bundles]\nfile = "messages.csv"\n')
    answer = serai("scenario", "check", "mine.toml")
    assert answer.code == 2, answer.out
    assert "messages.csv" in answer.err


def test_examples_can_be_checked_and_imported(serai: Run, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    assert serai("scenario", "check", "examples/deployment.toml").code == 0
    answer = serai("scenario", "import", "examples/tracks.csv", "--out", "birds.toml")
    assert answer.code == 0
    assert "!" not in answer.out
    assert serai("scenario", "check", "birds.toml").code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("run", "ced"),
        ("sweep", "ced", "--seeds", "1"),
        ("demo", "--seeds", "1"),
        ("node", "init", "ridge"),
        ("examples", "copy", "park"),
    ],
)
@pytest.mark.parametrize("place", ["/proc/serai/run", "/dev/null/run", "x" * 300])
def test_an_impossible_place_is_named_before_anything_is_run(serai: Run, command: tuple[str, ...], place: str) -> None:
    answer = serai(*command, "--out", place)
    assert answer.code == 2
    assert place in answer.err
    assert len(answer.err.splitlines()) == 1


def test_a_full_disk_is_named_by_the_folder(serai: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    answer = serai("run", "ced", "--set", "duration=10 min", "--out", "here/run")
    assert answer.code == 1
    assert answer.err.splitlines()[-1] == "serai: here/run: No space left on device"
    assert not list(tmp_path.rglob("*"))


def test_a_new_scenario_is_whole_or_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")

    class Full:
        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            raise full

        def write(self, text: str) -> int:
            return len(text)

    def opened(file: Path, *_: object, **__: object) -> Full:
        file.touch()
        return Full()

    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(BadInput, match=r"mine\.toml: cannot be written: No space left on device"):
        _write_new(tmp_path / "mine.toml", "text")
    assert list(tmp_path.iterdir()) == []


def test_a_pipeline_that_is_no_text(serai: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe")
    answer = serai("pipeline", "status", "mine.toml")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "mine.toml: not UTF-8 text (byte 0); name the TOML file of a pipeline\n"


@pytest.mark.parametrize(("ended", "code"), [(KeyboardInterrupt(), 130), (CannotRun("no room"), 1)])
@pytest.mark.parametrize("clock", [("--clock", "virtual"), ("--clock", "real", "--speed", "100")])
def test_an_emulation_that_is_stopped_leaves_nothing(
    serai: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    clock: tuple[str, ...],
    ended: BaseException,
    code: int,
) -> None:
    def stopped(*_: object, **__: object) -> None:
        assert (tmp_path / "out").is_dir()
        raise ended

    monkeypatch.setattr("serai.node.emulation.compare.run_nodes", stopped)
    monkeypatch.setattr("serai.node.emulation.compare.by_the_clock", stopped)
    small = ("--set", "nodes.count=5", "--set", "duration=2 h")
    assert serai("emulate", "dpsp", *clock, *small, "--out", "out").code == code
    assert list(tmp_path.iterdir()) == []


def test_asking_for_a_place_leaves_nothing_there(tmp_path: Path) -> None:
    Store(tmp_path / "sweep").check(plan_sweep("ced", [], ("ced",), 1))
    assert not list(tmp_path.iterdir())


def test_a_cluster_is_spoken_of_only_where_there_is_one() -> None:
    assert "cluster" not in waiting_notice("local[2]")
    assert "this machine" in waiting_notice("local[*]")
    assert "cluster" in waiting_notice("spark://host:7077")
    assert "cluster" in waiting_notice(None)
