"""How communities collect events for subscribers: what CED (4) and CET (3.2.1, 3.3) share, by the papers' sections."""
