"""The quota tree: nominal, borrowing and lending; what is charged and given back. Pure."""
