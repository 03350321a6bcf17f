"""What a long-running process needs: logging, metrics, health, TLS, lifecycle."""
