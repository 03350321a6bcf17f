"""Kinds and the plurals they are served under, where nobody has said which belongs to which."""

_KINDS = (
    "APIService",
    "ClusterQueue",
    "ClusterResourceBinding",
    "ClusterPropagationPolicy",
    "ConfigMap",
    "CustomResourceDefinition",
    "DaemonSet",
    "JobSet",
    "LocalQueue",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "PriorityClass",
    "PropagationPolicy",
    "ReplicaSet",
    "ResourceBinding",
    "ResourceFlavor",
    "ResourceQuota",
    "ResourceSlice",
    "ServiceAccount",
    "ServiceClass",
    "StatefulSet",
    "ValidatingWebhookConfiguration",
)


def plural_of(kind: str) -> str:
    """``policies`` of Policy, ``classes`` of Class, else with an s: what Kubernetes guesses too."""
    name = kind.lower()
    if name.endswith(("s", "x", "ch", "sh")):
        return f"{name}es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return f"{name[:-1]}ies"
    return f"{name}s"


_BY_PLURAL = {plural_of(kind): kind for kind in _KINDS}


def collection_path(api_version: str, kind: str) -> str:
    """Where objects are served, as far as their kind tells."""
    return f"/{'apis' if '/' in api_version else 'api'}/{api_version}/{plural_of(kind)}"


def kind_of(plural: str) -> str:
    """The kind of a plural; of an unknown one its singular, capitalised."""
    return _BY_PLURAL.get(plural) or plural.removesuffix("s").capitalize()
