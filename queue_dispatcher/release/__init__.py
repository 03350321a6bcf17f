"""Carrying out what was decided: bodies of patches, made one by one as their order demands."""
