"""Releases held bindings in the order and the amount that the queues allow, when they will really fit."""
