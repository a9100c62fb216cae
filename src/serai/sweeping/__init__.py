"""Thousands of runs on Spark: planned, cut into tasks, resumed, aggregated."""
