"""Karmada's API server as a source: templates of workloads, watched, so that no question costs a GET."""
