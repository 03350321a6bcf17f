"""What holds of all checks of objects together."""

import pytest

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Verdict
from admin.doctor.karmada_kinds import KARMADA_KINDS
from admin.doctor.objects import OBJECTS
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from tests.admin.doctor.objects.builders import World, well


def test_where_all_is_well_every_check_says_so() -> None:
    assert well().findings() == {}


def test_where_there_is_nothing_nothing_is_wrong_and_nobody_is_said_to_lead() -> None:
    said = World().findings()
    assert {name: [found.verdict for found in of] for name, of in said.items()} == {
        "dispatcher-leads": [Verdict.NOTE]
    }
    assert said["dispatcher-leads"][0].message.startswith("does not apply: there is no queue")


def test_names_are_distinct() -> None:
    assert len({check.name for check in OBJECTS}) == len(OBJECTS)


@pytest.mark.parametrize("check", OBJECTS, ids=lambda check: check.name)
def test_without_an_api_server_nothing_is_known(check: Check) -> None:
    assert [finding.verdict for finding in check.findings(Evidence(0))] == [Verdict.UNKNOWN]


def test_a_kind_that_may_not_be_read_is_told_by_those_that_need_it() -> None:
    world = well()
    world.unread[RESOURCE_BINDINGS.name] = "forbidden: user doctor"
    said = world.findings()
    assert "queue-tree" not in said
    for finding in said["bindings-held"]:
        assert finding.verdict is Verdict.UNKNOWN
        assert "forbidden: user doctor" in finding.message


def test_each_kind_is_listed_once() -> None:
    assert len({kind.name for kind in KARMADA_KINDS}) == len(KARMADA_KINDS)
