"""Displacing, counted: many drawn fleets before the dispatcher's own turns, in virtual time, until so many
workloads have been displaced. ``python -m tests.preemptions --count 100000``.

Between the turns and the fleet there is nothing: no API server, no Karmada. Estimators are a few lines here:
each cluster is one pool of GPUs, with the pods that are still on their way out.
"""
