"""What nodes say to each other: TCPCLv4 and MTCP sessions, beacons, lists. Pure: bytes in, events out."""
