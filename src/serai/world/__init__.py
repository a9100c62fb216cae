"""Places, movement, and who comes within range of whom: what the kinds of network share."""
