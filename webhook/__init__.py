"""Holds accelerator workloads at their creation: a mutating admission webhook for Karmada's bindings."""
