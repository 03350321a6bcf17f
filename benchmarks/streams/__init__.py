"""Streams of workloads that come, wait, run and end, played before the dispatcher's own turns."""
