"""Fairway on a real Karmada with real kube-schedulers, as `tests/e2e` starts them, in several ways."""
