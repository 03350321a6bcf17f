"""The OverridePolicy of a release."""

import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from fairway.taints import Toleration
from queue_dispatcher.bindings.override_policy import override_policy, policy_name, policy_path
from queue_dispatcher.workloads.gang_minimum import GangMinimum, Together
from queue_dispatcher.workloads.guidance import Guidance, Guided
from queue_dispatcher.workloads.keeping import Kept, Told
from queue_dispatcher.workloads.pod_template import PodTemplateFacts, StatedAffinity
from tests.dispatcher.bindings.builders import UID, binding


def prefers(*nodes: str) -> list[Any]:
    return [
        {
            "weight": 100,
            "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]},
        }
        for node in nodes
    ]


def test_the_whole_policy() -> None:
    made = binding()
    head, worker = PodTemplateFacts("head", "/spec/a"), PodTemplateFacts("worker", "/spec/b")
    guidance = (
        Guidance("east", (Guided(head, ("n0",), 8), Guided(worker, ("n1", "n2"), 7))),
        Guidance("west", (Guided(head, ("m0",)),)),
    )
    workload = made.workload
    assert policy_path(made) == (
        f"/apis/policy.karmada.io/v1alpha1/namespaces/{made.namespace}/overridepolicies/fairway-{made.name}"
    )
    policy = msgspec.to_builtins(override_policy(made, guidance))
    assert json.loads(json.dumps(policy)) == {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "OverridePolicy",
        "metadata": {
            "name": f"fairway-{made.name}",
            "namespace": made.namespace,
            "labels": {"fairway.dev/guidance": "true"},
            "ownerReferences": [
                {
                    "apiVersion": "work.karmada.io/v1alpha2",
                    "kind": "ResourceBinding",
                    "name": made.name,
                    "uid": UID,
                }
            ],
        },
        "spec": {
            "resourceSelectors": [
                {
                    "apiVersion": workload.api_version,
                    "kind": workload.kind,
                    "namespace": workload.namespace,
                    "name": workload.name,
                }
            ],
            "overrideRules": [
                {
                    "targetCluster": {"clusterNames": ["east"]},
                    "overriders": {
                        "plaintext": [
                            add("/spec/a/affinity", affinity("n0")),
                            add("/spec/a/priorityClassName", "fairway-gang-8"),
                            add("/spec/b/affinity", affinity("n1", "n2")),
                            add("/spec/b/priorityClassName", "fairway-gang-7"),
                        ]
                    },
                },
                {
                    "targetCluster": {"clusterNames": ["west"]},
                    "overriders": {"plaintext": [add("/spec/a/affinity", affinity("m0"))]},
                },
            ],
        },
    }


def add(path: str, value: object) -> dict[str, object]:
    return {"path": path, "operator": "add", "value": value}


def affinity(*nodes: str) -> dict[str, Any]:
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": prefers(*nodes)}}


def test_nodes_that_are_to_be_filled_last_are_preferred_less() -> None:
    guided = Guided(PodTemplateFacts("main", "/spec"), ("n0", "n1"), spare=frozenset({"n1"}))
    policy: Any = override_policy(binding(), (Guidance("east", (guided,)),))
    (entry,) = policy["spec"]["overrideRules"][0]["overriders"]["plaintext"]
    assert entry["value"] == {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                *prefers("n0"),
                {**prefers("n1")[0], "weight": 50},
            ]
        }
    }


def test_what_the_template_says_stands_beside_it() -> None:
    own = {"weight": 1, "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}}
    stated = StatedAffinity(
        on_nodes=(("requiredDuringSchedulingIgnoredDuringExecution", b'{"nodeSelectorTerms":[1]}'),),
        preferred=(json.dumps(own).encode(),),
        others=(("podAntiAffinity", b'{"a":1}'),),
    )
    told = (Guidance("east", (Guided(PodTemplateFacts("main", "/spec", stated), ("n0",)),)),)
    policy: Any = override_policy(binding(), told)
    (entry,) = policy["spec"]["overrideRules"][0]["overriders"]["plaintext"]
    assert entry["value"] == {
        "podAntiAffinity": {"a": 1},
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [1]},
            "preferredDuringSchedulingIgnoredDuringExecution": [own, *prefers("n0")],
        },
    }


