"""Dynamic Resource Allocation: which devices a cluster offers, and how many more pods they can serve."""
