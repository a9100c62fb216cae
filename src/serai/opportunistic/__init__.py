"""Nodes that meet now and then and carry bundles for each other: DPSP and other routers."""
