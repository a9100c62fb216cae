"""Live nodes: gateways, vehicles, phones and small computers that meet now and then.

Pure parts decide and never wait: `core` (the node), `words` (what goes in and comes out), `schema` (its rows),
`bundle`, `wire`, `mqtt`, `interests`. Shells wait and never decide: `store` (SQLite), links, servers, the daemon.
docs/node/design.md says who calls what.
"""
