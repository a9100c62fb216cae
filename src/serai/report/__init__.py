"""Tables, figures and one HTML page: what a sweep found, for people to read."""
