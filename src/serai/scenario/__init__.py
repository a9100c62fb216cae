"""Scenarios: a TOML file becomes a frozen, validated object, or a list of everything wrong with it."""
