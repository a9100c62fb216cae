"""What the product says of a run, in the words of the naive twins."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serai.field import log
from serai.field.engine.state import DROPS, TRANSFERS
from serai.field.log import OUTCOMES, FullLog, Ledger
from tests.field.naive.parts import Drop, Reception, Records, Transfer, Watched


def as_records(ledger: Ledger, full: FullLog) -> Records:
    """Ledger and full log as the naive twins would write them."""
    receptions = zip(
        ledger.reception_event,
        ledger.reception_subscriber,
        ledger.reception_s,
        ledger.reception_wanted,
        strict=True,
    )
    return Records(
        receptions=[Reception(int(e), int(p), int(t), bool(wanted)) for e, p, t, wanted in receptions],
        transfers=[
            Transfer(time_s, event, sender, receiver, addressee, TRANSFERS[kind], OUTCOMES[outcome] == "accepted")
            for time_s, event, sender, receiver, addressee, kind, outcome, _, _ in rows_of(full.transfers)
        ],
        kept=list(zip(full.transfers.stored.tolist(), full.transfers.moved.tolist(), strict=True)),
        drops=[
            Drop(time_s, event, node, DROPS[reason]) for time_s, event, node, _, reason, _, _ in rows_of(full.drops)
        ],
        whose=[(addressee, bool(held), after) for _, _, _, addressee, _, held, after in rows_of(full.drops)],
        drops_by_reason=Counter(ledger.drops),
        transmissions=ledger.transmissions.tolist(),
        sent=ledger.sent.tolist(),
        received=ledger.received.tolist(),
        event_pj=ledger.event_pj.tolist(),
        control_pj=ledger.control_pj.tolist(),
        harvested_pj=powers(ledger, "harvested_pj"),
        wasted_pj=powers(ledger, "wasted_pj"),
        naps=[] if ledger.naps is None else list(rows_of(ledger.naps)),  # type: ignore[arg-type]
        idle_pj=[0] * len(ledger.died) if ledger.idle_pj is None else ledger.idle_pj.tolist(),
        control_messages=Counter(ledger.control_messages),
        control_bits=Counter(ledger.control_bits),
        died=ledger.died.tolist(),
        steady_pj=np.stack([ledger.steady_event_pj, ledger.steady_control_pj], axis=1).tolist(),
        watched=None if full.watched is None else as_watched(ledger, full.watched),
    )


def powers(ledger: Ledger, name: str) -> list[int]:
    """What was harvested or wasted, if anybody harvests."""
    found = getattr(ledger, name)
    return [0] * len(ledger.died) if found is None else found.tolist()


def as_watched(ledger: Ledger, seen: log.Watched) -> Watched:
    """What was seen of every slot as the naive twins would write it."""
    kinds, sensors = list(ledger.control_messages), len(ledger.sent)
    return Watched(
        control=[(time_s, kinds[kind], count) for time_s, kind, count in rows_of(seen.control)],
        sessions=[(subscriber - sensors, *rest) for subscriber, *rest in rows_of(seen.sessions)],  # type: ignore[misc]
        heads=list(rows_of(seen.heads)),  # type: ignore[arg-type]
        spent=list(rows_of(seen.spent)),  # type: ignore[arg-type]
    )


def rows_of(columns: Sequence[NDArray[np.integer[Any]]]) -> Iterator[tuple[int, ...]]:
    """The rows of a table, as plain numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)
