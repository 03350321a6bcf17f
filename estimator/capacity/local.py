"""A gang as one cluster has it: what its API server makes of the pods, and what runs there leaves to them.

Worked out where the cluster's state is written; what comes out is carried to wherever the answer is found.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from estimator.capacity.gangs.templates import nowhere, shape_of
from estimator.capacity.request import Component
from estimator.capacity.room import Around
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.admission import AdmissionView, added_tolerations, admitted
from estimator.fit.device_tolerations import TolerationMode, TolerationPolicy, toleration_policy
from estimator.fit.eligibility import EligibilityCache
from estimator.fit.inter_pod_affinity import is_own
from estimator.fit.pod_shape import ALONE, WHOLE_CLUSTER, InterPod, PodShape
from estimator.fit.surroundings import Surroundings, surroundings
from estimator.reasons import Reason, either_way, not_heeded, not_known, refused_pods


@dataclass(frozen=True, slots=True)
class Local:
    """The components in one cluster, and what is left to their shapes.

    ``unknown``: what could not be known, so that no answer is proven but 0. ``unsettled``: what could not,
    so that none is proven. ``refused``: why the API server creates no pods of some component, which then fit
    nowhere.
    """

    components: tuple[Component, ...] = ()
    around: Around = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def left_out(problems: Sequence[str], here: Local, unknown: tuple[str, ...] = ()) -> tuple[Reason, ...]:
    """What an answer is told with: pods that are refused, what is not heeded, what is not known."""
    found = [refused_pods(why) for why in here.refused]
    if problems:
        found.append(not_heeded(problems))
    if here.unsettled:
        found.append(either_way(here.unsettled))
    if here.unknown or unknown:
        found.append(not_known((*unknown, *here.unknown)))
    return tuple(found)


class Localizer:
    """Sees gangs as one cluster does. ``mode``: whether it adds tolerations of devices' taints to pods."""

    def __init__(
        self, mirror: ClusterMirror, cache: EligibilityCache, mode: TolerationMode = TolerationMode.AUTO
    ) -> None:
        self._mirror = mirror
        self._cache = cache
        self._mode = mode
        self._policy: tuple[tuple[int, int], TolerationPolicy] | None = None

    @property
    def tolerations(self) -> TolerationPolicy:
        """For which devices admission adds tolerations to pods."""
        nodes, seen = self._mirror.columns, self._mirror.admission.device_tolerations
        version = (nodes.eligibility_version, seen.version)
        if self._policy is None or self._policy[0] != version:
            taints = (nodes.taint_sets[code] for code in set(nodes.taint_codes.tolist()))
            self._policy = (version, toleration_policy(self._mode, seen, taints))
        return self._policy[1]

    def local(self, components: Iterable[Component]) -> Local:
        """The components as the cluster has them now; shapes to which it leaves everything are `ALONE`."""
        shapes: dict[PodShape, PodShape] = {}
        around: dict[PodShape, Surroundings] = {}
        unknown: dict[str, None] = {}
        unsettled: dict[str, None] = {}
        refused: dict[str, None] = {}
        found = []
        for component in components:
            shape = component.shape
            if component.template is None and shape.inter_pod is ALONE and not self.tolerations.added:
                found.append(component)  # Karmada's request alone: it is the same everywhere
                continue
            if shape not in shapes:
                unsettled.update(dict.fromkeys(shape.inter_pod.unsettled))
                here = self._admitted(component, unknown, refused)
                here, left = self._surrounded(here)
                if left is not None:
                    around[here] = left
                    unknown.update(dict.fromkeys(left.unknown))
                shapes[shape] = here
            found.append(component if shapes[shape] is shape else replace(component, shape=shapes[shape]))
        return Local(tuple(found), around, tuple(unknown), tuple(unsettled), tuple(refused))

    def admitted(self, component: Component) -> PodShape:
        """The pods of the component as the cluster's API server stores them, whatever runs there."""
        return self._admitted(component, {}, {})

    def _admitted(self, component: Component, unknown: dict[str, None], refused: dict[str, None]) -> PodShape:
        """The pods as the cluster's API server stores them."""
        shape, template = component.shape, component.template
        if template is None:
            names = (name for name, _ in shape.requests)
            added, told = added_tolerations(names, shape.claim.tolerations, self.tolerations)
            unknown.update(dict.fromkeys(told))
            if not added:
                return shape
            tolerations = (*shape.claim.tolerations, *added)
            return replace(shape, claim=replace(shape.claim, tolerations=tolerations))
        namespace = shape.inter_pod.namespace
        stored = admitted(template, namespace, AdmissionView(self._mirror.admission, self.tolerations))
        unknown.update(dict.fromkeys(stored.unknown))
        if stored.refused:
            refused[stored.refused] = None
            return nowhere(template)
        if stored.template is template:
            return shape
        here = shape_of(stored.template, "", [], namespace)
        return replace(shape, requests=here.requests, claim=here.claim, containers=here.containers)

    def _surrounded(self, shape: PodShape) -> tuple[PodShape, Surroundings | None]:
        """The shape with all its caps here, and what running pods and volumes leave to it."""
        mirror = self._mirror
        pod = shape.inter_pod
        if pod is ALONE and not shape.spread and not shape.volumes:
            return shape, None
        left = surroundings(mirror, self._cache, shape)
        caps = self._caps(pod)
        if left is not None and left.total is not None:
            caps[WHOLE_CLUSTER] = left.total
        if caps:
            shape = replace(shape, per_domain=tuple(sorted({**dict(shape.per_domain), **caps}.items())))
        if left is not None or shape.per_domain or shape.spread:
            return shape, left  # pods of different kinds keep different distances
        return replace(shape, inter_pod=ALONE, volumes=()), None

    def _caps(self, pod: InterPod) -> dict[str, int]:
        """A cap for each anti-affinity that is about the pods themselves by the labels of their namespace."""
        labels: Mapping[str, str] = dict(pod.labels)
        namespaces = self._mirror.admission.namespaces
        return {
            term.key: 1
            for term in pod.anti_affinity
            if term.namespace_selector and is_own(term, pod.namespace, labels, namespaces)
        }
