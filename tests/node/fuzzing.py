"""Fuzzing by coverage: atheris looks for bytes that lead a decoder where none has led it before.

    python -m tests.node.fuzzing NAME RUNS          one of the decoders of tests/node/test_fuzz.py

Ends with code 0 after so many inputs; else with the first for which a decoder does anything but answer or refuse, or
takes half a second of CPU, or after which the process has 600 MB.
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["serai.node"]):
    from tests.node.test_fuzz import DECODERS, is_refused


def main(name: str, runs: int) -> None:
    decoder, right = DECODERS[name]

    def once(data: bytes) -> None:
        is_refused(decoder, data)

    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(right):
            (Path(folder) / str(number)).write_bytes(data)
        limits = ["-seed=1", "-max_len=2000", "-timeout=60", "-rss_limit_mb=600"]
        told = ["-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={folder}/"]
        atheris.Setup([sys.argv[0], folder, f"-runs={runs}", *limits, *told], once)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
