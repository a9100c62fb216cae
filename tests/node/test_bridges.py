"""Applications that know nothing of serai: each has a mosquitto of its own, which bridges to a node of two."""

import signal

from tests.effort import THOROUGH
from tests.node.mqtt.served import until
from tests.node.mqtt.test_clients import Paho, mosquitto, pahos
from tests.node.test_daemon import init, node

EACH, KILLS = (60, 6) if THOROUGH else (30, 1)


def make(folder, name, links, mqtt, other):
    """A node with these doors, which dials the other one."""
    made = init(folder, name, f'[[neighbours]]\naddress = "127.0.0.1:{other}"\n') / "node.toml"
    text = made.read_text()
    for door, port in (("links", links), ("mqtt", mqtt)):
        text = text.replace(f'[{door}]\nlisten = "127.0.0.1:0"', f'[{door}]\nlisten = "127.0.0.1:{port}"')
    made.write_text(text)
    return made.parent


def talk(left, right, folders, begin, *, kill):
    """Messages both ways over two running nodes; most of them have arrived when the nodes are killed, else all."""
    end = begin + EACH
    with node(folders[0]) as (a, _), node(folders[1]) as (b, _):
        for number in range(begin, end):
            left.publish("x/1", b"%d" % number, 2, wait=False)
            right.publish("y/1", b"%d" % number, 2, wait=False)
        enough = end - EACH // 2 if kill else end
        until(lambda: len(left.heard) >= enough and len(right.heard) >= enough, 60)
        for one in (a, b) if kill else ():
            one.send_signal(signal.SIGKILL)


def test_mosquitto_at_both_ends(tmp_path, free_ports):
    """Both nodes are killed in the middle of it, again and again: none lost, none twice."""
    here, there, *doors = free_ports(6)
    folders = [
        make(tmp_path, "a", doors[0], doors[1], doors[2]),
        make(tmp_path, "b", doors[2], doors[3], doors[0]),
    ]
    with (
        mosquitto(tmp_path, doors[1], here, up="x/#", down="y/#"),
        mosquitto(tmp_path, doors[3], there, up="y/#", down="x/#"),
        pahos(Paho(here, "left", clean=False), Paho(there, "right", clean=False)) as (left, right),
    ):
        left.subscribe("y/#", qos=2)
        right.subscribe("x/#", qos=2)
        for turn in range(KILLS + 1):
            talk(left, right, folders, turn * EACH, kill=turn < KILLS)
        expected = list(range((KILLS + 1) * EACH))
        assert sorted(map(int, left.payloads)) == sorted(map(int, right.payloads)) == expected
