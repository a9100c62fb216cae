"""The papers' own examples, asked of the naive twins and of the product alike.

CED is Sensors 9 (2009), CET is Journal of Software 21 (2010). The routing graph and the tree of the storage
order are pictures there; they are drawn anew here, with the numbers that the texts give.
"""

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from serai.field.world import World
from serai.scenario.section import Scenario
from serai.world.grid import Grid
from tests.field.naive.ced import Ced
from tests.field.naive.cet import Cet, Tree
from tests.field.naive.parts import (
    EXPIRED,
    FULL,
    PLACEMENT,
    RELAY,
    RETURN,
    SOURCE,
    SPENT,
    Copy,
    Drop,
    Records,
    Transfer,
    queue_order,
)
from tests.field.worlds import IMPLEMENTATIONS, Bounds, Happening, Place, Walk, build_scenario, build_world

Run = Callable[[World, Scenario, int], Records]

CELL_M = 10.0
KEY = 2009


@pytest.fixture(params=IMPLEMENTATIONS)
def run(request: pytest.FixtureRequest) -> Run:
    """Each of the two ways to play a world."""
    return IMPLEMENTATIONS[request.param]


def field_of(columns: int, rows: int) -> Grid:
    return Grid(columns * CELL_M, rows * CELL_M, columns, rows)


def middle(column: int, row: int = 0) -> Place:
    return (column + 0.5) * CELL_M, (row + 0.5) * CELL_M


def standing(column: int, row: int = 0) -> Walk:
    return [(0.0, *middle(column, row))]


def ced(world: World, slots: int, settings: dict[str, Any] | None = None, **sections: dict[str, Any]) -> Scenario:
    return build_scenario(world, slots, {"name": "ced", **(settings or {})}, **sections)


# --- Queue order: CED Fig. 5, CET Fig. 6 --------------------------------------------------------------------

QUEUE = [(0, 4), (0, 7), (1, 5), (1, 9), (1, 10), (3, 5), (7, 10), (7, 23), (9, 6)]  # (count, survival time)


def test_the_figures_queue_from_any_shuffle() -> None:
    """Smaller count first, then the younger; of equal ages the figure shows no two with the same count."""
    youngest_last = sorted(QUEUE, key=lambda copy: -copy[1])
    copies = [Copy(youngest_last.index(copy), copy[0], serial) for serial, copy in enumerate(QUEUE)]
    for seed in range(20):
        shuffled = random.Random(seed).sample(copies, len(copies))
        assert [(c.count, youngest_last[c.event][1]) for c in sorted(shuffled, key=queue_order)] == QUEUE


def test_the_figures_queue_is_sent_in_its_order(run: Run) -> None:
    """Nine subscribers stand by and want what gives each event its count; a tenth comes at 30 s for all.

    Attribute A1 says for how many of the nine an event is; sensors match, so it has that count by then.
    """
    arrival_s = 30
    events = [Happening(0, arrival_s - age, (float(count),)) for count, age in QUEUE]
    nine: list[Bounds] = [((number + 1.0, math.inf),) for number in range(9)]
    tenth: Walk = [(0.0, *middle(4)), (29.5, *middle(4)), (30.0, *middle(0))]
    walks = [standing(0)] * 9 + [tenth]
    world = build_world(field_of(5, 1), 40, [middle(0)], walks, events, [*nine, ((-math.inf, math.inf),)])
    records = run(world, ced(world, 40, {"match": "sensor"}), KEY)
    for_the_tenth = [row for row in records.transfers if row.receiver == 1 + 9]
    sent = [(int(world.event_values[row.event, 0]), arrival_s - world.event_time_s[row.event]) for row in for_the_tenth]
    assert sent == QUEUE
    assert {row.time_s for row in for_the_tenth} == {arrival_s}


