"""Every field of the API and every label has its effect: a table of each."""
