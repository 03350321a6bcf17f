"""Preemption: who is displaced so that a workload can start."""
