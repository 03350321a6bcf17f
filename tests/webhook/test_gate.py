"""The gate among its neighbours: whatever the order, nothing is placed that was not released.

A binding lives through what a control plane does to it: a detector that writes it from a template and a
policy, other webhooks before or after ours, a scheduler that places whatever is not suspended, a dispatcher
that releases. Replicas that run are those that were placed.
"""

from copy import deepcopy

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fairway.accelerators.builtin import builtin_catalogue
from fairway.scope import Scope
from sandbox.fakeapi.patching import json_patch, merge_patch
from tests.webhook.builders import AT, Obj, binding, request, spec
from webhook.suspend import decide

SCOPE = Scope(builtin_catalogue())
POLICIES = st.one_of(
    st.none(),
    st.fixed_dictionaries({"dispatching": st.booleans()}),
    st.just({"dispatchingOnClusters": {"clusterNames": ["member2"]}}),
)
SIZES = st.integers(1, 6)


class Gate(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.binding: Obj | None = None
        self.policy: Obj | None = None
        self.admitted = 0
        self.order = "before"

    def write(self, new: Obj) -> None:
        """Through admission: our webhook, and one that labels, in either order."""
        old = self.binding
        steps = [self.hold, self.label] if self.order == "before" else [self.label, self.hold]
        for step in steps:
            new = step(new, old)
        # Asked again after others, as the API server may.
        self.binding = self.hold(new, old)

    def hold(self, new: Obj, old: Obj | None) -> Obj:
        patch = decide(request(new, old), SCOPE, managed=False, at=AT).response.patch
        held: Obj = new if patch is None else json_patch(new, msgspec.json.decode(patch))
        return held

    def label(self, new: Obj, old: Obj | None) -> Obj:
        del old
        labelled: Obj = merge_patch(
            new, {"metadata": {"labels": {"resourcebinding.karmada.io/permanent-id": "x"}}}
        )
        return labelled

    @property
    def spec(self) -> Obj:
        assert self.binding is not None
        found: Obj = self.binding["spec"]
        return found

    @property
    def running(self) -> int:
        return sum(cluster["replicas"] for cluster in self.spec.get("clusters") or ())

    @property
    def is_held(self) -> bool:
        return bool((self.spec.get("suspension") or {}).get("scheduling"))

    @rule(order=st.sampled_from(["before", "after"]))
    def rename_webhooks(self, order: str) -> None:
        self.order = order

    @precondition(lambda self: self.binding is None)
    @rule(size=SIZES, policy=POLICIES)
    def detect(self, size: int, policy: Obj | None) -> None:
        self.policy = policy
        self.write(binding(spec({"nvidia.com/gpu": 1}, replicas=size, suspension=policy)))
        assert self.is_held

    @precondition(lambda self: self.binding is not None)
    @rule(size=SIZES, policy=POLICIES)
    def detect_again(self, size: int, policy: Obj | None) -> None:
        """The detector writes its fields and the policy's suspension, and keeps the scheduling flag."""
        grows = size > self.spec["replicas"]
        was_held = self.is_held
        new = deepcopy(self.binding)
        assert new is not None
        flag = (self.spec.get("suspension") or {}).get("scheduling")
        kept = {} if flag is None else {"scheduling": flag}
        new["spec"] |= {"replicas": size, "suspension": {**(policy or {}), **kept} or None}
        self.policy = policy
        self.write(new)
        assert self.is_held == (was_held or grows)

    @precondition(lambda self: self.binding is not None and not self.is_held)
    @rule()
    def schedule(self) -> None:
        self.write(
            merge_patch(
                self.binding, {"spec": {"clusters": [{"name": "m", "replicas": self.spec["replicas"]}]}}
            )
        )
        assert not self.is_held

    @precondition(lambda self: self.binding is not None and self.is_held)
    @rule()
    def release(self) -> None:
        # A decrease that the scheduler has not seen yet is still charged.
        self.admitted = max(self.spec["replicas"], self.running)
        record = {"fairway.dev/admission": "{}"}
        self.write(
            merge_patch(
                self.binding,
                {"metadata": {"annotations": record}, "spec": {"suspension": {"scheduling": False}}},
            )
        )
        assert not self.is_held

    @precondition(lambda self: self.binding is not None)
    @rule()
    def delete(self) -> None:
        self.binding, self.admitted = None, 0

    @invariant()
    def nothing_runs_that_was_not_admitted(self) -> None:
        if self.binding is not None:
            assert self.running <= self.admitted
            # What the scheduler would place now.
            assert self.is_held or self.spec["replicas"] <= self.admitted

    @invariant()
    def what_the_policy_suspends_is_untouched(self) -> None:
        if self.binding is not None:
            suspension = dict(self.spec.get("suspension") or {})
            suspension.pop("scheduling", None)
            assert suspension == (self.policy or {})


TestGate = Gate.TestCase
TestGate.settings = settings(max_examples=60, stateful_step_count=20)