def test_equal_copies_stored_before_relayed_then_by_serial_number() -> None:
    stored, relayed, later = Copy(1, 0, 9), Copy(1, 0, 3, addressee=0), Copy(1, 0, 4, addressee=1)
    for shuffled in itertools.permutations([stored, relayed, later]):
        assert sorted(shuffled, key=queue_order) == [stored, relayed, later]


# --- Survival time: CED Fig. 4, CET Fig. 5 ------------------------------------------------------------------


@pytest.mark.parametrize("birth_s", [3.0, 3.25, 3.999])
def test_survival_time_starts_at_zero_is_kept_when_forwarded_and_grows_with_the_clock(run: Run, birth_s: float) -> None:
    """A copy forwarded at 15 s is dropped with the one it was made from: forwarding makes no event younger.

    The subscriber sets out at 15 s for a long, slow walk along row 0. The sensors of row 1 will meet it, so
    sensor 0 forwards to sensor 1 at once; but sensor 1, at the far end, waits in vain.
    """
    sensors = [middle(1, 2), *(middle(column, 1) for column in range(2, 8))]
    far = middle(11)
    walk: Walk = [(0.0, *far), (14.5, *far), (15.0, *middle(8)), (2015.0, *middle(2))]
    world = build_world(field_of(12, 3), 60, sensors, [walk], [Happening(0, birth_s)])
    records = run(world, ced(world, 60, events={"lifetime": "20 s"}), KEY)
    assert records.transfers == [Transfer(15, 0, 0, 1, 7, SOURCE, True)]
    assert sorted(records.drops) == [Drop(24, 0, 0, EXPIRED), Drop(24, 0, 1, EXPIRED)]
    assert 23 - birth_s <= 20 < 24 - birth_s


@pytest.mark.parametrize(("arrival_s", "delivered"), [(10, True), (11, False)])
def test_an_event_is_dropped_when_its_survival_time_is_larger_than_beta(
    run: Run, arrival_s: int, delivered: bool
) -> None:
    walk: Walk = [(0.0, *middle(4)), (arrival_s - 0.5, *middle(4)), (arrival_s, *middle(0))]
    world = build_world(field_of(5, 1), 20, [middle(0)], [walk], [Happening(0, 0.0)])
    records = run(world, ced(world, 20, events={"lifetime": "10 s"}), KEY)
    assert bool(records.receptions) == delivered
    assert records.drops == [Drop(11, 0, 0, EXPIRED)]


# --- The routing graph: CED Fig. 2 and 3, CET Fig. 2 and 3 --------------------------------------------------
#
#   row 3   .  .  .  1            p is the subscriber; Z = {3, 5} are the sensors that touch its cell.
#   row 2   .  5  6  .  .         Sensor 0 is a loner far away (column 9, row 9).
#   row 1   p  .  4  7  8
#   row 0   .  3  2  .  .

COMMUNITY_2 = {1: (3, 3), 2: (2, 0), 3: (1, 0), 4: (2, 1), 5: (1, 2), 6: (2, 2), 7: (3, 1), 8: (4, 1)}
SENSORS = [middle(9, 9), *(middle(*COMMUNITY_2[number]) for number in range(1, 9))]
SUBSCRIBER = len(SENSORS)  # its node number
LAYERS = {3: 0, 5: 0, 2: 1, 4: 1, 6: 1, 1: 2, 7: 2, 8: 3}


def test_layers_of_the_routing_graph_from_z_3_and_5() -> None:
    world = build_world(field_of(10, 10), 1, SENSORS, [standing(0, 1)], [])
    network = Ced(world, ced(world, 1), KEY)
    network.run()
    loner, community_2 = network.communities
    assert loner.is_loner
    (session,) = community_2.sessions
    assert {sensor.number: layer for sensor, layer in session.layers.items()} == LAYERS


