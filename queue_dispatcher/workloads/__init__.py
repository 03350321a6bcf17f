"""What a workload's template and binding tell: queue, class, demand, flavors, and its end. Pure."""
