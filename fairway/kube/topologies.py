"""Kueue's Topology objects: the node labels that make up a cluster's topology, the coarsest first.

Cluster-scoped, served as v1alpha1 (Kueue 0.9 to 0.13), v1beta1 (since 0.14) and v1beta2 (since 0.15), with
the same fields in all of them.
"""

from fairway.kube.objects import ApiObject, KubeStruct


class TopologyLevel(KubeStruct, frozen=True):
    """One level: nodes with the same value of this label are close to each other."""

    node_label: str = ""


class TopologySpec(KubeStruct, frozen=True):
    """The levels, the coarsest first."""

    levels: list[TopologyLevel] | None = None


class KueueTopology(ApiObject, frozen=True):
    """kueue.x-k8s.io Topology."""

    spec: TopologySpec = TopologySpec()
