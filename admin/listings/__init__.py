"""What the report lists, each as a table for the terminal and the page."""