def test_events_of_node_7_reach_node_3_over_the_layers_every_downstream_neighbour_in_turn(run: Run) -> None:
    events = [Happening(7, 10.0 * turn) for turn in range(1, 7)]
    world = build_world(field_of(10, 10), 100, SENSORS, [standing(0, 1)], events)
    records = run(world, ced(world, 100), KEY)
    paths = [
        [(row.sender, row.receiver) for row in records.transfers if row.event == event] for event in range(len(events))
    ]
    via = [(2, 3), (4, 3), (6, 5), (2, 3), (4, 5), (6, 5)]  # 7 takes 2, 4, 6 in turn; 4 takes 3 and 5 in turn
    assert paths == [[(7, relay), (relay, last), (last, SUBSCRIBER)] for relay, last in via]
    assert [row.kind for row in records.transfers] == [SOURCE, RELAY, RELAY] * len(events)
    assert len(records.receptions) == len(events)


def test_every_hop_leads_one_layer_down(run: Run) -> None:
    events = [Happening(sensor, 0.5 + turn) for turn in range(5) for sensor in COMMUNITY_2]
    world = build_world(field_of(10, 10), 60, SENSORS, [standing(0, 1)], events)
    records = run(world, ced(world, 60, radio={"rate": 2}), KEY)
    assert len(records.receptions) == len(events)
    for row in records.transfers:
        assert LAYERS[row.sender] == (0 if row.receiver == SUBSCRIBER else LAYERS[row.receiver] + 1)


def test_one_hop_a_second(run: Run) -> None:
    world = build_world(field_of(10, 10), 20, SENSORS, [standing(0, 1)], [Happening(8, 2.5)])
    records = run(world, ced(world, 20, {"hops": "one"}), KEY)
    assert [(row.time_s, row.sender) for row in records.transfers] == [(3, 8), (4, 7), (5, 2), (6, 3)]


# --- Loners: CED 4.1, end; CET 3.2.1, end -------------------------------------------------------------------


def test_a_loner_hands_over_directly(run: Run) -> None:
    """No path is told to anybody; events that the subscriber does not want are handed over too."""
    events = [Happening(0, 0.0, (1.0,)), Happening(0, 1.0, (9.0,))]
    world = build_world(field_of(3, 1), 5, [middle(0)], [standing(1)], events, [((-math.inf, 5.0),)])
    records = run(world, ced(world, 5), KEY)
    assert records.transfers == [Transfer(0, 0, 0, 1, 1, SOURCE, True), Transfer(1, 1, 0, 1, 1, SOURCE, True)]
    assert [reception.wanted for reception in records.receptions] == [True, False]
    assert +records.control_messages == {"hello": 1, "reply": 1}


# --- Dropping: CED 4.2 C, CET 3.3 (3) -----------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0, 1, 2])
def test_an_event_is_dropped_when_its_count_is_larger_than_alpha(run: Run, alpha: int) -> None:
    world = build_world(field_of(1, 1), 5, [middle(0)], [standing(0)] * 4, [Happening(0, 2.0)])
    records = run(world, ced(world, 5, {"alpha": alpha}), KEY)
    assert [reception.subscriber for reception in records.receptions] == list(range(alpha + 1))
    assert records.drops == [Drop(2, 0, 0, SPENT)]


def test_a_full_queue_loses_the_event_and_the_sender_has_paid(run: Run) -> None:
    """Sensor 1 is full of its own event when that of sensor 0 comes, and when it has another one itself."""
    events = [Happening(1, 0.0), Happening(0, 3.0), Happening(1, 5.0)]
    world = build_world(field_of(3, 1), 10, [middle(0), middle(1)], [standing(2)], events)
    records = run(world, ced(world, 10, sensors={"queue": 1}), KEY)
    assert records.transfers == [
        Transfer(0, 0, 1, 2, 2, SOURCE, True),
        Transfer(3, 1, 0, 1, 2, SOURCE, False),
    ]
    assert records.drops == [Drop(3, 1, 1, FULL), Drop(5, 2, 1, FULL)]
    ten_metres = 250 * (50_000 + 10 * 10 * 10)  # pJ: bits (electronics + free space d^2)
    assert records.event_pj == [ten_metres, ten_metres]
    assert records.received == [0, 0]


