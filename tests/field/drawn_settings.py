"""What Hypothesis may set in small worlds: protocols and sections of a scenario, mostly as usual."""

from typing import Any

from hypothesis import strategies as st


def mostly(usual: Any, *others: Any) -> st.SearchStrategy[Any]:
    """The usual value in two cases of three: with all settings at extremes nothing would happen."""
    return st.one_of(st.just(usual), st.just(usual), st.sampled_from([usual, *others]))


COMMUNITY_SETTINGS: dict[str, st.SearchStrategy[Any]] = {
    "alpha": mostly(20, 3, 1, 0),
    "resend": st.sampled_from(["once", "each-contact"]),
    "zone": st.sampled_from(["path", "announced", "pruned", "in-range"]),
    "relays": st.sampled_from(["addressed", "open"]),
    "stranded": st.sampled_from(["deleted", "kept"]),
    "hops": st.sampled_from(["many", "one"]),
    "match": st.sampled_from(["subscriber", "sensor"]),
    "floods": mostly("whole", "pruned"),
    "silent_while_pausing": mostly(False, True),
}

PROTOCOL_SETTINGS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "ced": COMMUNITY_SETTINGS,
    "cet": COMMUNITY_SETTINGS
    | {
        "gamma": mostly(4, 100, 1, 0),
        "theta": st.sampled_from(["5 J", "0 J", "10 J", "9.9999 J", "1000 J", "0.1 mJ", "0.01 mJ"]),
        "return_count": st.sampled_from(["kept", "reset"]),
        "return_memory": st.sampled_from(["empty", "returner"]),
        "return_to_origin": st.booleans(),
    },
    "cet-plus": {  # it is what its defaults are
        "alpha": mostly(20, 3, 1, 0),
        "gamma": mostly(4, 100, 1, 0),
        "theta": st.sampled_from(["5 J", "0 J", "0.1 mJ", "0.01 mJ"]),
    },
    "dg": {
        "resend": st.sampled_from(["every-second", "each-contact", "once"]),
        "match": st.sampled_from(["subscriber", "sensor"]),
        "reach": st.sampled_from(["touching", "same-cell"]),
        "budget": st.sampled_from(["subscriber", "link"]),
        "silent_while_pausing": st.booleans(),
    },
    "serai": {
        "t_0": st.sampled_from(["5 d", "1 d", "100 d"]),
        "kappa": mostly(20.0, 0.0, 1.0),
        "x": mostly(6.0, 1.0),
        "price_interval": mostly(20, 600, 1, 7),
        "lam": st.sampled_from(["2 s", "60 s", "400 s", "0 s"]),
        "xi": mostly(0.6, 1.0, 0.0, 2.0),
        "lamt": mostly("10 s", "1 s", "100 s"),
        "walkers": mostly(True, False),
        "mu_w": mostly(2.0, 0.0, 0.5),
        "offers": mostly(True, False),
        "carriers": mostly(1, 0, 2, 5),
        "deposits": mostly(4, 0, 1),
        "phi": mostly(0.5, 0.0, 1.0, 2.0),
        "phi_d": mostly(0.1, 1.0, 0.0, 5.0),
        "pull_hops": mostly(5, 0, 1),
        "pull_at_birth": st.booleans(),
        "map_at_birth": st.booleans(),
        "multicast": mostly(True, False),
        "clear_interval": mostly(5, 1, 3),
    },
}

SECTIONS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "sensors": {
        "battery": st.sampled_from(["10 J", "10 J", "1 mJ", "0.2 mJ", "0.02 mJ"]),
        "queue": mostly(200, 5, 2, 1),
        "failing": mostly(0.0, 0.3, 1.0),
        "fail_at": st.integers(0, 100).map("{} s".format),
        "idle": mostly("0 W", "0.3 uW", "10 uW", "0.2 mW"),
    },
    "events": {
        "lifetime": mostly("2000 s", "40 s", "17.5 s", "10 s", "1 s", "0.5 s"),
        "size": mostly("250 bit", "1 bit"),
    },
    "radio": {
        "rate": mostly(20, 3, 2, 1),
        "receive_costs": st.booleans(),
        "control_costs": st.booleans(),
        "multipath": mostly("0.0013 pJ/bit/m4", "1 pJ/bit/m4", "0 J/bit/m4"),
    },
    "control": {"hello": mostly("64 bit", "7 bit"), "notice": mostly("64 bit", "0 bit")},
}


def sections_for(protocol: str) -> dict[str, dict[str, st.SearchStrategy[Any]]]:
    """What may be set in worlds for a protocol: events are lost only where they are acknowledged."""
    if protocol != "serai":
        return SECTIONS
    return SECTIONS | {"radio": SECTIONS["radio"] | {"loss": mostly(0.0, 0.1, 0.5, 0.95)}}


SUN: dict[str, st.SearchStrategy[Any]] = {
    "battery": st.sampled_from(["1 mJ", "0.2 mJ", "0.2 mJ", "0.02 mJ"]),
    "idle": st.sampled_from(["0 W", "10 uW", "40 uW"]),
    "harvest": st.sampled_from(["0.5 uW", "10 uW", "0.1 mW", {"0-1": "20 uW", "1-24": "0.2 mW"}]),
    "wake": mostly(0.1, 0.5, 1.0, 0.001),
}
"""What sensors have where they harvest: batteries that are soon empty, and soon not."""
