"""Which workloads can stand still in a cluster and go on there later."""

import msgspec
import pytest

from queue_dispatcher.workloads.pausing import CONTROLLER, may_pause


@pytest.mark.parametrize(
    ("kind", "spec", "may"),
    [
        ("Job", {"completions": 8}, True),
        ("Job", {"completions": 8, "suspend": False, "managedBy": CONTROLLER}, True),
        ("Job", {"completions": 8, "completionMode": "Indexed"}, True),
        # Over once one has succeeded and none runs.
        ("Job", {}, False),
        ("Job", {"completions": 0}, False),
        ("Job", {"completions": 8, "suspend": True}, False),
        ("Job", {"completions": 8, "activeDeadlineSeconds": 600}, False),
        ("Job", {"completions": 8, "managedBy": "kueue.x-k8s.io/multikueue"}, False),
        ("Job", {"completions": "8"}, False),
        ("Job", None, False),
        ("JobSet", {"completions": 8}, False),
    ],
)
def test_what_a_template_says(kind: str, spec: object, *, may: bool) -> None:
    assert may_pause("batch", kind, msgspec.Raw(msgspec.json.encode(spec))) is may
