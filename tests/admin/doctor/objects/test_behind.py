"""How far Karmada is behind, and what becomes of the note about its pace then."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from admin.doctor.finding import Finding, Verdict
from admin.doctor.objects.behind import behind
from admin.doctor.platform import PLATFORM
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from tests.admin.doctor.installation import Installation
from tests.admin.doctor.objects.builders import World, admitted, binding, well

THROTTLE = next(check for check in PLATFORM if check.name == "client-throttle")
REPORTED = {"aggregatedStatus": [{"clusterName": "m1", "status": {"active": 2, "ready": 0}}]}


# One Job of the world itself is placed and not reported as well.
def placed(world: World, count: int = 3, ago_s: int = 25, **more: object) -> World:
    for number in range(count):
        name = f"w{number}"
        made = binding(name, held=False, placed={"m1": 2}, annotations=admitted(name, ago_s=ago_s), **more)  # type: ignore[arg-type]  # the arguments of binding
        world.add(RESOURCE_BINDINGS, made)
    return world


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda: placed(well()), "; of 4 workloads placed more than 10 s ago the members have not reported"),
        (lambda: placed(well(), 1), ""),
        (lambda: placed(well(), ago_s=5), ""),
        (lambda: placed(well(), ago_s=4000), ""),
        (lambda: placed(well(), status=REPORTED), ""),
        (lambda: placed(well(), suspension={"dispatching": True}), ""),
        (well, ""),
    ],
)
def test_karmada_is_behind_where_members_report_nothing_of_what_was_placed(
    made: Callable[[], World], says: str
) -> None:
    found = behind(made().evidence())
    assert found.startswith(says) if says else found == ""


def throttled(world: World, folder: Path) -> Finding:
    installed = Installation().flags("karmada-controller-manager", "--kube-api-qps=40").evidence(folder)
    here = world.evidence()
    return next(iter(THROTTLE.findings(replace(installed, karmada=here.karmada, now_ms=here.now_ms))))


def test_a_slow_pace_is_a_note_until_it_shows(tmp_path: Path) -> None:
    assert throttled(well(), tmp_path).verdict is Verdict.NOTE
    shows = throttled(placed(well()), tmp_path)
    assert shows.verdict is Verdict.WARNING
    assert "about 4 objects in member clusters a second" in shows.message
    assert shows.message.endswith("have not reported anything yet, of the oldest for 30 s")
