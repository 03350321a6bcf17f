"""The node agent: what a node's devices are, in what health, what they do and who holds them."""
