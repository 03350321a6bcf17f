"""Measurements of the estimator, one file per question. Run all of them with ``python -m benchmarks``."""
