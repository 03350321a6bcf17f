"""By what the pods of a workload are known in a member cluster: their controller, or a label.

Kinds that make other objects which make the pods (JobSet: Jobs, LeaderWorkerSet: StatefulSets) label the pods
with their own name. Of kinds that are not here nobody can tell (RayJob and RayService make RayClusters of
other names).
"""

from typing import Final

CONTROLLING: Final = frozenset(
    {
        ("Deployment", "apps"),
        ("ReplicaSet", "apps"),
        ("StatefulSet", "apps"),
        ("Job", "batch"),
        ("Job", "batch.volcano.sh"),
        ("RayCluster", "ray.io"),
        *(
            (kind, "kubeflow.org")
            for kind in ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "JAXJob")
        ),
    }
)
"""Kinds, with their API groups, that are the controllers of their pods; a Deployment of its ReplicaSets."""

LABELS: Final = {
    ("JobSet", "jobset.x-k8s.io"): "jobset.sigs.k8s.io/jobset-name",
    # It makes a JobSet of its own name.
    ("TrainJob", "trainer.kubeflow.org"): "jobset.sigs.k8s.io/jobset-name",
    ("LeaderWorkerSet", "leaderworkerset.x-k8s.io"): "leaderworkerset.sigs.k8s.io/name",
}
"""The label of pods that holds the name of such a workload."""
