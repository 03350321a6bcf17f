"""Why no more pods fit, node by node, and what comes closest."""
