"""Protocols of your own for fields: `Sensor` and `Visitor`, and the plain engine that runs them."""
