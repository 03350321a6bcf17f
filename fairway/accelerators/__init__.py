"""What accelerators are: which resource name means what; devices shared, cut or counted in groups."""
