"""What Prometheus tells of devices, as the objects that node agents write."""
