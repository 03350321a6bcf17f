"""Gangs whose pods share or avoid domains: levels, TPU slices, cliques, spread constraints."""
