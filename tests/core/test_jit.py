"""Where compiled kernels are kept, and what is said while they are compiled."""

import gc
import hashlib
import io
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from serai.core import jit as _jit
from serai.core.jit import announced_compilation, kernel, kernels_are_warm, rule

SOURCES = Path(_jit.__file__).parents[2]


def chosen_folder(**environment: str) -> Path:
    """The cache folder that a new process chooses."""
    kept = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    found = subprocess.run(
        [sys.executable, "-c", "import serai.core.jit as jit; print(jit.cache_folder())"],
        env=kept | {"PYTHONPATH": str(SOURCES)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(found.stdout.strip())


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache folder, and kernels that are compiled."""
    monkeypatch.setattr(_jit, "_ROOT", tmp_path)
    _jit._folder_of.cache_clear()
    monkeypatch.setattr(_jit._CONFIG, "DISABLE_JIT", 0)
    yield tmp_path
    _jit._folder_of.cache_clear()


def test_a_rule_and_a_kernel_compute() -> None:
    @rule
    def double(number: int) -> int:
        return 2 * number

    def sum_of_doubles(last: int) -> int:
        total = 0
        for number in range(last + 1):
            total += double(number)
        return total

    assert double(4) == 8
    assert kernel(sum_of_doubles)(10) == sum_of_doubles(10) == 110


def test_a_division_by_zero_is_an_error() -> None:
    @kernel
    def divide(a: float, b: float) -> float:
        return a / b

    with pytest.raises(ZeroDivisionError):
        divide(1.0, 0.0)


def test_the_notice_comes_once(cold: Path) -> None:
    said = io.StringIO()
    assert not kernels_are_warm("ced")
    for _ in range(2):
        with announced_compilation("ced", said):
            pass
    assert said.getvalue().splitlines() == ["compiling kernels of ced (once per version, about 20 s) ..."]
    assert kernels_are_warm("ced")
    assert not kernels_are_warm("cet")
    assert sorted(path.name for path in cold.glob("*/*")) == ["ced.compiled", "ced.lock"]


def test_two_processes_do_not_compile_the_same_at_once(cold: Path) -> None:
    order = []

    def second() -> None:
        with announced_compilation("ced", said):
            order.append("second")

    said = io.StringIO()
    other = threading.Thread(target=second)
    with announced_compilation("ced", said):
        other.start()
        time.sleep(0.2)
        order.append("first")
    other.join()
    assert order == ["first", "second"]
    assert said.getvalue().count("compiling") == 1


def test_the_notice_goes_to_stderr(cold: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with announced_compilation("ced"):
        pass
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("compiling kernels")


def test_what_failed_to_compile_is_announced_again(cold: Path) -> None:
    with pytest.raises(ValueError, match="no"), announced_compilation("ced", io.StringIO()):
        raise ValueError("no")
    assert not kernels_are_warm("ced")


def test_no_garbage_is_collected_while_kernels_are_compiled(cold: Path) -> None:
    with pytest.raises(ValueError, match="no"), announced_compilation("ced", io.StringIO()):
        raise ValueError("no")
    assert gc.isenabled()
    with announced_compilation("ced", io.StringIO()):
        assert not gc.isenabled()
    with announced_compilation("ced", io.StringIO()):  # nothing to compile
        assert gc.isenabled()


def test_nothing_is_announced_when_nothing_is_compiled(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jit._CONFIG, "DISABLE_JIT", 1)
    said = io.StringIO()
    with announced_compilation("ced", said):
        pass
    assert said.getvalue() == ""


def test_machine_code_is_kept_by_the_sources_it_comes_from(cold: Path) -> None:
    @kernel
    def answer() -> int:
        return 42

    assert answer() == 42
    (folder,) = cold.iterdir()
    assert folder == _jit._folder_of(_jit._closure(Path(__file__)))
    assert list(folder.rglob("*.nbi"))


def test_what_a_source_imports_counts_and_nothing_else() -> None:
    package = SOURCES / "serai"
    closure = _jit._closure(package / "field" / "ced.py")
    assert {
        package / "core" / "jit.py",
        package / "core" / "order.py",
        package / "field" / "engine" / "queues.py",
    } <= closure
    assert not {package / "field" / "cet.py", package / "field" / "log.py", package / "cli" / "__init__.py"} & closure


def test_every_way_to_import_is_seen(tmp_path: Path) -> None:
    source = tmp_path / "some.py"
    source.write_text(
        "import serai.core.units\nfrom serai.world import (\n    grid,\n    mobility,\n)\n"
        "from serai.core import errors\n"
    )
    seen = {path.relative_to(SOURCES / "serai").as_posix() for path in _jit._imported(source)}
    assert {"core/units.py", "world/grid.py", "world/mobility.py", "core/errors.py"} <= seen


def test_a_changed_source_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "field.py"
    stamps = [_jit._stamp([])]
    for text in ("a = 1", "a = 2"):
        source.write_text(text)
        stamps.append(_jit._stamp([source]))
    source = source.rename(tmp_path / "moved.py")
    stamps.append(_jit._stamp([source]))
    monkeypatch.setattr(_jit._CONFIG, "BOUNDSCHECK", not _jit._CONFIG.BOUNDSCHECK)
    stamps.append(_jit._stamp([source]))
    assert len(set(stamps)) == 5


def test_the_stamp_is_cheap() -> None:
    """It takes little more than to read the files and to add them up, in the same run."""

    def seconds(work: Callable[[], object]) -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    def stamp() -> None:
        _jit._may_have_kernels.cache_clear()
        _jit._stamp(_jit._may_have_kernels())

    def reading() -> None:
        for file in files:
            hashlib.blake2b(file.read_bytes())

    files = _jit._may_have_kernels()
    rounds = [(seconds(stamp), seconds(reading)) for _ in range(7)]
    assert min(first for first, _ in rounds) < 4 * min(second for _, second in rounds)


def test_what_has_no_kernels_marks_none() -> None:
    for package in _jit._NO_KERNELS:
        for file in (SOURCES / "serai" / package).rglob("*.py"):
            assert not re.search(r"^@(kernel|engine|rule|step)\b", file.read_text(), re.MULTILINE), file


def test_where_the_folder_is(tmp_path: Path) -> None:
    home, xdg, numba, ours = (tmp_path / name for name in ("home", "xdg", "numba", "ours"))
    assert chosen_folder(HOME=str(home)) == home / ".cache" / "serai"
    assert chosen_folder(HOME=str(home), XDG_CACHE_HOME=str(xdg)) == xdg / "serai"
    assert chosen_folder(NUMBA_CACHE_DIR=str(numba)) == numba
    assert chosen_folder(NUMBA_CACHE_DIR=str(numba), SERAI_CACHE_DIR=str(ours)) == ours


def test_a_cache_that_cannot_be_written_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = chosen_folder(SERAI_CACHE_DIR=str(tmp_path / "file"), TMPDIR=str(tmp_path))
    assert found.parent == tmp_path
    assert found.is_dir()
    assert found.stat().st_mode & 0o077 == 0  # nobody else can put machine code there


def test_a_strangers_temporary_folder_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"serai-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    found = chosen_folder(SERAI_CACHE_DIR=str(tmp_path / "file"), TMPDIR=str(tmp_path))
    assert found.name not in ("elsewhere", f"serai-{os.getuid()}")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_old_folders_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_jit, "_MOST_KEPT", 2)
    now = time.time()
    for number, age_days in enumerate((0, 1, 2, 3, 40)):
        folder = tmp_path / f"kernels-{number:016x}"
        (folder / "world").mkdir(parents=True)
        os.utime(folder, (now - age_days * 86_400,) * 2)
    (tmp_path / "kernels-of-mine").mkdir()
    os.utime(tmp_path / "kernels-of-mine", (0, 0))
    _jit._remove_unused(tmp_path)
    left = sorted(path.name[-1] for path in tmp_path.iterdir())
    assert left == ["0", "1", "e"]  # the two latest, and what is not ours


def test_what_somebody_uses_today_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many versions are at work side by side: else they would compile for ever."""
    monkeypatch.setattr(_jit, "_MOST_KEPT", 2)
    for number in range(5):
        folder = tmp_path / f"kernels-{number:016x}"
        folder.mkdir()
        os.utime(folder, (time.time() - 3600 * number,) * 2)
    _jit._remove_unused(tmp_path)
    assert len(list(tmp_path.iterdir())) == 5
