"""A field of sensors in communities, and subscribers who walk by: DG, CED and CET."""
