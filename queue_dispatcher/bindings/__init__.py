"""Karmada's ResourceBinding as the dispatcher reads it, our record on it, and its state machine. Pure."""
