"""Sample clusters, and a demonstration that asks the real server about them."""
