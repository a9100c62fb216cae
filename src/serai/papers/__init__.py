"""How what a paper prints is declared, and how its claims are judged."""
