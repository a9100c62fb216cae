"""Bundles as bytes: BPv7 (RFC 9171) with integrity blocks (RFC 9172, 9173). Pure: bytes in, values out."""
