"""What really happened, from files: readings of sensors, thinned if wanted, and who asked for what and when."""
