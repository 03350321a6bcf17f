"""The mirror of one member cluster: what its nodes have, what its pods hold; one writer."""
