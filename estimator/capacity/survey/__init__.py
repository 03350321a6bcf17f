"""What a cluster's accelerators look like to an administrator."""