# --- Storage order: CET Fig. 4 ------------------------------------------------------------------------------

PREORDER = [1, 6, 4, 2, 3, 5, 7, 8]  # of the tree 1 -> 6; 6 -> 4, 5, 7; 4 -> 2, 3; 7 -> 8
HOPS_FROM_3 = [3, 2, 1, 2, 0, 3, 3, 4]  # along that tree


def test_preorder_of_the_heads_tree() -> None:
    world = build_world(field_of(10, 10), 1, SENSORS, [], [])
    network = Cet(world, build_scenario(world, 1, {"name": "cet"}), KEY)
    head = network.communities[1].head
    assert head is not None
    tree = Tree(head)
    assert [node.number for node in tree.preorder()] == PREORDER
    three = network.sensors[3]
    assert [len(tree.path(three, node)) - 1 for node in tree.preorder()] == HOPS_FROM_3


def test_returned_events_are_stored_in_cyclic_preorder(run: Run) -> None:
    """Eleven events of the loner, carried to community 2 at 20 s: eight nodes in preorder, then again."""
    events = [Happening(0, float(second)) for second in range(1, 12)]
    walk: Walk = [(0.0, *middle(9, 9)), (19.5, *middle(9, 9)), (20.0, *middle(0, 1))]
    world = build_world(field_of(10, 10), 21, SENSORS, [walk], events)
    records = run(world, build_scenario(world, 21, {"name": "cet"}), KEY)
    returned = [row for row in records.transfers if row.kind in (RETURN, PLACEMENT)]
    chains = [[row for row in returned if row.event == event] for event in range(len(events))]
    assert returned == [row for chain in chains for row in chain]  # oldest reception first, one after the other
    assert all(chain[0] == Transfer(20, event, SUBSCRIBER, 3, -1, RETURN, True) for event, chain in enumerate(chains))
    assert [chain[-1].receiver for chain in chains] == PREORDER + PREORDER[:3]
    assert [len(chain) - 1 for chain in chains] == HOPS_FROM_3 + HOPS_FROM_3[:3]
    up_and_down = 2 * HOPS_FROM_3[0]  # notice and answer between sensor 3 and the head, for each event
    assert records.control_messages["notice"] == len(events) * up_and_down


# --- The community head: CET 3.1 ----------------------------------------------------------------------------

RETURNED = 250 * 50_000  # pJ: what receiving one event costs
ROW = [middle(0), middle(4), middle(5), middle(3)]  # a loner; and 3 - 1 - 2, where 1 is the first head


@pytest.mark.parametrize(("below_pj", "second_path"), [(0, []), (1, [(2, 1), (1, 3)])])
def test_a_head_with_less_than_theta_left_is_replaced_by_the_sensor_with_most(
    run: Run, below_pj: int, second_path: list[tuple[int, int]]
) -> None:
    """The first return costs the head one reception, and sensor 3 nothing.

    With exactly theta left the head stays, and the second event is for the second node of its tree, sensor 2,
    which has it already. With 1 pJ less than theta left sensor 3 becomes head: placement starts at its root.
    """
    walk: Walk = [(0.0, *middle(0)), (9.5, *middle(0)), (10.0, *middle(6))]
    world = build_world(field_of(7, 1), 11, ROW, [walk], [Happening(0, 1.0), Happening(0, 2.0)], battery_j=1.0)
    theta = f"{10**12 - RETURNED + below_pj} pJ"
    scenario = build_scenario(world, 11, {"name": "cet", "theta": theta})
    records = run(world, scenario, KEY)
    placed = [row for row in records.transfers if row.kind == PLACEMENT]
    assert [(row.sender, row.receiver) for row in placed if row.event == 0] == [(2, 1)]
    assert [(row.sender, row.receiver) for row in placed if row.event == 1] == second_path
    assert records.control_messages["election"] == 2 * 3 * (1 + below_pj)
    assert records.control_messages["notice"] == 2 * 1 + 2 * (2 if below_pj else 1)
