"""Owners of workloads are told, by Events, what these leave unused."""
