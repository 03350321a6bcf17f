"""kube-scheduler's filters under its names, and what the API server makes of a pod before. Pure."""
