"""A whole Karmada in virtual time from one seed: API server, members, schedulers, people, and faults.

Nothing here waits, sleeps, or asks for the time of day: everything that happens is an action on one timeline,
and everything left to chance is drawn from one generator. The same seed gives the same history, always.
"""
