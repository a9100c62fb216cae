"""What the commands answer when all is well."""

import json
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.test_lab import SMALL as CHANGES

Run = Callable[..., Any]
SMALL = ("--set", "duration=10 min", "--set", "sensors.count=20", "--set", "events.quiet=0 s")
PROMISED = [
    "protocol",
    "seed",
    "delivery_ratio",
    "copies_per_event",
    "transmissions_per_event",
    "mean_delay_s",
    "median_delay_s",
    "lifetime_days",
    "events",
]


def parsed(answer: Any) -> Any:
    """The one JSON object of an answer; standard JSON, so NaN and Infinity are refused."""
    assert answer.code == 0, answer.err

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(answer.out, parse_constant=refuse)


def test_run_as_json_has_what_was_promised(shell: Run, tmp_path: Path) -> None:
    found = parsed(shell("run", "ced", "--seed", "1", "--json"))
    assert [name for name in PROMISED if name not in found] == []
    assert (found["protocol"], found["seed"]) == ("ced", 1)
    assert 0.5 < found["delivery_ratio"] < 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("protocol", ["dg", "ced", "cet"])
def test_run_is_measured_as_python_measures_it(serai: Run, protocol: str) -> None:
    import serai as api

    scenario = api.load_scenario("field", overrides=SMALL[1::2], protocol=protocol)
    expected = api.measure(api.simulate(scenario, seed=3)).as_dict()
    assert parsed(serai("run", "field", "--protocol", protocol, "--seed", "3", *SMALL, "--json")) == expected


def test_run_without_subscribers_is_still_json(serai: Run) -> None:
    found = parsed(serai("run", "ced", *SMALL, "--set", "subscribers.count=0", "--json"))
    assert found["delivery_ratio"] is None
    assert found["mean_delay_s"] is None


def test_run_for_people(serai: Run) -> None:
    answer = serai("run", "ced", *SMALL, "--upper-bound")
    assert answer.code == 0
    words = "CED · seed 0 · 20 sensors · 600 s · delivered · delay · copies · lifetime · dropped · bound"
    for word in words.split(" · "):
        assert word in answer.out
    assert "nan" not in answer.out.lower()
    assert max(map(len, answer.out.splitlines())) <= 80


def test_run_without_subscribers_for_people(serai: Run) -> None:
    answer = serai("run", "ced", *SMALL, "--set", "subscribers.count=0")
    assert answer.code == 0
    assert "nan" not in answer.out.lower()
    assert "None" not in answer.out


def test_upper_bound_only_on_request(serai: Run) -> None:
    assert parsed(serai("run", "ced", *SMALL, "--json"))["upper_bound_epidemic"] is None
    found = parsed(serai("run", "ced", *SMALL, "--upper-bound", "--json"))
    assert found["delivery_ratio"] <= found["upper_bound_community"] <= found["upper_bound_epidemic"] <= 1


def test_until_death_a_sensor_dies(serai: Run) -> None:
    small_battery = ("--set", "sensors.battery=2 mJ")
    found = parsed(serai("run", "dg", *SMALL, *small_battery, "--until-death", "--json"))
    assert 0 < found["lifetime_days"] < 1


def test_run_folder_can_be_read_again(serai: Run, tmp_path: Path) -> None:
    import serai as api

    found = parsed(serai("run", "cet", *SMALL, "--seed", "5", "--out", "deep/run", "--full-log", "--json"))
    run = api.read_run(tmp_path / "deep/run")
    assert api.measure(run).as_dict() == found
    assert run.full is not None


@pytest.mark.parametrize("name", CHANGES)
def test_runs_of_every_kind_have_a_full_log(serai: Run, tmp_path: Path, name: str) -> None:
    import serai as api

    changes = [word for change in CHANGES[name] for word in ("--set", change)]
    assert serai("run", name, *changes, "--out", "run", "--full-log").code == 0
    run = api.read_run(tmp_path / "run")
    assert run.full_log
    assert len(run.tables["transfers"]) > 0
    assert "drops" in run.tables


