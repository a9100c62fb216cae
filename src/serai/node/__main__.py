"""`python -m serai.node FILE`: the program that `serai node run` goes on as; see `serai.node.checked`."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback

from serai.core.errors import BadInput, CannotRun, SeraiError, bug_message
from serai.node.checked import Start, taken_over
from serai.node.daemon import Ports, run, serve


def main() -> int:
    """Run a node until it is told to stop; the exit code."""
    start = taken_over(int(sys.argv[1]))
    logging.basicConfig(format="%(message)s", level=logging.DEBUG if start.verbose else logging.INFO)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    try:
        run(serve(start.config, lambda ports: _ready(start, ports)))
    except SeraiError as error:
        print(error, file=sys.stderr)
        return 3 if isinstance(error, CannotRun) else 2 if isinstance(error, BadInput) else 1
    except OSError as error:
        print(f"serai: {error.filename or 'this machine'}: {error.strerror or error}", file=sys.stderr)
        return 1
    except Exception as error:
        if os.environ.get("SERAI_DEBUG"):
            traceback.print_exc()
        print(bug_message(error), file=sys.stderr)
        return 1
    return 0


def _ready(start: Start, ports: Ports) -> None:
    config = start.config
    if start.as_json:
        print(json.dumps({"node": config.name, "network": config.network.name, "ports": ports}), flush=True)
    else:
        doors = ", ".join(f"{name} {port}" for name, port in ports.items() if port is not None)
        print(f"node {config.name} of the network {config.network.name} is up; ports: {doors}", flush=True)


sys.exit(main())
