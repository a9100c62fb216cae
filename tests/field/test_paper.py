"""The papers' tables and figures, as data: complete, runnable, and in line with the built-in scenarios."""

from typing import get_args

import pytest

from serai.field.paper import (
    ABLATIONS,
    CALIBRATED,
    CLAIMS,
    COMMON,
    EXHIBITS,
    IF_MISSED,
    PAPERS,
    PUBLISHED,
    RULE_SETS,
    ablation_setup,
    default_setup,
    setup,
    setups,
)
from serai.kinds import FIELD, PROTOCOLS
from serai.lab import load_scenario

BOTH = tuple(PAPERS)


def loaded(found):
    return load_scenario(found.scenario, overrides=dict_of(found.settings), protocol=found.protocol)


def dict_of(settings):
    """As on the command line: --set key=value."""
    return [f"{key}={value}" for key, value in settings]


def without_name(scenario):
    return scenario.model_dump(exclude={"title", "name"})


def test_every_table_and_figure_of_the_evaluations_is_there():
    labels = {paper: [e.label for e in EXHIBITS.values() if e.paper == paper] for paper in BOTH}
    assert labels == {
        "ced": ["Table 2", "Fig. 6", "Fig. 7", "Fig. 8", "Table 3"],
        "cet": ["Table 2", "Fig. 7", "Fig. 8", "Fig. 9", "Fig. 10", "Table 3"],
    }


def test_every_number_of_the_tables_is_there():
    wanted = {
        (protocol, metric)
        for exhibit in EXHIBITS.values()
        if exhibit.axis is None
        for protocol in exhibit.protocols
        for metric in exhibit.metrics
    }
    assert {(row.protocol, row.metric) for row in PUBLISHED} == wanted
    assert set(IF_MISSED) <= wanted


@pytest.mark.parametrize("found", setups(BOTH, tuple(RULE_SETS)), ids=str)
def test_setups_can_be_run(found):
    scenario = loaded(found)
    assert scenario.protocol.name == found.protocol


def test_the_defaults_of_the_axes_are_those_of_the_scenarios():
    for exhibit in EXHIBITS.values():
        if exhibit.axis is None:
            continue
        assert exhibit.axis.default in exhibit.axis.values
        for protocol in exhibit.protocols:
            plain = setup(exhibit, protocol, exhibit.axis.default, CALIBRATED)
            written = [f"{exhibit.axis.key}={exhibit.axis.written(exhibit.axis.default)}"]
            assert without_name(load_scenario(protocol)) == without_name(loaded(plain))
            assert without_name(load_scenario(protocol, overrides=written)) == without_name(loaded(plain))


def test_the_two_rule_sets_differ_for_cet_alone_and_in_its_attributes_alone():
    for protocol in ("ced", "dg", "cet"):
        own = without_name(loaded(default_setup(protocol, CALIBRATED)))
        common = without_name(loaded(default_setup(protocol, COMMON)))
        kinds = {table["events"].pop("attributes")["A1"]["kind"] for table in (own, common)}
        assert own == common
        assert len(kinds) == (2 if protocol == "cet" else 1)


def test_claims_speak_of_what_their_exhibits_show():
    for claim in CLAIMS:
        exhibit = EXHIBITS[claim.exhibit]
        assert set(claim.protocols) <= set(exhibit.protocols)
        assert claim.metric in FIELD.definitions
        assert claim.section == exhibit.section


def test_defaults_run_once():
    found = setups(BOTH)
    assert len(found) == len(set(found))
    assert sum(not one.settings for one in found) == 6  # three protocols under two rule sets


def test_ablations_have_every_choice_that_is_not_the_default():
    tried = {(protocol, *change) for row in ABLATIONS for protocol in row.protocols for change in row.settings}
    for name in ("ced", "cet", "dg"):
        for key, field in PROTOCOLS[name].settings.model_fields.items():
            choices = ["false", "true"] if field.annotation is bool else get_args(field.annotation)
            for choice in choices:
                if key != "name" and choice not in (field.default, str(field.default).lower()):
                    assert (name, f"protocol.{key}", choice) in tried


@pytest.mark.parametrize("row", ABLATIONS, ids=lambda row: row.words)
def test_ablations_change_something(row):
    for protocol in row.protocols:
        scenario = loaded(ablation_setup(row, protocol))
        assert without_name(scenario) != without_name(load_scenario(protocol))
