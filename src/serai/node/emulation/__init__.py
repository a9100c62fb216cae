"""Real nodes through a scenario's contacts, beside the simulation of the same: `serai emulate`. Laboratory only."""
