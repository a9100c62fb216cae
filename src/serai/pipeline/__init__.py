"""From what comes home to who is told: logs of nodes, kept, freed of repeats, matched and delivered."""
