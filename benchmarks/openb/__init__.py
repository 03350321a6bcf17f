"""A real cluster: Alibaba's openb trace of GPU nodes and tasks, as dumps of member clusters and as a measure.

The trace says what each task asked for, not where it ran, so tasks are placed here, by a stated rule; what
is written down is then as HAMi, KAI or plain Kubernetes would have left it on the objects.
"""
