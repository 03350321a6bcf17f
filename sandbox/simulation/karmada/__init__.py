"""Karmada's controllers as they were measured on a live control plane, in virtual time.

Each part sees the API server through a client of its own, late by what its watch is late, and does one
request after the other as fast as its client may (``--kube-api-qps``). Nothing in here knows of the
dispatcher. Numbers are those of a live control plane (Karmada 1.19, two cores), tests state them as tables.
"""
