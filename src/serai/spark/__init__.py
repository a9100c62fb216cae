"""The data pipeline: everything that runs on Spark, and the only package that imports it.

A unit is a function from DataFrame to DataFrame, written so that it runs the same on a session in this process
and over Spark Connect: no `sparkContext`, no JVM objects, no global session.
"""