def test_run_into_an_empty_folder(serai: Run, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    answer = serai("run", "dg", *SMALL, "--out", "out")
    assert answer.code == 0
    assert "out" in answer.out.splitlines()[-1]
    assert (tmp_path / "out/run.json").exists()


def test_scenario_list(serai: Run) -> None:
    answer = serai("scenario", "list")
    names = [row["name"] for row in parsed(serai("scenario", "list", "--json"))["scenarios"]]
    assert {"ced", "cet", "dg", "field"} <= set(names)
    assert [line.split()[0] for line in answer.out.splitlines()] == names


@pytest.mark.parametrize("name", ["ced", "cet", "dg", "field"])
def test_what_show_prints_is_the_scenario(serai: Run, tmp_path: Path, name: str) -> None:
    import serai as api

    text = serai("scenario", "show", name).out
    (tmp_path / "shown.toml").write_text(text)
    shown, builtin = api.load_scenario("shown.toml"), api.load_scenario(name)
    assert shown.model_dump(exclude={"name"}) == builtin.model_dump(exclude={"name"})
    assert serai("scenario", "check", "shown.toml").code == 0


def test_show_with_settings_changed(serai: Run) -> None:
    text = serai("scenario", "show", "ced", "--set", "protocol.alpha=7").out
    assert tomllib.loads(text)["protocol"]["alpha"] == 7
    other = tomllib.loads(serai("scenario", "show", "ced", "--protocol", "dg").out)
    assert other["protocol"]["name"] == "dg"


def test_show_as_json(serai: Run) -> None:
    assert parsed(serai("scenario", "show", "ced", "--json"))["protocol"]["name"] == "ced"


def test_check_as_json_says_where(serai: Run, tmp_path: Path) -> None:
    assert parsed(serai("scenario", "check", "ced", "--json")) == {"ok": True, "problems": []}
    (tmp_path / "mine.toml").write_text("[sensors]\ncuont = 3\n")
    answer = serai("scenario", "check", "mine.toml", "--json")
    assert answer.code == 2
    assert answer.err == ""
    (problem,) = json.loads(answer.out)["problems"]
    assert (problem["where"], problem["line"]) == ("sensors.cuont", 2)


def test_new_writes_a_scenario_that_runs(serai: Run, tmp_path: Path) -> None:
    answer = serai("scenario", "new", "mine.toml")
    assert answer.code == 0
    assert "mine.toml" in answer.out
    assert serai("scenario", "check", "mine.toml").code == 0
    assert serai("run", "mine.toml", *SMALL).code == 0
    assert parsed(serai("scenario", "new", "other.toml", "--from", "dg", "--json")) == {
        "file": "other.toml",
        "from": "dg",
    }


def test_schema_is_one(serai: Run) -> None:
    schema = parsed(serai("scenario", "schema"))
    assert schema == parsed(serai("scenario", "schema", "--json"))
    kinds = {name: set(schema["$defs"][name]["properties"]) for name in ("FieldScenario", "OpportunisticScenario")}
    assert {"sensors", "field", "protocol"} <= kinds["FieldScenario"]
    assert {"contacts", "nodes", "protocol"} <= kinds["OpportunisticScenario"]


def test_protocols_show_every_setting(serai: Run) -> None:
    from serai.kinds import PROTOCOLS

    text = serai("protocols").out
    described = {row["name"]: row for row in parsed(serai("protocols", "--json"))["protocols"]}
    assert list(described) == list(PROTOCOLS)
    for name, row in described.items():
        assert row["title"] in text
        assert row["paper"] in text
        assert len(row["settings"]) == len(PROTOCOLS[name].settings.model_fields) - 1
        for setting in row["settings"]:
            assert f"  {setting['name']} = {json.dumps(setting['default'])}" in text
            assert setting["meaning"]


def test_protocols_of_one(serai: Run) -> None:
    answer = serai("protocols", "cet")
    assert answer.out.startswith("cet: ")
    assert 'theta = "5 J"' in answer.out
    assert "dg" not in answer.out


def test_doctor(serai: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = parsed(serai("doctor", "--json"))
    assert found["ok"]
    assert {"python", "numba", "kernels", "memory"} <= {check["name"] for check in found["checks"]}
    monkeypatch.setattr("serai.cli.doctor.free_memory_bytes", lambda: 1000)
    answer = serai("doctor")
    assert answer.code == 1
    assert "!!  memory" in answer.out
    assert "1 GiB" in answer.out


def test_published_numbers_are_metrics_of_known_protocols() -> None:
    from serai.field.paper import IF_MISSED, METRICS, PUBLISHED, published
    from serai.field.protocols import PROTOCOLS
    from serai.kinds import FIELD

    assert {(row.protocol, row.metric) for row in PUBLISHED} == {
        (name, metric) for name in PROTOCOLS if name not in ("serai", "cet-plus") for metric in METRICS
    }
    assert set(METRICS) <= set(FIELD.definitions)
    assert all(published(*key) for key in IF_MISSED)
    assert published("ced", "load_imbalance") is None
    assert all(math.isfinite(row.value) and "Table" in row.source for row in PUBLISHED)
