"""What every Fairway program shares: quantities, resources, selectors, taints, Kubernetes access, service."""
