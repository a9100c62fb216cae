"""The entry point of `serai` and of `python -m serai`: from its first moment on Ctrl-C is heard."""

from __future__ import annotations

import sys

from serai.core.stopping import STOPPED, say_stopped, watch_for_ctrl_c


def main() -> None:
    """Run the command line and leave with its exit code."""
    watch_for_ctrl_c()
    try:
        from serai.cli import main as run  # takes a tenth of a second, in which somebody may press it
    except KeyboardInterrupt:
        say_stopped()
        sys.exit(STOPPED)
    run()


if __name__ == "__main__":
    main()
