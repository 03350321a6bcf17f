"""Kubernetes access: typed objects, client, reflector, dumps."""
