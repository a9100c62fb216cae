"""MQTT 3.1.1 and 5 without a socket: packets, and what a server has to say to one client."""
