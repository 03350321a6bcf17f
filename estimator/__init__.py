"""The estimator: answers karmada-scheduler's question how many more replicas a member cluster can hold."""
