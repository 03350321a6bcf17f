"""What Prometheus and Grafana are told of devices, made of tables: ``python -m manifests.observability``.

Recording rules say in PromQL what `fairway.usage.definitions` says, and dashboards show what
they record.
"""
