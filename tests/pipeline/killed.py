"""A runner that dies: `python -m tests.pipeline.killed FIELD OPERATIONS SECONDS` runs a pipeline once, until then.

It kills itself before it does so manyth a thing to a file, a folder, a store or a table, or after so much time.
"""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from serai.pipeline.tables import Tables
from serai.spark.stores import Bucket, Folder
from tests.pipeline.test_pipeline import once

EVENTS = ("open", "os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Count:
    def __init__(self, left: int) -> None:
        self.left, self.done = left, 0

    def one(self) -> None:
        self.done += 1
        if self.done == self.left:
            die()

    def on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS:
            self.one()

    def counted(self, owner: type, name: str) -> None:
        """Count the calls of a method, before and after it does something."""
        method = getattr(owner, name)

        def call(*rest: Any, **more: Any) -> Any:
            self.one()
            answer = method(*rest, **more)
            self.one()
            return answer

        setattr(owner, name, call)


if __name__ == "__main__":
    field, operations, seconds = sys.argv[1:]
    count = Count(int(operations))
    sys.addaudithook(count.on_event)
    for owner, name in ((Tables, "add"), (Bucket, "write"), (Bucket, "remove"), (Folder, "take"), (Folder, "sync")):
        count.counted(owner, name)
    threading.Timer(float(seconds), die).start()
    once(Path(field))
    print(count.done, flush=True)
    os._exit(0)
