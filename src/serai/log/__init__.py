"""The folder that keeps a run: written by engines, read by all else."""
