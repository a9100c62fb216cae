"""What everything stands on: errors, units, content and conditions, seeded orders, statistics, compilation."""
