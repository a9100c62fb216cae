"""The engine of opportunistic networks: nodes that meet, links with a rate, stores that fill, bundles that expire.

What goes in and what comes out, in arrays. Nodes, channels, bundles and subscriptions are numbers from 0.

In: `serai.opportunistic.world.ContactWorld`

    contacts        a, b, up_s, down_s        `world.contacts.Contacts`: by (up, a, b), a < b, up <= down; contacts
                                              of one pair may touch but not overlap; nobody meets himself
    bundles         source, channel, created_s, size_bytes, lifetime_s
                                              in order of creation; a bundle's number is its row
    subscriptions   node, channel, from_s, to_s
                                              in order of (from, node, channel); from_s <= time < to_s; a row is one
                                              subscription with its own id. A unicast message is a bundle on a channel
                                              of its own, to which the destination has subscribed from -inf to inf
    carries         bool per node             False: takes only what it has subscribed to (a sink or a source that does
                                              not carry for others)
    channels        how many there are

and `serai.opportunistic.engine.state.Medium`: rate_bps, single (a node takes part in one transfer at a time, as in
The ONE, or every direction of every contact is a link of its own), step_s (0: event-driven; 1.0: as a simulator
of 1 s ticks), capacity_bytes, when_full, duration_s, key (`order_key(seed)`), full_log.

    outcome = PROTOCOLS[name].simulate(world, medium, settings)          # settings: the protocol's Settings

Out: `serai.opportunistic.engine.state.Outcome`

    deliveries      bundle, node, time_s, hops: in the order in which they happened, one row per pair; the source itself
                    never counts
    bytes           payload_bytes, control_bytes, wasted_bytes (payload in broken, refused, late, duplicate transfers)
    transfers       counts by outcome: relayed, duplicate, refused, late, broken (and unfinished at the end)
    drops           counts by cause: expired, evicted, full (a bundle born into a store without room)
    relays          relayed copies of each bundle
    stored_byte_s   per node: integral of what its store held; peak_bytes per node
    transfer_log, drop_log     every row, if `full_log`
"""
