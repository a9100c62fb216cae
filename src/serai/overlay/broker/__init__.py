"""A node of the overlay as a pure object: what arrives goes in, what to send comes out."""
