"""The one writer of the dispatcher's state: all that is watched, reduced, and what follows from it."""
