"""A router as a pure object: what happens goes in, what to do comes out."""
