"""Live nodes: CPU for each bundle and side, memory, start. `python benchmarks/node.py [BUNDLES]`

Two nodes as processes on loopback, without TLS: the first takes messages over MQTT (QoS 1), the second comes then and
takes them over. CPU is that of the processes (all threads); a bundle counts when it is on the receiver's disk.
"""

import os
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from tests.node.crash import Application, wait  # noqa: E402
from tests.node.test_daemon import init, node  # noqa: E402

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S


def memory_mb(pid: int) -> float:
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1000


def stored(folder: Path) -> int:
    with closing(sqlite3.connect(f"file:{folder / 'node.db'}?mode=ro", uri=True)) as store:
        return int(store.execute("SELECT count(*) FROM data").fetchone()[0])


def measure(bundles: int, size: int) -> dict[str, float]:
    """Microseconds of CPU for each bundle: taken from an application, sent, received."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with node(init(folder, "a")) as (a, doors):
            idle_mb = memory_mb(a.pid)
            publisher = Application("pub", doors["mqtt"])
            wait(publisher.client.is_connected, 10)
            before_s = cpu_s(a.pid)
            for _ in range(bundles):
                publisher.client.publish("bench", os.urandom(size), qos=1)
            assert wait(lambda: publisher.taken == bundles, 300)
            published_s = cpu_s(a.pid) - before_s
            publisher.stop()
            more = f'[[neighbours]]\naddress = "127.0.0.1:{doors["tcpcl"]}"\n'
            with node(init(folder, "b", more)) as (b, _):
                before_s, there_s, began_s = cpu_s(a.pid), cpu_s(b.pid), time.perf_counter()
                assert wait(lambda: stored(folder / "b") == bundles, 300)
                took_s = time.perf_counter() - began_s
                sent_s, received_s = cpu_s(a.pid) - before_s, cpu_s(b.pid) - there_s
    each = {"published": published_s, "sent": sent_s, "received": received_s}
    return {name: 1e6 * value / bundles for name, value in each.items()} | {
        "per_s": bundles / took_s,
        "idle_mb": idle_mb,
    }


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    print("| payload | bundles | publish, us | send, us | receive, us | bundles/s | idle, MB |")
    print("|---|---|---|---|---|---|---|")
    for size, bundles in ((256, count), (64 << 10, max(100, count // 20))):
        found = measure(bundles, size)
        columns = [f"{found[name]:.0f}" for name in ("published", "sent", "received", "per_s", "idle_mb")]
        print(f"| {size} B | {bundles} | {' | '.join(columns)} |", flush=True)
