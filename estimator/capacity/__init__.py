"""Pure answers from a snapshot of one cluster: no I/O, no clock, no logging."""
