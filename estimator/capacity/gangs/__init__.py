"""Workloads as gangs: from their templates to components, and the gang placed in one cluster."""
