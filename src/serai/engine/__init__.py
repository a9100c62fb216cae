"""The loops that drive protocols over a world: one small engine for each kind of network, and what they share."""
