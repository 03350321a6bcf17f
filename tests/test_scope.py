"""One rule in three readings: the webhook's, the dispatcher's, and that of API servers, in expressions."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.accelerators.builtin import builtin_catalogue
from fairway.names import QUEUE
from fairway.scope import Queueing, Reach, Scope, Selection, Subject, WorkloadKind, parse_workload_kind
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.reading import BindingReader
from tests.webhook.builders import AT, CPU, GPU, Obj, binding, component, request, sets, spec
from tests.webhook.cel import Evaluator
from webhook.bindings import read_binding
from webhook.match_conditions import creation_conditions, managed_creation_conditions
from webhook.suspend import decide

KINDS = frozenset([WorkloadKind("Job", "batch"), WorkloadKind("Pod", "")])
SCOPES = (
    Scope(builtin_catalogue()),
    Scope(builtin_catalogue(), only_enabled=True),
    Scope(builtin_catalogue(), KINDS),
    Scope(builtin_catalogue(), KINDS, only_enabled=True),
)
CREATION = {scope.kinds: Evaluator(creation_conditions(scope)) for scope in SCOPES}
MANAGED = Evaluator(managed_creation_conditions())
STATED = ("", "enabled", "named", "all", "disabled", "Enabled", "true")

quantities = st.one_of(st.integers(-2, 4), st.sampled_from(["0", "1", "500m", "0.0k", "1Gi", "-1"]))
resources = st.sampled_from(["cpu", "nvidia.com/gpu", "google.com/tpu", "rdma/hca", "example.com/output"])
requests = st.one_of(st.none(), st.dictionaries(resources, quantities, max_size=3))
components = st.one_of(
    st.none(), st.lists(st.builds(component, st.sampled_from("abc"), st.integers(0, 3), requests), max_size=3)
)
workloads = st.builds(
    lambda api_version, kind: {"apiVersion": api_version, "kind": kind, "name": "w"},
    st.sampled_from(["batch/v1", "batch.volcano.sh/v1alpha1", "v1", "x/v1"]),
    st.sampled_from(["Job", "Pod", "Deployment"]),
)
marks = st.one_of(
    st.none(), st.dictionaries(st.sampled_from([QUEUE, "team"]), st.sampled_from(["x", ""]), max_size=2)
)


@st.composite
def bindings(draw: st.DrawFn) -> Obj:
    made = spec(draw(requests), components=draw(components), resource=draw(workloads))
    return binding(made, labels=draw(marks), annotations=draw(marks))


def seen_by_the_dispatcher(obj: Obj) -> Subject:
    stated = msgspec.json.decode(msgspec.json.encode(obj), type=ResourceBinding)
    return BindingReader().read(stated).subject


@given(bindings(), st.sampled_from(SCOPES), st.sampled_from(STATED))
def test_all_readings_agree(obj: Obj, scope: Scope, stated: str) -> None:
    door = read_binding(msgspec.Raw(msgspec.json.encode(obj))).subject
    inside = seen_by_the_dispatcher(obj)
    reach = scope.reach(stated)
    assert scope.gates(door, reach) == scope.gates(inside, reach)
    assert scope.includes(door, reach) == scope.includes(inside, reach)
    assert CREATION[scope.kinds].matches(object=obj, oldObject=None) == scope.includes(inside, Reach.TERMS)

    # As the API server does it: by the selectors and expressions of the two entries, and by the webhook.
    plain, whole = (scope.namespaces(whole=one).selects(stated) for one in (False, True))
    assert not (plain and whole)
    conditions = CREATION[scope.kinds].matches(object=obj, oldObject=None)
    by_expression = (plain and conditions) or (whole and MANAGED.matches(object=obj, oldObject=None))
    asked = request(obj)
    by_webhook = (plain or whole) and bool(decide(asked, scope, managed=whole, at=AT).response.patch)
    assert by_expression == by_webhook == scope.gates(inside, reach)
    # What is to wait is held at the door, unless a queue is named elsewhere and nobody asked for that.
    assert not scope.includes(inside, reach, named_elsewhere=True) or scope.gates(inside, reach)


NOBODY = Subject(False, "Deployment", "apps", ("cpu",))


@pytest.mark.parametrize(
    ("subject", "reach", "named", "gated", "included"),
    [
        (NOBODY, Reach.TERMS, False, False, False),
        (NOBODY, Reach.TERMS, True, False, False),
        (NOBODY, Reach.NAMED, False, True, False),
        (NOBODY, Reach.NAMED, True, True, True),
        (NOBODY, Reach.EVERYTHING, False, True, True),
        (Subject(True, "", "", ()), Reach.TERMS, False, True, True),
        (Subject(True, "Job", "batch", ("nvidia.com/gpu",)), Reach.NOTHING, True, False, False),
        (Subject(False, "Job", "batch", ()), Reach.TERMS, False, True, True),
        (Subject(False, "Job", "batch.volcano.sh", ()), Reach.TERMS, False, False, False),
        (Subject(False, "", "", ("cpu", "google.com/tpu")), Reach.TERMS, False, True, True),
    ],
)
def test_what_is_held_at_the_door_and_what_is_to_wait(
    subject: Subject, reach: Reach, named: bool, gated: bool, included: bool
) -> None:
    scope = SCOPES[2]
    assert scope.gates(subject, reach) == gated
    assert scope.includes(subject, reach, named_elsewhere=named) == included


@pytest.mark.parametrize("scope", SCOPES)
def test_how_far_queues_reach(scope: Scope) -> None:
    silent = Reach.NOTHING if scope.only_enabled else Reach.TERMS
    assert [scope.reach(stated) for stated in STATED] == [
        silent,
        Reach.TERMS,
        Reach.NAMED,
        Reach.EVERYTHING,
        Reach.NOTHING,
        silent,
        silent,
    ]
    assert scope.namespaces(whole=True) == Selection("In", (Queueing.NAMED, Queueing.ALL))


def test_quantities_that_do_not_parse_are_held_and_kept() -> None:
    """Nobody can say what such a workload asks for, so the gate holds it and it waits with the reason."""
    for made in (spec(GPU | {"amd.com/gpu": "?"}), sets(component("a", 1, {"nvidia.com/gpu": "?"} | CPU))):
        assert SCOPES[0].includes(seen_by_the_dispatcher(binding(made)), Reach.TERMS)


@pytest.mark.parametrize("text", ["", "job.batch", "Job.", "Job.Batch", "Job.batch/v1", "J" * 64])
def test_a_kind_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected KIND\.GROUP"):
        parse_workload_kind(text)
