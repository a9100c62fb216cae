"""What every field protocol is built from: state, queues, transmissions, energy; compiled, and knowing no protocol."""
