"""Protocols of the user's own, for every kind of network: files, settings, what is told, and mistakes."""
