"""What a workload's template tells of its gang: pods, sizes, fractions of devices, topology."""
