"""What SERAI is made of: its settings, its state, and its rules, one file for what belongs together."""
