"""Kueue's own performance suites, run through the real dispatcher against a real or a fake API server."""
