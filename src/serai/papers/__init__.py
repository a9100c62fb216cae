"""What the papers print, as data, beside the metric that measures it here."""

from serai.papers.exhibits import Published
from serai.papers.field import KNOWN_MISSES, METRICS, PUBLISHED, published

__all__ = ["KNOWN_MISSES", "METRICS", "PUBLISHED", "Published", "published"]
