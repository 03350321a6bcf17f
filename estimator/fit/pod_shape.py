"""One pod template as far as capacity is concerned: amounts, where it may go, what it and other pods say.

Amounts as in `fairway.resources`; only positive amounts of resources that kube-scheduler counts are kept, so
that every one of them limits the answer.
"""

from dataclasses import dataclass, field

from estimator.fit.pod_volumes import PodVolume
from fairway.accelerators.devices import PodAsk
from fairway.dra.extended import IMPLICIT_PREFIX
from fairway.dra.requests import Claim
from fairway.pod_terms import HostPort, PodTerm, Selector
from fairway.resources import is_extended
from fairway.selectors import Requirement, Term
from fairway.taints import Toleration


@dataclass(frozen=True, slots=True)
class NodeClaim:
    """Which nodes a pod accepts: all of ``selector``, a term of ``affinity`` (None: any), by taints."""

    selector: tuple[Requirement, ...] = ()
    affinity: tuple[Term, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    size_bytes: int = field(default=0, compare=False)
    """Its size on the wire: what is very large is not worth remembering."""


ANY_NODE = NodeClaim()


EACH_NODE = ""
"""In place of a label: every node is a domain of its own, whatever it carries."""

MAX_SKEW = 2**31 - 1
"""What Kubernetes stores of a skew at most."""

WHOLE_CLUSTER = "*"
"""In place of a label: all nodes are one domain."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The pods that are counted shall differ by at most ``max_skew`` between the domains of a label.

    ``min_domains``: with fewer eligible domains than this, no domain may have more than ``max_skew``; 0 for
    no such rule. ``selector``: which running pods of the namespace count, None for none. ``counts_own``:
    pods of the shape themselves count. ``honors_affinity``, ``honors_taints``: only nodes that the pods
    accept make domains. Mirrors DoNotSchedule constraints of PodTopologySpread of kube-scheduler 1.36.
    """

    key: str
    max_skew: int
    min_domains: int = 0
    selector: Selector | None = None
    counts_own: bool = True
    honors_affinity: bool = True
    honors_taints: bool = False


@dataclass(frozen=True, slots=True)
class InterPod:
    """What a pod says of pods that run already, and what these see of it.

    ``affinity`` and ``anti_affinity``: all required terms, about its own kind or others. ``unsettled``: what
    these terms say of labels that are not known before the pods are there.
    """

    namespace: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    ports: tuple[HostPort, ...] = ()
    unsettled: tuple[str, ...] = ()


ALONE = InterPod()


@dataclass(frozen=True, slots=True)
class PodClaim:
    """A claim on devices that the pod names: of its own by a template, or one that all its pods share.

    ``key``: namespace and name of the template or the claim. ``stated``: what it asks for as Karmada has it,
    for clusters that do not have it yet; None where that is not known, and ``problem`` says why if it is
    known to be wrong.
    """

    key: str
    is_shared: bool = False
    stated: Claim | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PodShape:
    """One pod template as far as capacity is concerned: sorted (resource, amount) pairs and a node claim.

    ``containers`` and ``annotations`` say more about devices than the sums do, where the template is known;
    both are empty for what Karmada's request alone says. ``per_domain``: at most so many pods in each domain
    of a label, `EACH_NODE` or `WHOLE_CLUSTER` (required anti-affinity to itself, host ports). ``spread``:
    topology spread constraints. ``claims``: what it claims by Dynamic Resource Allocation. ``inter_pod``:
    what pods that run already make of it; `ALONE` where that is not known, or changes nothing. ``volumes``:
    the persistent ones that it claims.
    """

    requests: tuple[tuple[str, int], ...] = ()
    claim: NodeClaim = ANY_NODE
    priority_class: str = ""
    containers: tuple[tuple[tuple[str, int], ...], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    per_domain: tuple[tuple[str, int], ...] = ()
    spread: tuple[Spread, ...] = ()
    claims: tuple[PodClaim, ...] = ()
    inter_pod: InterPod = ALONE
    volumes: tuple[PodVolume, ...] = ()

    @property
    def names_device(self) -> bool:
        """Whether the pod asks for a device, by a resource, an annotation or a claim."""
        if self.annotations or self.claims:
            return True
        return any(is_extended(name) or name.startswith(IMPLICIT_PREFIX) for name, _ in self.requests)

    @property
    def ask(self) -> PodAsk:
        """What the pod asks of devices, by container where that is known."""
        return PodAsk(self.containers or (self.requests,), self.annotations)
