"""What stands around the programs on one machine: API servers in memory, a stand-in for Karmada, a story."""
