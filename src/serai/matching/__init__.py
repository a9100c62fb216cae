"""Content-based matching of collected events with subscriptions on Spark, in batches and as a stream."""
