"""Runs to look at: one HTML file that plays a run in a browser, without a network."""

from serai.replay.run import write_replay

__all__ = ["write_replay"]
