"""One admission cycle: from a snapshot and the time to actions and reasons. Pure."""
