"""Readings and subscriptions of files in an opportunistic network: each reading is a bundle, published by its sensor.

Nodes match content itself: bundles that the same rows of the file of subscriptions ask for are on one channel, and
whoever asks for them wants that channel. So no bundle is on a channel of somebody who does not ask for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from serai.core.errors import BadInput
from serai.core.interested import who_wants
from serai.opportunistic.sections import OpportunisticScenario
from serai.opportunistic.world import Subscriptions, Wanted
from serai.recorded.content import names_in
from serai.recorded.readings import Readings, read_readings
from serai.recorded.wishes import Wishes, read_wishes, texts_of
from serai.traces.names import NodeNames
from serai.world.grid import Numbers

_MOST_PAIRS = 500_000_000


class Recorded(NamedTuple):
    """Readings, who asks for them, and the channels that follow: rows that ask for the same readings of each."""

    readings: Readings
    wishes: Wishes
    channel: Numbers  # [reading]
    asked: NDArray[np.bool_]  # [channel, row of the subscriptions]

    @property
    def channels(self) -> tuple[str, ...]:
        """What is asked for of each channel, in words."""
        return tuple(
            " · ".join(dict.fromkeys(self.wishes.where[row] for row in np.flatnonzero(rows).tolist()))
            or "not asked for"
            for rows in self.asked
        )


def read_recorded(scenario: OpportunisticScenario, nodes: NodeNames) -> Recorded:
    """What a scenario's files of events and subscriptions say."""
    file = scenario.subscriptions.file
    assert file is not None  # the scenario refuses it otherwise
    names, asked = nodes.names, names_in(texts_of(file))
    readings = read_readings(scenario.events, names, scenario.begin, scenario.duration_s, asked)
    begin_s = readings.begin_s if readings.dated else scenario.begin
    wishes = read_wishes(file, {name: [node] for node, name in enumerate(names)}, readings.content, begin_s)
    if len(readings.values) * len(wishes.node) > _MOST_PAIRS:
        raise BadInput(
            f"{file}: {len(wishes.node):,} subscriptions of {len(readings.values):,} readings are too many; thin the"
            " readings (every, on_change)"
        )
    asking = who_wants(readings.values, wishes.low, wishes.high)
    alike, channel = np.unique(asking, axis=0, return_inverse=True)
    return Recorded(readings, wishes, channel.reshape(-1).astype(np.int32), alike)


def wanted_by_file(recorded: Recorded) -> Wanted:
    """Who wants which channel, and when."""
    wishes = recorded.wishes
    channel, row = np.nonzero(recorded.asked)
    rows = np.stack((wishes.node[row], channel, wishes.from_s[row], wishes.until_s[row]), axis=1)
    node, wanted, from_s, to_s = np.unique(rows, axis=0).T
    found = Subscriptions(node.astype(np.int32), wanted.astype(np.int32), from_s.copy(), to_s.copy())
    return Wanted(found, np.unique(wishes.node))
