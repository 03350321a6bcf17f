"""Where pods that run already let a pod go: its own terms about them, and theirs about it.

A domain is all nodes with the same value of a term's label; a node without the label is in none. Mirrors
InterPodAffinity of kube-scheduler 1.36: a pod matches affinity only if it matches all of the terms, and the
first pod of a kind that wants its own company goes anywhere.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from estimator.cluster.admission import NamespaceMirror
from estimator.cluster.columns import BoolVector, NodeColumns
from estimator.cluster.occupancy import Selected
from estimator.fit.limits import Limit
from estimator.fit.pod_shape import InterPod
from fairway.pod_terms import NAMESPACE_NAME, PodTerm, Selector, matches

FILTER = "InterPodAffinity"


@dataclass(frozen=True, slots=True)
class Company:
    """What running pods leave: limits, and labels of each of which all further pods must share one value."""

    limits: tuple[Limit, ...]
    together: tuple[str, ...] = ()


def inter_pod_affinity(nodes: NodeColumns, pod: InterPod, namespaces: NamespaceMirror) -> Company:
    """What pods that run already leave of the rows to further pods like this one."""
    labels = dict(pod.labels)
    limits = [_repelled(nodes, pod, labels, namespaces), _apart(nodes, pod, namespaces)]
    together: tuple[str, ...] = ()
    if pod.affinity:
        near, together = _near(nodes, pod, labels, namespaces)
        limits.append(near)
    return Company(tuple(limit for limit in limits if limit is not None), together)


def is_own(term: PodTerm, namespace: str, labels: Mapping[str, str], namespaces: NamespaceMirror) -> bool:
    """Whether the term is about pods with these labels in this namespace."""
    if namespace not in term.namespaces:
        chosen = term.namespace_selector
        if chosen is None or not _matches(namespaces, namespace, chosen):
            return False
    return term.selects(labels)


def _repelled(
    nodes: NodeColumns, pod: InterPod, labels: Mapping[str, str], namespaces: NamespaceMirror
) -> Limit | None:
    """The rows from which required anti-affinity of running pods does not keep this one."""
    kept_off = np.zeros(len(nodes.rows), dtype=np.bool_)
    unknown: set[str] = set()
    for term, rows in nodes.occupancy.repelling(pod.namespace):
        if not term.selects(labels):
            continue
        if pod.namespace not in term.namespaces and not _decides(namespaces, term.namespace_selector):
            unknown.add("labels of namespaces, which anti-affinity of running pods selects by")
        if is_own(term, pod.namespace, labels, namespaces):
            kept_off |= _domains(nodes, term.key, np.fromiter(rows, dtype=np.int64))
    return _outside(kept_off, "didn't satisfy existing pods anti-affinity rules", tuple(unknown))


def _apart(nodes: NodeColumns, pod: InterPod, namespaces: NamespaceMirror) -> Limit | None:
    """The rows in whose domains no pod runs that the pod's anti-affinity is about."""
    kept_off = np.zeros(len(nodes.rows), dtype=np.bool_)
    for term in pod.anti_affinity:
        if term.selector is None:
            continue
        selected = Selected(_namespaces(nodes, (term,), namespaces), (term.selector,))
        found = np.flatnonzero(nodes.occupancy.counts(selected, len(nodes.rows)))
        kept_off |= _domains(nodes, term.key, found)
    unknown = _undecided(pod.anti_affinity, namespaces)
    return _outside(kept_off, "didn't match pod anti-affinity rules", unknown)


def _outside(kept_off: BoolVector, reason: str, unknown: tuple[str, ...]) -> Limit | None:
    """All other rows; None where these are all and nothing is unknown."""
    if kept_off.any():
        return Limit(FILTER, ~kept_off, reason=reason, unknown=unknown)
    return Limit(FILTER, unknown=unknown) if unknown else None


def _near(
    nodes: NodeColumns, pod: InterPod, labels: Mapping[str, str], namespaces: NamespaceMirror
) -> tuple[Limit, tuple[str, ...]]:
    """The rows in whose domains pods run that match all of the pod's affinity.

    Where there are none and the pods match it themselves: the rows with all its labels, and those labels.
    Where it is not known which pods it means: the rows with all its labels.
    """
    size = len(nodes.rows)
    rows = nodes.present.copy()
    carrying = rows.copy()
    some = False
    selectors = [term.selector for term in pod.affinity if term.selector is not None]
    found = np.empty(0, dtype=np.int64)
    if len(selectors) == len(pod.affinity):
        selected = Selected(_namespaces(nodes, pod.affinity, namespaces), tuple(selectors), promised=False)
        found = np.flatnonzero(nodes.occupancy.counts(selected, size))
    for term in pod.affinity:
        domains = _domains(nodes, term.key, found)
        some = some or bool(domains.any())
        rows &= domains
        carrying &= nodes.labels.codes(term.key)[:size] > 0
    unknown = _undecided(pod.affinity, namespaces)
    reason = "didn't match pod affinity rules"
    if unknown:
        return Limit(FILTER, carrying, reason=reason, unknown=unknown), ()
    if not some and all(is_own(term, pod.namespace, labels, namespaces) for term in pod.affinity):
        keys = tuple(dict.fromkeys(term.key for term in pod.affinity))
        return Limit(FILTER, carrying, reason=reason), keys
    return Limit(FILTER, rows, reason=reason), ()


def _matches(namespaces: NamespaceMirror, name: str, selector: Selector) -> bool:
    """Whether it is known that the selector matches the namespace; its name always is known."""
    labels = namespaces.labels(name)
    if labels is None and not _decides(namespaces, selector):
        return False
    return matches(selector, {**(labels or {}), NAMESPACE_NAME: name})


def _decides(namespaces: NamespaceMirror, selector: Selector | None) -> bool:
    """Whether enough is known to tell which namespaces the selector matches."""
    return namespaces.synced or all(one.key == NAMESPACE_NAME for one in selector or ())


def _domains(nodes: NodeColumns, key: str, found: np.ndarray[tuple[int], np.dtype[np.int64]]) -> BoolVector:
    """The rows that share a value of the label with any of these."""
    codes = nodes.labels.codes(key)[: len(nodes.rows)]
    values = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.bool_)
    values[codes[found]] = True
    values[0] = False
    domains: BoolVector = values[codes]
    return domains


def _namespaces(
    nodes: NodeColumns, terms: Iterable[PodTerm], namespaces: NamespaceMirror
) -> frozenset[str] | None:
    """The namespaces that all of the terms are about; None for all there are."""
    meant: frozenset[str] | None = None
    for term in terms:
        chosen = term.namespace_selector
        if chosen == ():
            continue
        named = term.namespaces
        if chosen is not None:
            named |= {name for name in nodes.occupancy.namespaces if _matches(namespaces, name, chosen)}
        meant = named if meant is None else meant & named
    return meant


def _undecided(terms: Iterable[PodTerm], namespaces: NamespaceMirror) -> tuple[str, ...]:
    if all(_decides(namespaces, term.namespace_selector) for term in terms):
        return ()
    return ("labels of namespaces, which the pod's affinity selects by",)
