"""Shared devices while an answer is worked out: which take a share, and how shares are dealt out."""
