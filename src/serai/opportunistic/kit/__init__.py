"""A protocol of your own as one class in plain Python: the API, and the engine that drives it."""