LABELS = (("gpu", "h100"),)
SPOT = Toleration("spot", "Exists")
OWN = PodTemplateFacts("main", "/spec", selector=(("zone", "z"),), tolerations=(b'{"tolerationSeconds": 5}',))
KEPT: list[tuple[Told, list[dict[str, object]]]] = [
    (Told(OWN, LABELS), [add("/spec/nodeSelector", {"zone": "z", "gpu": "h100"})]),
    (Told(PodTemplateFacts("main", "/x"), LABELS), [add("/x/nodeSelector", {"gpu": "h100"})]),
    (
        Told(OWN, (), (SPOT,)),
        [add("/spec/tolerations", [{"tolerationSeconds": 5}, {"key": "spot", "operator": "Exists"}])],
    ),
]


@pytest.mark.parametrize(("told", "entries"), KEPT)
def test_pods_are_kept_on_the_nodes_of_a_flavor(told: Told, entries: list[dict[str, object]]) -> None:
    policy: Any = override_policy(binding(), (), (Kept(("a", "b"), (told,)), Kept((), (told,))))
    overriders = {"overriders": {"plaintext": entries}}
    there = {"targetCluster": {"clusterNames": ["a", "b"]}}
    assert policy["spec"]["overrideRules"] == [there | overriders, overriders]


def test_what_keeps_them_comes_beside_what_they_prefer() -> None:
    guidance = (Guidance("a", (Guided(OWN, ("n0",)),)),)
    policy: Any = override_policy(binding(), guidance, (Kept((), (Told(OWN, LABELS, (SPOT,)),)),))
    paths = [
        [entry["path"] for entry in rule["overriders"]["plaintext"]]
        for rule in policy["spec"]["overrideRules"]
    ]
    assert paths == [["/spec/nodeSelector", "/spec/tolerations"], ["/spec/affinity"]]


MINIMUM = "scheduling.volcano.sh/group-min-member"
TOGETHER: list[tuple[GangMinimum, dict[str, object]]] = [
    (
        GangMinimum("/metadata", MINIMUM, 8),
        {"annotationsOverrider": [{"operator": "add", "value": {MINIMUM: "8"}}]},
    ),
    (
        GangMinimum("/spec/a/metadata", MINIMUM, 8),
        {"plaintext": [add("/spec/a/metadata", {"annotations": {MINIMUM: "8"}})]},
    ),
    (
        GangMinimum("/spec/a/metadata", MINIMUM, 8, (("a", "b"),)),
        {"plaintext": [add("/spec/a/metadata/annotations", {"a": "b", MINIMUM: "8"})]},
    ),
]


@pytest.mark.parametrize(("told", "overriders"), TOGETHER)
@pytest.mark.parametrize("clusters", [(), ("a",)])
def test_how_many_start_together(
    told: GangMinimum, overriders: dict[str, object], clusters: tuple[str, ...]
) -> None:
    policy: Any = override_policy(binding(), (), (), Together(clusters, (told,)))
    where = {"targetCluster": {"clusterNames": list(clusters)}} if clusters else {}
    assert policy["spec"]["overrideRules"] == [{**where, "overriders": overriders}]


def test_how_many_start_together_comes_beside_the_others() -> None:
    guidance = (Guidance("a", (Guided(OWN, ("n0",)),)),)
    kept = (Kept((), (Told(OWN, LABELS),)),)
    told = Together((), (GangMinimum("/metadata", MINIMUM, 8),))
    policy: Any = override_policy(binding(), guidance, kept, told)
    assert [list(rule["overriders"]) for rule in policy["spec"]["overrideRules"]] == [
        ["annotationsOverrider"],
        ["plaintext"],
        ["plaintext"],
    ]


@pytest.mark.parametrize("length", [245, 246, 253])
def test_it_is_called_as_its_binding_however_long_that_is(length: int) -> None:
    name = policy_name(replace(binding(), name="b" * length))
    assert len(name) <= 253
    assert name != policy_name(replace(binding(), name="c" * length))
