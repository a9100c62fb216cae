"""What failures cost, counted by the kernels, is what brokers that lose their neighbours really send and miss."""

import numpy as np
import pytest

from serai.overlay import pub2sub, tinymq
from serai.overlay.broker.messages import Assign, Join, Subscribe
from serai.overlay.engine import run as overlay
from serai.overlay.engine.network import Network
from tests.overlay.bus import Bus
from tests.overlay.test_meeting import bus_of, radio_network

SYSTEMS: dict[str, tinymq.Settings | pub2sub.Settings] = {
    "strict": tinymq.Settings(attribute_bits=4),
    "greedy, to all trees": tinymq.Settings(attribute_bits=4, routing="greedy", event_trees="all"),
    "pub2sub": pub2sub.Settings(attribute_bits=4),
}


def failing(nodes: int, trees: int, share: float, seed: int) -> Network:
    """A random network in which this share of the nodes fails; roots never do."""
    network = radio_network(nodes, trees, 30, 1, seed)
    fails = np.random.default_rng(seed).uniform(size=nodes) < share
    fails[network.roots] = False
    return network._replace(fails=fails)


def delivered(bus: Bus, network: Network, stage: str) -> int:
    """Publish all events of the living; how many of the living subscribers' queries are answered."""
    bus.delivered.clear()
    for event, node in enumerate(map(int, network.publisher)):
        if not network.fails[node]:
            bus.publish(node, bus.configuration.event((stage, event), network.values[event]))
    return len(bus.delivered)


def sent(bus: Bus, *kinds: type) -> int:
    return sum(isinstance(message, kinds) for _, _, message in bus.sent)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(("trees", "share", "seed"), [(1, 0.05, 1), (3, 0.1, 2), (2, 0.3, 3)])
def test_the_damage_is_what_brokers_say(system: str, trees: int, share: float, seed: int) -> None:
    network = failing(80, trees, share, seed)
    damage = overlay.simulate(network, SYSTEMS[system]).damage
    assert damage is not None
    bus = bus_of(network, SYSTEMS[system])
    for query, node in enumerate(map(int, network.subscriber)):
        bus.subscribe(node, bus.configuration.query(query, network.low[query], network.high[query]))
    hops = {node: list(broker.membership.hops) for node, broker in bus.brokers.items()}
    keys = {node: list(broker.membership.keys) for node, broker in bus.brokers.items()}
    dead = {int(node) for node in np.flatnonzero(network.fails)}

    bus.kill(dead)
    assert delivered(bus, network, "unrepaired") == damage.unrepaired.delivered

    bus.notice(dead)
    rekeyed = {node for node, broker in bus.brokers.items() if broker.membership.keys != keys[node]}
    assert len(rekeyed) == damage.rekeyed
    bus.sent.clear()
    bus.tick()
    assert sent(bus, Subscribe) == damage.handed_off
    assert sent(bus, Join, Assign) == damage.join_messages
    changed = {node for node, broker in bus.brokers.items() if broker.membership.hops != hops[node]}
    assert len(changed | rekeyed) == damage.changed
    assert sum(not any(broker.membership.keys) for broker in bus.brokers.values()) == damage.cut_off
    assert delivered(bus, network, "repaired") == damage.repaired.delivered

    bus.sent.clear()
    bus.tick(bus.configuration.renewal_s)
    assert sent(bus, Subscribe) == damage.resubscribed
    assert delivered(bus, network, "renewed") == damage.renewed.delivered
