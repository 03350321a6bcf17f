"""Selectors of labels, nodes and taints, after apimachinery/pkg/labels and component-helpers/scheduling."""

import re
from collections.abc import Mapping

from tests.truth.fields import Json, labels_of, name_of, objects, strings, table, text, words

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")


def requirement_matches(requirement: Json, labels: Mapping[str, str]) -> bool:
    """labels.Requirement.Matches: NotIn and DoesNotExist hold where the key is absent."""
    key, values = text(requirement, "key"), words(requirement, "values")
    has, value = key in labels, labels.get(key, "")
    match text(requirement, "operator"):
        case "In":
            return has and value in values
        case "NotIn":
            return not has or value not in values
        case "Exists":
            return has
        case "DoesNotExist":
            return not has
        case "Gt" | "Lt" as operator:
            if not has or len(values) != 1 or not (_INTEGER.match(value) and _INTEGER.match(values[0])):
                return False
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
    return False


def label_selector_matches(selector: object, labels: Mapping[str, str]) -> bool:
    """metav1.LabelSelectorAsSelector: an absent selector matches nothing, an empty one everything."""
    if not isinstance(selector, dict):
        return False
    wanted = strings(selector, "matchLabels")
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        requirement_matches(requirement, labels) for requirement in objects(selector, "matchExpressions")
    )


def is_empty_selector(selector: object) -> bool:
    """Selector.Empty: there, without a requirement. An absent one is labels.Nothing, which is not empty."""
    return isinstance(selector, dict) and not (
        table(selector, "matchLabels") or objects(selector, "matchExpressions")
    )


def node_selector_matches(selector: Json, node: Json) -> bool:
    """A core/v1 NodeSelector: terms are alternatives; none, or an empty one, matches nothing."""
    return any(_term_matches(term, node) for term in objects(selector, "nodeSelectorTerms"))


def _term_matches(term: Json, node: Json) -> bool:
    expressions, fields = objects(term, "matchExpressions"), objects(term, "matchFields")
    if not expressions and not fields:
        return False
    return all(requirement_matches(each, labels_of(node)) for each in expressions) and all(
        requirement_matches(each, {"metadata.name": name_of(node)}) for each in fields
    )


def required_node_affinity_matches(pod: Json, node: Json) -> bool:
    """nodeaffinity.RequiredNodeAffinity: the pod's nodeSelector and its required node affinity."""
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in strings(pod, "spec", "nodeSelector").items()):
        return False
    affinity = table(pod, "spec", "affinity", "nodeAffinity")
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return not isinstance(required, dict) or node_selector_matches(required, node)


def tolerates(toleration: Json, taint: Json) -> bool:
    """Toleration.ToleratesTaint of core/v1, without the operators Lt and Gt, which are off by default."""
    if text(toleration, "effect") not in ("", text(taint, "effect")):
        return False
    if text(toleration, "key") not in ("", text(taint, "key")):
        return False
    match text(toleration, "operator"):
        case "Exists":
            return True
        case "" | "Equal":
            return text(toleration, "value") == text(taint, "value")
    return False


def untolerated(pod: Json, node: Json) -> bool:
    """Whether a NoSchedule or NoExecute taint of the node keeps the pod off."""
    tolerations = objects(pod, "spec", "tolerations")
    return any(
        text(taint, "effect") in ("NoSchedule", "NoExecute")
        and not any(tolerates(toleration, taint) for toleration in tolerations)
        for taint in objects(node, "spec", "taints")
    )
