"""Which is the cheapest deployment that meets the goals, and how sure is that? `serai plan`."""
