"""Fairway in front of a whole real Karmada.

Needs ``KUBEBUILDER_ASSETS`` and ``KARMADA_ASSETS``, see docs/e2e.md.
"""
